"""Written files hold what was given, appear whole or not at all, and are safe to open in a spreadsheet."""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.doors.tables import cell, csv_writer, write_csv, write_table, write_text
from audit.words.errors import BadFile, MissingExtra

COLUMNS = ("name", "count", "share")
KINDS = ("text", "integer", "real")
ROWS = [
    ("plain", 1, 0.5),
    ("007", 0, 0.1),
    ("NA", None, None),
    (None, -3, -1e-9),
    ("", 2**53 + 1, 1e300),
    ('quoted "text", with\na line and\r\nanother', 4, 4.0),
    ("平局 → ☃ 🙂 e\u0301", 5, 0.30000000000000004),
    ("\u202eright to left\u2028", 6, 1 / 3),
    ("t\r'=HYPERLINK(1)", 7, 7.0),
    ("ends in\r", 8, 8.0),
    ("\n", 9, 9.0),
]


def read_csv(path: Path) -> list[tuple[Any, ...]]:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == COLUMNS
    return [
        (name, int(count) if count else None, float(share) if share else None) for name, count, share in rows
    ]


def read_jsonl(path: Path) -> list[tuple[Any, ...]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    assert all(tuple(row) == COLUMNS for row in rows)
    return [tuple(row.values()) for row in rows]


def read_parquet(path: Path) -> list[tuple[Any, ...]]:
    table = pq.read_table(path)
    assert [str(field.type) for field in table.schema] == ["string", "int64", "double"]
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("ending", "read"), [(".csv", read_csv), (".jsonl", read_jsonl), (".parquet", read_parquet)]
)
def test_table_when_written_then_the_same_values_are_read(
    tmp_path: Path, ending: str, read: Callable[[Path], list[tuple[Any, ...]]]
) -> None:
    path = tmp_path / f"out{ending}"

    assert write_table(path, COLUMNS, ROWS, KINDS) == len(ROWS)

    # CSV has no word for NULL that differs from the empty text.
    null = "" if ending == ".csv" else None
    expected = [(null if name is None else name, count, share) for name, count, share in ROWS]
    found = read(path)
    assert found == expected
    assert [[type(value) for value in row] for row in found] == [
        [type(value) for value in row] for row in expected
    ]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_table_when_it_has_no_rows_then_a_file_without_rows_is_written(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out{ending}"

    assert write_table(path, COLUMNS, [], KINDS) == 0
    if ending == ".parquet":
        assert pq.read_table(path).column_names == list(COLUMNS)
    else:
        assert path.read_text() == ("name,count,share\n" if ending == ".csv" else "")


def test_table_when_text_is_no_utf8_then_json_keeps_it_and_the_others_show_its_code(tmp_path: Path) -> None:
    text = "cut \ud83d off\x00 and on"

    for ending in (".csv", ".jsonl", ".parquet"):
        write_table(tmp_path / f"out{ending}", COLUMNS, [(text, 1, 1.0)], KINDS)

    assert read_jsonl(tmp_path / "out.jsonl")[0][0] == text
    assert read_csv(tmp_path / "out.csv")[0][0] == "cut \\ud83d off\x00 and on"
    assert read_parquet(tmp_path / "out.parquet")[0][0] == "cut \\ud83d off\x00 and on"


@pytest.mark.parametrize(
    "sign",
    [
        "=",
        "+",
        "-",
        "@",
        "\t",
        "\r",
        "＝",
        "＋",
        "－",
        "＠",
        " =",
        "\n+",
        "\x00@",
        "\u3000-",
        "\ufeff\u200b=",
        "\x0b \x1f＝",
    ],
)
def test_cell_when_a_spreadsheet_would_run_it_then_an_apostrophe_stops_that(sign: str) -> None:
    assert cell(f"{sign}1+cmd|' /C calc'!A0") == f"'{sign}1+cmd|' /C calc'!A0"


@pytest.mark.parametrize("value", ["a=b", " a=1", "'=1", " ", "(=1)", "", None, -1, -0.5, 1e300, True])
def test_cell_when_it_is_no_formula_then_it_stays(value: object) -> None:
    assert cell(value) is value


def test_csv_when_it_is_for_a_program_then_every_text_is_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"

    assert write_csv(path, COLUMNS, [("@org/model", 1, 0.5), ("=x", None, None)]) == 2
    assert path.read_bytes() == b"name,count,share\n@org/model,1,0.5\n=x,,\n"


@settings(max_examples=200)
@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=2), max_size=4))
def test_csv_when_fields_hold_anything_then_another_program_reads_the_same_rows(
    rows: list[list[str]],
) -> None:
    buffer = io.StringIO()
    csv_writer(buffer).writerows(rows)

    assert list(csv.reader(io.StringIO(buffer.getvalue(), newline=""), strict=True)) == rows


