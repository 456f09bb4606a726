"""`show` in a terminal: outcome and replies first, within 80 columns, long JSON cut; `--json` has all."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def ran(command_in: Callable[[Path], Callable[..., Any]], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The command on a database with a small run of the synthetic models. To be read only."""
    cli = command_in(tmp_path_factory.mktemp("shown"))
    assert cli("run", "--sample", "6").code == 0
    return cli


def ids(ran: Any) -> dict[str, Any]:
    found = ran("sql", "--json", "select pair_id, session_a from audit_pairs limit 1")
    pair: dict[str, Any] = json.loads(found.stdout)[0]
    return pair


def test_show_when_a_pair_is_shown_then_outcome_and_replies_stand_before_the_sessions(ran: Any) -> None:
    pair_id = ids(ran)["pair_id"]
    lines = ran("show", pair_id).stdout.splitlines()
    whole = json.loads(ran("show", pair_id, "--json").stdout)

    assert [line for line in lines if line and not line.startswith(" ")] == [
        "pair",
        "call",
        "call",
        "session",
        "session",
    ]
    assert lines[1].split() == ["pair_id", pair_id]
    assert lines[2].split() == ["outcome", whole["pair"]["outcome"]]
    sections = [line.strip() for line in lines if line.startswith("  ") and line.endswith(":")]
    assert [name for name in sections if name in ("raw_output:", "transcript_json:")] == [
        "raw_output:",
        "raw_output:",
        "transcript_json:",
        "transcript_json:",
    ]
    assert max(map(len, lines)) <= 80
    text = "".join(line.strip() for line in lines).replace(" ", "")
    for call in whole["calls"]:
        assert "".join(call["raw_output"].split()) in text
        told = f"... ({len(call['request_json']):,} characters; --json has all)".replace(" ", "")
        assert told in text


def test_show_when_a_session_is_shown_then_its_world_is_a_size_and_its_checks_are_a_line_each(
    ran: Any,
) -> None:
    session_id = ids(ran)["session_a"]
    lines = ran("show", session_id).stdout.splitlines()
    session = json.loads(ran("show", session_id, "--json").stdout)["session"]

    world = json.loads(session["final_state_json"])["world"]
    told = f'"world": "(an image of {len(world):,} characters; --json has all)",'
    assert [line.strip() for line in lines if '"world"' in line] == [told]
    assert world[:40] not in "\n".join(lines)
    first = json.loads(session["checks_json"])[0]
    start = lines.index("  checks_json:") + 1
    assert lines[start].startswith(f'    {{"name": "{first["name"]}", "kind": "{first["kind"]}"')
    assert max(map(len, lines)) <= 80


def test_show_when_json_in_the_database_cannot_be_read_then_it_is_shown_as_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from audit.faces.show_text import print_found

    broken = "[" * 100_000
    print_found({"session": {"session_id": "s1", "checks_json": broken, "transcript_json": "{}"}})
    lines = capsys.readouterr().out.splitlines()

    assert lines[:2] == ["session", "  session_id       s1"]
    assert lines[3].strip() == "[" * 76
    assert "    ... (100,000 characters; --json has all)" in lines
