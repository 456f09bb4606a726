"""Variables: what the environment sets, then what the env file says, and which of them it was."""

from pathlib import Path

import pytest

from audit.doors.environment import Environment, read_environment
from audit.words.errors import BadFile


def test_variable_when_set_in_both_then_the_environment_has_the_word_unless_it_is_empty() -> None:
    known = Environment({"A": "env", "B": "", "C": ""}, {"A": "file", "B": "file", "D": "file"}, ".env")
    assert dict(known) == {"A": "env", "B": "file", "C": "", "D": "file"}
    assert [known.origin(name) for name in "ABCDE"] == ["environment", ".env", "environment", ".env", None]
    assert len(known) == 4
    assert known.get("E") is None


def test_env_file_when_read_then_as_such_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PLAIN", "QUOTED", "SPACED", "DOLLAR", "HASH", "NOTHING"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "keys"
    file.write_text(
        "\ufeff# keys\nPLAIN=sk-1\nexport QUOTED='sk 2'\nSPACED = sk-3 # mine\nDOLLAR=a$PLAIN${PLAIN}\n"
        'HASH="a#b"\nNOTHING\n',
        encoding="utf-8",
    )
    known = read_environment(file)
    wanted = {"PLAIN": "sk-1", "QUOTED": "sk 2", "SPACED": "sk-3", "DOLLAR": "a$PLAIN${PLAIN}", "HASH": "a#b"}
    assert {name: known.get(name) for name in [*wanted, "NOTHING"]} == wanted | {"NOTHING": None}
    assert known.origin("PLAIN") == str(file)


def test_env_file_when_not_named_then_it_is_the_one_here_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    assert read_environment().get("JUDGE_KEY") is None
    (tmp_path / ".env").write_text("JUDGE_KEY=sk-here\n")
    assert read_environment().get("JUDGE_KEY") == "sk-here"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "no such file: --env-file names a file of lines such as JUDGE_KEY=..."),
        (b"A=1\n= sk-secret\n", "line 2: expected NAME=value"),
        (b"A='sk-secret\n", "line 1: expected NAME=value"),
        (b"A=\xff\xfe", "cannot be read: UnicodeDecodeError"),
    ],
)
def test_env_file_when_it_is_none_then_one_line_says_where_and_shows_no_value(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BadFile) as caught:
        read_environment(file)
    assert str(caught.value).endswith(why)
    assert "sk-secret" not in str(caught.value)
