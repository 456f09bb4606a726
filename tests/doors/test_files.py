"""The door to files: what is read comes through unchanged, and what is broken is named by file and place."""

import gzip
from pathlib import Path

import pytest

from audit.doors.files import csv_rows, json_array, json_lines, lines, sha256, stem
from audit.words.errors import BadFile

BOM = b"\xef\xbb\xbf"


def written(folder: Path, content: bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def complaint(caught: pytest.ExceptionInfo[BadFile], path: Path) -> str:
    """The whole error with the file's name, which is the test's own, put short."""
    return str(caught.value).replace(str(path), "FILE")


def test_sha256_then_it_is_the_digest_of_the_bytes_on_disk(tmp_path: Path) -> None:
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256(written(tmp_path, b"abc")) == digest


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("runs.jsonl", "runs"),
        ("a.b.json.gz", "a.b"),
        ("gpt-3.5-turbo.csv", "gpt-3.5-turbo"),
        ("notes.txt", "notes.txt"),
        ("v1.2.jsonl.gz", "v1.2"),
    ],
)
def test_stem_then_only_the_endings_that_name_a_format_go(name: str, expected: str) -> None:
    assert stem(Path("somewhere", name)) == expected


@pytest.mark.parametrize("name", ["plain", "packed.gz"])
def test_lines_when_the_file_is_plain_or_packed_then_they_are_the_same(tmp_path: Path, name: str) -> None:
    content = BOM + b"one\r\ntwo\n\n" + BOM + b"four"
    path = written(tmp_path, gzip.compress(content) if name.endswith(".gz") else content, name)
    assert list(lines(path)) == [(1, b"one\r\n"), (2, b"two\n"), (3, b"\n"), (4, BOM + b"four")]


def test_lines_when_a_progress_is_given_then_it_is_told_bytes_of_the_file_on_disk(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(b"line\n" * 5000), "many.gz")
    told: list[int] = []
    assert len(list(lines(path, told.append))) == 5000
    assert told == sorted(told)
    assert len(told) == 5000 // 512
    assert 0 < told[-1] <= path.stat().st_size


PACKED = gzip.compress(b"line\n" * 3, mtime=0)
BROKEN_GZIP = {
    "none": (b"no gzip at all", "FILE: cannot be read: Not a gzipped file (b'no')"),
    "cut": (
        PACKED[:-4],
        "FILE, line 4: cannot be read: Compressed file ended before the end-of-stream marker was reached",
    ),
    "flipped": (
        PACKED[:-8] + b"\0" * 8,
        "FILE, line 4: cannot be read: CRC check failed 0x0 != 0x724d9944",
    ),
    "trailing": (PACKED + b"more", "FILE, line 4: cannot be read: Not a gzipped file (b'mo')"),
    "damaged": (
        PACKED[:10] + b"\xff" * 20,
        "FILE: cannot be read: Error -3 while decompressing data: invalid block type",
    ),
}