def broken_rows() -> Iterator[tuple[str, int, float]]:
    yield "a", 1, 0.5
    raise KeyboardInterrupt


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_table_when_writing_is_broken_off_then_the_old_file_stays_and_nothing_else(
    tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"out{ending}"
    path.write_text("the old one")

    with pytest.raises(KeyboardInterrupt):
        write_table(path, COLUMNS, broken_rows(), KINDS)
    assert path.read_text() == "the old one"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_table_when_the_disk_takes_no_more_then_the_error_says_so_and_nothing_is_left(
    tmp_path: Path, ending: str
) -> None:
    # A process of its own: the limit cannot be lifted again.
    code = (
        "import os, resource, sys\n"
        "from pathlib import Path\n"
        "from audit.doors.tables import write_table\n"
        "from audit.words.errors import BadFile\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "rows = ((os.urandom(500).hex(), i, i / 3) for i in range(3000))\n"
        "try:\n"
        f"    write_table(Path(sys.argv[1]), {COLUMNS!r}, rows, {KINDS!r})\n"
        "except BadFile as error:\n"
        "    print(error)\n"
    )
    path = tmp_path / f"out{ending}"
    ran = subprocess.run(
        [sys.executable, "-c", code, path],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert ran.stderr == ""
    assert ran.stdout.startswith(f"{path}: cannot be written: ")
    assert ran.stdout.endswith("File too large\n")
    assert list(tmp_path.iterdir()) == []


def test_table_when_its_place_is_none_then_the_error_names_it(tmp_path: Path) -> None:
    (tmp_path / "file.csv").write_text("x")
    (tmp_path / "folder.csv").mkdir()
    places = {
        tmp_path / "none" / "x.csv": f"there is no folder {tmp_path / 'none'}: make it first",
        tmp_path / "none" / "x.parquet": f"there is no folder {tmp_path / 'none'}: make it first",
        tmp_path / "file.csv" / "x.csv": f"there is no folder {tmp_path / 'file.csv'}: make it first",
        tmp_path / "folder.csv": "cannot be written: Is a directory",
        tmp_path / f"{'x' * 250}.csv": "cannot be written: File name too long",
        tmp_path / "x.txt": "its ending says no format: use one of .jsonl, .csv, .parquet",
        tmp_path / "x": "its ending says no format: use one of .jsonl, .csv, .parquet",
    }
    for path, message in places.items():
        with pytest.raises(BadFile) as caught:
            write_table(path, COLUMNS, ROWS, KINDS)
        assert str(caught.value) == f"{path}: {message}"
    with pytest.raises(BadFile) as caught:
        write_csv(tmp_path / "x.parquet", COLUMNS, ROWS)
    assert str(caught.value).endswith(": it is written as CSV: name a file that ends in .csv")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file.csv", "folder.csv"]


def test_text_when_written_then_it_stands_there_whole_and_takes_no_other_things_place(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    for text in ("older and longer", "é \ud800\r\n"):
        write_text(path, text)
        assert path.read_bytes() == text.encode("utf-8", "backslashreplace")
    os.mkfifo(tmp_path / "pipe")
    for place, problem in {
        tmp_path: "cannot be written: Is a directory",
        Path("/"): "cannot be written: Is a directory",
        Path(): "cannot be written: Is a directory",
        Path("/dev/null"): "is no regular file, and would be replaced by one: name another",
        tmp_path / "pipe": "is no regular file, and would be replaced by one: name another",
        tmp_path / "none" / "page.html": "cannot be written: No such file or directory",
    }.items():
        with pytest.raises(BadFile) as caught:
            write_text(place, "text")
        assert str(caught.value) == f"{place}: {problem}"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["page.html", "pipe"]


def test_parquet_when_its_library_is_not_installed_then_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(MissingExtra) as caught:
        write_table(tmp_path / "out.parquet", COLUMNS, ROWS, KINDS)
    assert str(caught.value) == (
        "a .parquet file needs pyarrow, which is not installed: pip install 'reward-audit[parquet]'"
    )
    assert list(tmp_path.iterdir()) == []
