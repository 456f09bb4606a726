"""Keys in a live run: the own one is sent, no other one ever, and none is kept or shown."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_rows import rows
from server import ChatServer, Say, refusing

from audit.offline.serve import serve

KEY = "sk-planted/4f1c+77=="
AGENTS = ["agent-95", "agent-50"]


def with_profiles(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["profiles"] = [change(profile) for profile in config["profiles"]]
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def test_judge_when_its_key_variable_is_unset_then_nothing_is_sent_and_both_are_named(
    here: Any,
    small: Callable[..., Path],
    gateway: Callable[..., ChatServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shared: Path,
) -> None:
    """GW-07: the client must not fall back to the main vendor's key."""
    lines = (shared / "cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    case = next(found for found in map(json.loads, lines) if found["id"] == "GW-07")
    for name, value in case["input"]["env"].items():
        monkeypatch.setenv(name, value)
    for name in case["input"]["unset"]:
        monkeypatch.delenv(name, raising=False)
    server = gateway(lambda body: Say(body=serve(body)))
    variable = case["input"]["profile"]["judge"]["api_key_env"]

    def with_key(profile: dict[str, Any]) -> dict[str, Any]:
        behind = {"base_url": server.base_url, "api_key_env": variable}
        return profile | behind if profile["role"] == "llm_judge" else profile

    config = with_profiles(small(agents=AGENTS), with_key)
    did = here("run", "-c", config)
    assert did.code == 1
    assert f"profile 'judge' takes its key from {variable}, which is not set" in did.stderr
    assert server.requests == case["right"]["requests_at_P"] == 0
    key = case["input"]["env"]["OPENAI_API_KEY"]
    for kept in [
        did.stderr,
        did.stdout,
        *(path.read_bytes().decode("latin-1") for path in tmp_path.glob("audit.*")),
    ]:
        assert key not in kept

    # And where no variable is named at all, this machine's gateway gets no key, least of all that one.
    did = here("run", "-c", small(server, agents=AGENTS))
    assert did.code == 0, did.stderr
    assert server.requests > 0
    assert not [headers for headers in server.headers if key in json.dumps(headers)]


def test_run_when_a_profile_has_no_key_for_a_gateway_elsewhere_then_it_ends_before_anything_is_begun(
    here: Any, small: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-company-123")
    elsewhere = {"base_url": "https://gateway.invalid/v1"}
    config = with_profiles(
        small(agents=AGENTS), lambda profile: profile | (elsewhere if profile["role"] == "llm_judge" else {})
    )
    did = here("run", "-c", config)
    assert did.code == 1
    assert "profile 'judge' names no key for https://gateway.invalid/v1" in did.stderr
    assert rows(tmp_path / "audit.db", "select * from audit_runs") == []


@pytest.mark.parametrize("verbose", [False, True])
def test_run_when_a_key_stands_in_the_file_then_it_is_used_with_a_warning_and_kept_and_shown_nowhere(
    verbose: bool, here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    count = 0

    def answer(body: dict[str, Any]) -> Say:
        """A gateway that tells everyone what it was sent, in answers and in errors."""
        nonlocal count
        count += 1
        if count % 7 == 0:
            return refusing(f"Incorrect API key provided: {KEY}", 401)
        if count % 5 == 0:
            return Say(text=f"You sent Bearer {KEY}, and <finished>", message={"refusal": KEY})
        return Say(body=serve(body) | {"system_fingerprint": KEY})

    server = gateway(answer)
    config = with_profiles(
        small(server, agents=AGENTS, max_error_rate=1.0), lambda profile: profile | {"api_key": KEY}
    )
    did = here(*(["-v"] if verbose else []), "run", "-c", config)
    assert did.code in (0, 4), did.stderr
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert "profile 'judge' holds its key in the file" in did.stderr
    assert "a key in the file" in did.stderr

    file = tmp_path / "audit.db"
    assert rows(file, "select count(*) from judge_logs where parse_status = 'error'") > [(0,)]
    assert rows(file, "select count(*) from judge_logs where raw_output like '%[key]%'") > [(0,)]
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("audit.db*"))
    exported = here("export", "logs", "-o", tmp_path / "logs.jsonl")
    assert exported.code == 0, exported.stderr
    shown = did.stdout + did.stderr + here("--json", "show", "latest").stdout
    shown += (tmp_path / "logs.jsonl").read_text(encoding="utf-8")
    for form in (KEY, json.dumps(KEY)[1:-1], KEY.replace("/", "\\/"), "sk-planted%2F4f1c%2B77%3D%3D"):
        assert form.encode() not in kept
        assert form not in shown


FAULTY = {
    "swap_rul": ("both_agree", "swap_rul: unknown key (did you mean swap_rule?)"),
    "llm_labels_count": ("false", "llm_labels_count: expected a valid boolean, found 'false'"),
    "trials": ("two", "trials: expected a valid integer, found 'two'"),
    "user": ("custumer", "user: there is no profile 'custumer' (did you mean customer?)"),
}


def test_run_when_the_config_has_many_faults_then_one_line_tells_them_all_and_no_database_is_made(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    config = with_profiles(
        small(**{key: value for key, (value, _) in FAULTY.items()}),
        lambda profile: profile | ({"model": 1.0} if profile["role"] == "llm_judge" else {}),
    )
    did = here("run", "-c", config)
    assert (did.code, did.stdout, len(did.stderr.splitlines())) == (1, "", 1)
    judge = next(
        index
        for index, profile in enumerate(yaml.safe_load(config.read_text(encoding="utf-8"))["profiles"])
        if profile["role"] == "llm_judge"
    )
    messages = [message for _, message in FAULTY.values()]
    for message in [*messages, f"profiles[{judge}].model: expected text: put it in quotes, found 1.0"]:
        assert message in did.stderr
    assert not list(tmp_path.glob("*.db"))


def test_key_when_it_stands_in_an_env_file_then_it_is_sent_and_kept_nowhere(
    here: Any,
    small: Callable[..., Path],
    gateway: Callable[..., ChatServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    server = gateway(lambda body: Say(body=serve(body)))

    def with_key(profile: dict[str, Any]) -> dict[str, Any]:
        behind = {"base_url": server.base_url, "api_key_env": "JUDGE_KEY"}
        return profile | behind if profile["role"] == "llm_judge" else profile

    config = with_profiles(small(agents=AGENTS), with_key)
    assert "JUDGE_KEY, which is not set" in here("run", "-c", config).stderr
    (tmp_path / ".env").write_text(f"export JUDGE_KEY='{KEY}'\n", encoding="utf-8")
    other = tmp_path / "other.env"
    other.write_text("JUDGE_KEY=sk-of-another-file\n", encoding="utf-8")
    # A shared option may stand before the command's name too, and a named file replaces `.env`.
    for args, sent in (
        (("run", "-c", config), KEY),
        (("--env-file", other, "-c", config, "run", "--new"), "sk-of-another-file"),
    ):
        server.headers.clear()
        did = here(*args)
        assert did.code == 0, did.stderr
        assert {headers["authorization"] for headers in server.headers} == {f"Bearer {sent}"}
        kept = [did.stdout, did.stderr, *(p.read_bytes().decode("latin-1") for p in tmp_path.glob("audit.*"))]
        assert not [text for text in kept if sent in text]