@pytest.mark.parametrize(("content", "expected"), BROKEN_GZIP.values(), ids=BROKEN_GZIP)
def test_lines_when_gzip_is_broken_then_it_says_at_which_line(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    path = written(tmp_path, content, "broken.gz")
    with pytest.raises(BadFile) as caught:
        list(lines(path))
    assert complaint(caught, path) == expected


@pytest.mark.parametrize("read", [sha256, lambda p: list(lines(p)), json_array, lambda p: list(csv_rows(p))])
def test_reading_when_there_is_no_file_then_it_says_so(tmp_path: Path, read: object) -> None:
    with pytest.raises(BadFile) as caught:
        read(tmp_path / "none")  # type: ignore[operator]
    assert complaint(caught, tmp_path / "none") == "FILE: no such file"
    with pytest.raises(BadFile) as caught:
        read(tmp_path)  # type: ignore[operator]
    assert complaint(caught, tmp_path) == "FILE: cannot be read: Is a directory"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (BOM, []),
        (b"\n  \n\r\n", []),
        (b'{"a":1}\n\n{"a":2}', [(1, {"a": 1}), (3, {"a": 2})]),
        (BOM + b'{"a":1}\r\n', [(1, {"a": 1})]),
        ('{"a":"ü\u2028ü"}\n'.encode(), [(1, {"a": "ü\u2028ü"})]),
        (b'{"a":"\\u0000"}', [(1, {"a": "\0"})]),
        (b'{"a":"\\ud83d\\ude00"}', [(1, {"a": "\U0001f600"})]),
        # Lone surrogates are what a log of bytes holds; the faster library refuses them.
        (b'{"a":"\\ud800"}', [(1, {"a": "\ud800"})]),
        # The last of two equal keys counts, for every reader of JSON.
        (b'{"a":{"b":1},"b":{"b":2,"c":"a"}}', [(1, {"a": {"b": 1}, "b": {"b": 2, "c": "a"}})]),
        (b'{"a":18446744073709551615}', [(1, {"a": 2**64 - 1})]),
        (b'{"a":-0.0}', [(1, {"a": -0.0})]),
    ],
)
def test_json_lines_when_each_line_is_an_object_then_it_comes_with_its_number(
    tmp_path: Path, content: bytes, expected: object
) -> None:
    assert list(json_lines(written(tmp_path, content))) == expected


def test_json_lines_when_a_number_is_none_then_the_check_of_its_field_sees_it(tmp_path: Path) -> None:
    found = dict(json_lines(written(tmp_path, b'{"a":NaN}\n{"a":-Infinity}\n')))
    assert str(found) == "{1: {'a': nan}, 2: {'a': -inf}}"


BROKEN_LINES = [
    (b'{"a":1}\n{"a":', "FILE, line 2 column 6: not valid JSON: Expecting value"),
    (b'{"a":1}\n{"a":"b\n', "FILE, line 2 column 6: not valid JSON: Unterminated string starting at"),
    (b'{"a":1} {"a":2}\n', "FILE, line 1 column 9: not valid JSON: Extra data"),
    (
        b"{'a':1}\n",
        "FILE, line 1 column 2: not valid JSON: Expecting property name enclosed in double quotes",
    ),
    (b'{"a":1}\n[1]\n', "FILE, line 2: expected a JSON object, found an array"),
    (b"1\n", "FILE, line 1: expected a JSON object, found a number"),
    (b"true\n", "FILE, line 1: expected a JSON object, found a boolean"),
    (b"null\n", "FILE, line 1: expected a JSON object, found null"),
    (b'"a"\n', "FILE, line 1: expected a JSON object, found a string"),
    ('{"a":"ü"}'.encode()[:-3], "FILE, line 1: not UTF-8: byte 0xc3"),
    ('{"a":1}\n'.encode("utf-16"), "FILE, line 1: not UTF-8: byte 0xff"),
    (b"pair_id,reward_a\n", "FILE, line 1 column 1: not valid JSON: Expecting value"),
    (b'{"a":' + b"[" * 100_000, "FILE, line 1: JSON that is nested too deep to be read"),
    (b'\n{"a":' + b"1" * 5000 + b"," * 2, "FILE, line 2: JSON with a number too long to be read"),
]


@pytest.mark.parametrize(("content", "expected"), BROKEN_LINES, ids=range(len(BROKEN_LINES)))
def test_json_lines_when_a_line_is_broken_then_it_is_named(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(BadFile) as caught:
        list(json_lines(path))
    assert complaint(caught, path) == expected


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("end.jsonl", b'{"id":1}\n{"id":2}\n{"id":3,"raw":"abc\n\n', 3),
        ("middle.jsonl", b'{"id":1}\n{"id":2,"ra\n{"id":3}\n', 2),
    ],
)
def test_json_lines_when_a_crash_left_half_a_line_then_that_line_is_named(
    tmp_path: Path, name: str, content: bytes, line: int
) -> None:
    """Case ST-03."""
    with pytest.raises(
        BadFile, match=rf"{name}, line {line} column \d+: not valid JSON: Unterminated string"
    ):
        list(json_lines(written(tmp_path, content, name)))


