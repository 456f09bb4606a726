"""What is said of a run: whole lines for a log, on a terminal broken between words at its width."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audit.faces.output import tell

CHECKOUT = Path(__file__).parents[2]
LONG = "warning: " + "judge and simulated user are one model, " * 4 + "end"


def test_tell_when_nobody_looks_then_it_is_one_whole_line_without_what_drives_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell(LONG, err=True, hanging=9)
    tell("a\x1b[2J\nb")

    assert capsys.readouterr() == ("a\\x1b[2J⏎b\n", LONG + "\n")


def on_a_terminal(columns: int, *args: str, folder: Path) -> list[str]:
    """The lines that the command says on a terminal that is so wide."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    env |= {"PYTHONPATH": str(CHECKOUT), "REWARD_AUDIT_DB": f"sqlite:///{folder}/audit.db", "TERM": "xterm"}
    cwd = folder / "cwd"
    cwd.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "audit", *args]
    with subprocess.Popen(command, cwd=cwd, env=env, stdin=inner, stdout=inner, stderr=inner) as process:
        os.close(inner)
        said = b""
        while True:
            try:
                part = os.read(outer, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
        process.wait(30)
    os.close(outer)
    return said.decode().replace("\r\n", "\n").splitlines()


PAIRS = "pair_id,agent_a,agent_b,reward_a,reward_b,pref_ab,pref_ba\n" + "".join(
    f"p{number},ash,elm,1,0,{'AB'[number % 2]},A\n" for number in range(8)
)


def test_lines_of_gate_and_score_when_on_a_terminal_then_they_are_broken_between_words(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "judged.csv"
    file.write_text(PAIRS, encoding="utf-8")
    assert cli("import", "csv", file).code == 0
    (tmp_path / "cwd" / "limits.yaml").write_text(
        "gate:\n  misselected_of_decidable: {max: 0.2, by: upper}\n  drift: {max: 0.03}\n", encoding="utf-8"
    )
    for args in (("gate", "-c", "limits.yaml"), ("score", "--gap-source", "session")):
        piped = cli(*args)
        shown = on_a_terminal(60, *args, folder=tmp_path)
        assert max(map(len, shown)) <= 60, shown
        whole = " ".join((piped.stdout + piped.stderr).split())
        assert " ".join(" ".join(shown).split()) == whole
    assert max(map(len, cli("gate", "-c", "limits.yaml").stdout.splitlines())) > 80


def test_run_when_it_begins_on_a_terminal_then_no_line_is_broken_within_a_word(tmp_path: Path) -> None:
    shown = on_a_terminal(50, "run", "--sample", "4", "--json", folder=tmp_path)

    roles = next(number for number, line in enumerate(shown) if line.startswith("judge  judge: "))
    assert shown[roles : roles + 2] == [
        "judge  judge: judge-80-pos10 at",
        "       offline://synthetic, no key",
    ]
