"""`rewards`: outside rewards as CSV or JSON Lines."""

import gzip
from pathlib import Path

import pytest

from audit.doors.formats import rewards
from audit.words.errors import BadFile
from audit.words.records import OutsideReward

CSV = b"source_pair_id,reward_a,reward_b,gap,note\n007,1,0.5,,x\nNA,-1e1,2,0.25,\n"
JSONL = (
    b'{"source_pair_id":"007","reward_a":1,"reward_b":0.5}\n'
    b'{"source_pair_id":"NA","reward_a":-10.0,"reward_b":"2","gap":0.25,"note":"x"}\n'
)


def read(folder: Path, name: str, content: bytes) -> list[OutsideReward]:
    path = folder / name
    path.write_bytes(content)
    return list(rewards.read(path, None))


@pytest.mark.parametrize(
    ("name", "content", "first_line"),
    [
        ("rewards.csv", CSV, 2),
        ("rewards.csv.gz", gzip.compress(CSV, mtime=0), 2),
        ("rewards.jsonl", JSONL, 1),
        ("rewards.txt", JSONL, 1),
        ("rewards.jsonl.gz", gzip.compress(JSONL, mtime=0), 1),
    ],
    ids=["csv", "csv.gz", "jsonl", "another name", "jsonl.gz"],
)
def test_read_when_the_name_says_csv_then_it_is_csv_else_json_lines(
    tmp_path: Path, name: str, content: bytes, first_line: int
) -> None:
    assert read(tmp_path, name, content) == [
        OutsideReward(f"line {first_line}", "007", 1.0, 0.5, None),
        OutsideReward(f"line {first_line + 1}", "NA", -10.0, 2.0, 0.25),
    ]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ('"reward_a":1,"reward_b":0', "source_pair_id: is missing"),
        ('"source_pair_id":"p","reward_b":0', "reward_a: is missing"),
        ('"source_pair_id":"p","reward_a":1,"reward_b":null', "reward_b: is missing"),
        (
            '"source_pair_id":"p","reward_a":NaN,"reward_b":0',
            "reward_a: expected a finite number, found nan",
        ),
        (
            '"source_pair_id":"p","reward_a":1,"reward_b":-Infinity',
            "reward_b: expected a finite number, found -inf",
        ),
        (
            '"source_pair_id":"p","reward_a":1,"reward_b":0,"gap":-1',
            "gap: expected a number from 0 up, found -1",
        ),
        (
            '"source_pair_id":"p","reward_a":1,"reward_b":0,"gaps":1',
            "gaps: is not a known column; did you mean gap?",
        ),
    ],
)
def test_read_when_a_field_is_wrong_then_line_field_and_value_are_named(
    tmp_path: Path, fields: str, problem: str
) -> None:
    with pytest.raises(BadFile) as caught:
        read(tmp_path, "rewards.jsonl", JSONL + f"{{{fields}}}\n".encode())
    assert str(caught.value) == f"{tmp_path / 'rewards.jsonl'}, line 3: {problem}"