def test_json_array_when_it_is_read_then_its_objects_come_back(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(BOM + b'[{"a":1},\r\n{"b":"\\ud800"}]'), "array.json.gz")
    assert json_array(path) == [{"a": 1}, {"b": "\ud800"}]
    assert json_array(written(tmp_path, b"[]")) == []


BROKEN_ARRAYS = [
    (b"", "FILE, line 1 column 1: not valid JSON: Expecting value"),
    (b'[{"a":1},\n{"a":', "FILE, line 2 column 6: not valid JSON: Expecting value"),
    (b'[{"a":1}]\n[]', "FILE, line 2 column 1: not valid JSON: Extra data"),
    (b'{"a":1}', "FILE: expected a JSON array, found an object"),
    (b'[{"a":1},2]', "FILE, [1]: expected a JSON object, found a number"),
    (b'[{"a":1},\n"\xff"]', "FILE, line 2: not UTF-8: byte 0xff"),
    (b"[" * 100_000, "FILE, line 1: JSON that is nested too deep to be read"),
    (b'[{"a":' + b"1" * 5000 + b"}]", "FILE, line 1: JSON with a number too long to be read"),
]


@pytest.mark.parametrize(("content", "expected"), BROKEN_ARRAYS, ids=range(len(BROKEN_ARRAYS)))
def test_json_array_when_it_is_broken_then_the_place_is_named(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(BadFile) as caught:
        json_array(path)
    assert complaint(caught, path) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b\n1,2\n", [(2, {"a": "1", "b": "2"})]),
        ("\ufeffa, b \r\n1, 2\r\n", [(2, {"a": "1", "b": " 2"})]),
        ('a,b\n"x\r\ny, ""z""",2\n\n3,4', [(2, {"a": 'x\r\ny, "z"', "b": "2"}), (5, {"a": "3", "b": "4"})]),
        (
            "id\n007\nNA\nnull\n1e5\n",
            [(2, {"id": "007"}), (3, {"id": "NA"}), (4, {"id": "null"}), (5, {"id": "1e5"})],
        ),
        ("a\n" + "x" * 200_000 + "\n", [(2, {"a": "x" * 200_000})]),
        ("a,b\n", []),
    ],
    ids=["plain", "bom and crlf", "quoted newlines", "ids", "long field", "header only"],
)
def test_csv_rows_when_it_is_read_then_cells_are_the_text_that_stands_there(
    tmp_path: Path, content: str, expected: object
) -> None:
    assert list(csv_rows(written(tmp_path, content.encode()))) == expected


BROKEN_CSV = [
    (b"", "FILE: is empty: expected a header line with column names"),
    (b"\n1,2\n", "FILE, line 1: expected a header line with column names"),
    (b"a,b,a\n1,2,3\n", "FILE, line 1: column 'a' stands twice in the header"),
    (b"a,b\n1,2\n3\n", "FILE, line 3: 1 fields, but the header names 2"),
    (b'a,b\n"x\ny",2\n3,4,5\n', "FILE, line 4: 3 fields, but the header names 2"),
    (b'a,b\n1,2\n3,"4\n5,6\n', "FILE, line 3: not valid CSV: unexpected end of data"),
    (b'a,b\n"1"x,2\n', "FILE, line 2: not valid CSV: ',' expected after '\"'"),
    (b"a,b\n1,\xc3\n", "FILE, line 2: not UTF-8: byte 0xc3"),
    ("a,b\n1,2\n".encode("utf-16"), "FILE, line 1: not UTF-8: byte 0xff"),
    (
        b"a,b\r1,2\r",
        "FILE, line 1: not valid CSV: a carriage return outside quotes: write line ends as LF or CRLF",
    ),
]


@pytest.mark.parametrize(("content", "expected"), BROKEN_CSV, ids=range(len(BROKEN_CSV)))
def test_csv_rows_when_it_is_broken_then_the_line_where_the_row_begins_is_named(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(BadFile) as caught:
        list(csv_rows(path))
    assert complaint(caught, path) == expected
