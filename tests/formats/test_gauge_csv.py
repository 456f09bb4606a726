"""`gauge-csv`: one session a line, every value kept."""

import json
from pathlib import Path

import pytest

from audit.doors.formats import gauge_csv
from audit.words.errors import BadFile
from audit.words.records import ImportedSession

HEADER = ",".join(gauge_csv.COLUMNS)


def read(folder: Path, *lines: str) -> list[ImportedSession]:
    path = folder / "gauge.csv"
    path.write_text("\n".join(lines) + "\n")
    return list(gauge_csv.read(path, None))


def test_read_when_a_session_is_complete_then_every_value_is_kept(tmp_path: Path) -> None:
    (session,) = read(tmp_path, HEADER + ",task_id", "r1,sim,judge,agent,0.875,true,10,20,30,0.25,007")
    assert session == ImportedSession(
        place="line 2",
        task_id="007",
        agent="agent",
        success=1,
        satisfaction=0.875,
        judge_flip=0.25,
        prompt_tokens=10,
        completion_tokens=20,
        total_tokens=30,
        source_json='{"run_id":"r1","sim_user_model":"sim","judge_model":"judge"}',
    )


def test_read_when_values_are_unknown_then_they_are_null_and_not_zero(tmp_path: Path) -> None:
    (session,) = read(tmp_path, HEADER, ",,,agent,,,,,,")
    assert session._replace(place="", source_json="") == ImportedSession(
        "", None, "agent", None, None, None, None, None, None, ""
    )
    assert json.loads(session.source_json) == {"run_id": None, "sim_user_model": None, "judge_model": None}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("true", 1),
        ("False", 0),
        ("yes", 1),
        ("no", 0),
        ("1", 1),
        ("0", 0),
        ("0.5", 0.5),
        (" 0.25 ", 0.25),
        ("", None),
    ],
)
def test_read_when_the_flip_is_a_flag_or_a_rate_then_it_is_a_rate(
    tmp_path: Path, written: str, expected: float | None
) -> None:
    (session,) = read(tmp_path, HEADER, f"r,s,j,agent,0.5,1,1,1,2,{written}")
    assert session.judge_flip == expected


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("r,s,j,,0.5,1,1,1,2,0", "agent_model: is missing"),
        ("r,s,j,a,1.5,1,1,1,2,0", "satisfaction: expected a number from 0 to 1, found '1.5'"),
        ("r,s,j,a,-0.1,1,1,1,2,0", "satisfaction: expected a number from 0 to 1, found '-0.1'"),
        ("r,s,j,a,nan,1,1,1,2,0", "satisfaction: expected a finite number, found 'nan'"),
        ("r,s,j,a,0.5,done,1,1,2,0", "task_success: expected true or false, found 'done'"),
        (
            "r,s,j,a,0.5,1,1.5,1,2,0",
            "prompt_tokens: expected a whole number from 0 to 10^15, found '1.5'",
        ),
        ("r,s,j,a,0.5,1,1,1,-2,0", "total_tokens: expected a whole number from 0 to 10^15, found '-2'"),
        ("r,s,j,a,0.5,1,1,1,2,maybe", "judge_flip: expected a finite number, found 'maybe'"),
        ("r,s,j,a,0.5,1,1,1,2,2", "judge_flip: expected a number from 0 to 1, found '2'"),
    ],
)
def test_read_when_a_value_is_wrong_then_line_column_and_value_are_named(
    tmp_path: Path, line: str, problem: str
) -> None:
    with pytest.raises(BadFile) as caught:
        read(tmp_path, HEADER, "r,s,j,a,0.5,1,1,1,2,0", line)
    assert str(caught.value) == f"{tmp_path / 'gauge.csv'}, line 3: {problem}"


@pytest.mark.parametrize("column", gauge_csv.COLUMNS)
def test_read_when_a_column_is_not_in_the_header_then_it_is_named(tmp_path: Path, column: str) -> None:
    header = [name for name in gauge_csv.COLUMNS if name != column]
    with pytest.raises(BadFile) as caught:
        read(tmp_path, ",".join(header), ",".join("1" for _ in header))
    problem = f"line 2: {column}: is missing: the header does not name it"
    assert str(caught.value) == f"{tmp_path / 'gauge.csv'}, {problem}"


def test_read_when_a_column_looks_like_a_slip_then_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile) as caught:
        read(tmp_path, HEADER + ",taskid", "r,s,j,a,0.5,1,1,1,2,0,t")
    problem = "line 2: taskid: is not a known column; did you mean task_id?"
    assert str(caught.value) == f"{tmp_path / 'gauge.csv'}, {problem}"
