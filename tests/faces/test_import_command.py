"""What `import` says when it took a file that holds less than its user thinks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAIR = {"agent_a": "x", "agent_b": "y", "success_a": True, "success_b": False}
READ, UNREAD = "[[A]]", "no idea"


@pytest.fixture
def imported(cli: Callable[..., Any], tmp_path: Path) -> Callable[..., str]:
    """Rows beside PAIR -> what importing them prints, in one line."""

    def run(*rows: dict[str, Any]) -> str:
        file = tmp_path / "pairs.jsonl"
        lines = [json.dumps(PAIR | {"pair_id": str(number)} | row) for number, row in enumerate(rows)]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        ran = cli("import", "jsonl", file, "--grammar", "mtbench_3way")
        assert ran.code == 0, ran.stderr
        return " ".join(ran.stdout.split())

    return run


def test_import_when_no_reply_could_be_read_then_it_says_so_and_doubts_the_grammar(imported: Any) -> None:
    text = imported({"raw_ab": UNREAD, "raw_ba": UNREAD}, {"raw_ab": UNREAD})
    assert "3 of 3 replies could not be read (is the grammar the right one?)" in text


def test_import_when_some_replies_could_not_be_read_then_they_are_counted(imported: Any) -> None:
    assert "1 of 2 replies could not be read. To see some" in imported({"raw_ab": READ, "raw_ba": UNREAD})


def test_import_when_all_replies_are_read_then_nothing_is_said_of_it(imported: Any) -> None:
    assert "could not be read" not in imported({"raw_ab": READ, "raw_ba": READ})


def test_import_when_no_column_holds_a_verdict_then_it_names_those_that_could(imported: Any) -> None:
    text = imported({"preference_ab": "A", "winner": "x"})
    assert "columns passed over: preference_ab, winner" in text
    assert "none of the columns raw_ab, raw_ba, pref_ab and pref_ba holds anything" in text


def test_import_when_a_column_is_hostile_then_it_is_shown_inert(imported: Any) -> None:
    assert "passed over: \\x1b[31mq" in imported({"\x1b[31mq": 1, "raw_ab": READ})
