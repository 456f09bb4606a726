"""Training files: whole, streamed, and in a form that loads whatever the order of the rows."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from audit.doors.dataset import Field, JsonlRows, checked, open_rows
from audit.doors.tables import whole_files
from audit.words.errors import BadFile

FIELDS = [Field("prompt", "messages"), Field("pair_id", "text"), Field("gap", "real"), Field("label", "flag")]


def row(number: int, text: str = "x", **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": text, **more}
    return {
        "prompt": [message] * (number % 3),
        "pair_id": f"p{number}",
        "gap": None,
        "label": number % 2 == 0,
    }


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("rare", [[], [0], [1], [3, 4], [40], [39, 41, 70], [79]])
@pytest.mark.parametrize("size", [10, 100_000])  # within what is held back, and far beyond
def test_jsonl_when_rows_of_a_new_kind_come_late_then_they_stand_first_and_all_others_in_order(
    tmp_path: Path, rare: list[int], size: int
) -> None:
    made = [row(number, "é" * size) for number in range(80)]
    rows = JsonlRows(tmp_path / "rows")
    for number, one in enumerate(made):
        rows.add(one, 1 << rare.index(number) if number in rare else 0)
    rows.finish()

    found = read(tmp_path / "rows")
    first = [made[number] for number in rare]
    assert found[: len(rare)] == first
    assert found[len(rare) :] == [one for number, one in enumerate(made) if number not in rare]
    assert rows.count == 80
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_jsonl_when_a_kind_was_seen_then_its_next_row_stays_where_it_is(tmp_path: Path) -> None:
    rows = JsonlRows(tmp_path / "rows")
    for number, kinds in enumerate([0, 3, 0, 1, 2, 4]):
        rows.add(row(number), kinds)
    rows.finish()
    assert [one["pair_id"] for one in read(tmp_path / "rows")] == ["p1", "p5", "p0", "p2", "p3", "p4"]


def test_parquet_when_written_in_several_groups_then_holds_every_message_as_json(tmp_path: Path) -> None:
    made = [row(number, f"{number}é\0", deep={"n": [number, 0.5, None]}) for number in range(12_001)]
    rows = open_rows(tmp_path / "x.parquet", tmp_path / "rows", FIELDS)
    for one in made:
        rows.add(one)
    rows.finish()

    file = pq.ParquetFile(tmp_path / "rows")
    found = file.read().to_pylist()
    assert file.num_row_groups == 3
    assert [one | {"prompt": [json.loads(text) for text in one["prompt"]]} for one in found] == made
    assert str(file.schema_arrow.field("prompt").type) == "list<element: extension<arrow.json>>"


def test_parquet_when_nothing_is_written_then_its_columns_are_there(tmp_path: Path) -> None:
    rows = open_rows(tmp_path / "x.parquet", tmp_path / "rows", FIELDS)
    rows.finish()
    assert pq.read_table(tmp_path / "rows").column_names == ["prompt", "pair_id", "gap", "label"]


def test_numbers_when_too_big_for_64_bits_then_are_written_all_the_same(tmp_path: Path) -> None:
    huge = {"prompt": [{"n": 2**70}], "pair_id": "p", "gap": 1.0, "label": True}
    for ending in (".jsonl", ".parquet"):
        rows = open_rows(Path(f"x{ending}"), tmp_path / "rows", FIELDS)
        rows.add(huge)
        rows.finish()
        if ending == ".jsonl":
            assert read(tmp_path / "rows") == [huge]
        else:
            (text,) = pq.read_table(tmp_path / "rows").to_pylist()[0]["prompt"]
            assert json.loads(text) == {"n": 2**70}


def test_file_when_its_ending_says_no_format_then_is_refused() -> None:
    with pytest.raises(
        BadFile, match=r"^pairs\.csv: its ending says no format: use one of \.jsonl, \.parquet$"
    ):
        checked(Path("pairs.csv"))


def write(folder: Path, *names: str, then: Exception | None = None) -> None:
    with whole_files() as beside:
        for name in names:
            beside(folder / name).write_text("new")
        if then:
            raise then


def test_files_when_one_cannot_be_written_then_none_appears(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    with pytest.raises(BadFile, match=r"gone/b: cannot be written: No such file"):
        write(tmp_path, "old", "a", "gone/b")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "old"


def test_files_when_something_else_fails_then_none_appears(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        write(tmp_path, "a", then=ZeroDivisionError())
    assert list(tmp_path.iterdir()) == []


def test_files_when_all_is_well_then_all_take_their_places(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with whole_files() as beside:
        for name in "ab":
            beside(tmp_path / name).write_text(name)
            assert not (tmp_path / "b").exists()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "a", "b": "b"}
