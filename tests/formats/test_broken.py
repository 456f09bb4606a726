"""A file is taken whole or not at all: every kind of damage, and bad input made up to break the importers.

Each file ends in one error that names file, place and field, or in a right import; nothing of a refused file
is in any table. All cases of a database run in one test: together they prove that the database stays empty.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Engine, text

from audit.doors.db import open_database, reading
from audit.doors.formats import gauge_csv
from audit.pipeline.importing import Wish, import_file
from audit.words.errors import BadFile
from audit.words.schema import metadata

NO_PAIR_ID = (
    "FILE, line 1: the header names no pair_id, only %s: "
    "name the columns as `reward-audit import --help` lists them, with commas between them"
)

JUDGED = {"judgment": {"judge_model": "j", "prompt": "p", "response": "r"}, "decision": "A>B"}
JUDGEBENCH = {
    "pair_id": "p1",
    "source": "mmlu-pro-law",
    "question": "q",
    "response_model": "m",
    "response_A": "a",
    "response_B": "b",
    "label": "A>B",
    "judge_name": "arena_hard",
    "judgments": [JUDGED, JUDGED],
}
SWAPPED = {"completion": ["Output (a)", "stop"], "winner": "1"}
LLMBAR = {
    "input": "q",
    "output_1": "one",
    "output_2": "two",
    "label": 1,
    "results": [{"swap = False": SWAPPED, "swap = True": SWAPPED}],
}
GAUGE = ",".join(gauge_csv.COLUMNS)


class Case(NamedTuple):
    """A file that is refused with `error`, or, where that is None, taken with one pair."""

    format: str
    content: bytes
    error: str | None
    suffix: str = ""


def without(record: dict[str, Any], field: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != field}


def judgebench(error: str, **fields: Any) -> Case:
    """Three records, the second of them damaged."""
    records = [JUDGEBENCH, JUDGEBENCH | {"pair_id": "p2"} | fields, JUDGEBENCH | {"pair_id": "p3"}]
    records = [{key: value for key, value in record.items() if value is not ...} for record in records]
    return Case("judgebench", b"\n".join(json.dumps(record).encode() for record in records), error)


def llmbar(error: str, record: dict[str, Any]) -> Case:
    return Case("llmbar", json.dumps([LLMBAR, record]).encode(), error)


def jsonl(error: str | None, *lines: str | bytes) -> Case:
    content = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines)
    return Case("jsonl", content, error)


def csv(error: str | None, *lines: str | bytes) -> Case:
    return jsonl(error, *lines)._replace(format="csv")


def gauge(error: str, *lines: str) -> Case:
    return jsonl(error, *lines)._replace(format="gauge-csv")


NO_DECISION = without(JUDGED, "decision")
DAMAGED = {
    "jsonl cut": jsonl(
        "FILE, line 2 column 12: not valid JSON: Unterminated string starting at",
        '{"pair_id":"p1"}',
        '{"pair_id":"p2',
    ),
    "jsonl cut in a character": jsonl(
        "FILE, line 2: not UTF-8: byte 0xc3", '{"pair_id":"p1"}', '{"pair_id":"ü"}'.encode()[:-3]
    ),
    "jsonl no key": jsonl("FILE, line 2: pair_id: is missing", '{"pair_id":"p1"}', "{}", '{"pair_id":"p3"}'),
    "jsonl wrong type": jsonl(
        "FILE, line 2: trial: expected a whole number from 0 to 10^15, found 'two'",
        '{"pair_id":"p1"}',
        '{"pair_id":"p2","trial":"two"}',
    ),
    "jsonl NaN reward": jsonl(
        "FILE, line 2: reward_a: expected a finite number, found nan",
        '{"pair_id":"p1"}',
        '{"pair_id":"p2","reward_a":NaN}',
    ),
    "jsonl infinite reward": jsonl(
        "FILE, line 1: reward_b: expected a finite number, found -inf", '{"pair_id":"p","reward_b":-Infinity}'
    ),
    "jsonl twice": jsonl(
        "FILE, line 3: pair_id 'p1' of judge 'judge' stands at line 1 already",
        '{"pair_id":"p1"}',
        '{"pair_id":"p2"}',
        '{"pair_id":"p1"}',
    ),
    "jsonl slip": jsonl(
        "FILE, line 1: reward_A: is not a known column; did you mean reward_a?",
        '{"pair_id":"p","reward_A":1}',
    ),
    "jsonl empty": jsonl("FILE: holds no pairs", ""),
    "jsonl blank": jsonl("FILE: holds no pairs", "", "  ", ""),
    "jsonl unknown grammar": jsonl(
        "FILE, line 1: grammar: unknown verdict grammar 'morse'",
        '{"pair_id":"p","raw_ab":"x","grammar":"morse"}',
    ),
    "csv empty": csv("FILE: is empty: expected a header line with column names", ""),
    "csv header only": csv("FILE: holds no pairs", "pair_id,reward_a"),
    "csv short row": csv("FILE, line 3: 1 fields, but the header names 2", "pair_id,reward_a", "p1,1", "p2"),
    "csv open quote": csv(
        "FILE, line 3: not valid CSV: unexpected end of data", "pair_id,reward_a", "p1,1", '"p2,1'
    ),
    "csv infinite reward": csv(
        "FILE, line 2: reward_a: expected a finite number, found 'inf'", "pair_id,reward_a", "p1,inf"
    ),
    "csv wrong flag": csv(
        "FILE, line 2: success_a: expected true or false, found 'null'", "pair_id,success_a", "p1,null"
    ),
    "csv slip": csv(
        "FILE, line 2: sucess_a: is not a known column; did you mean success_a?", "pair_id,sucess_a", "p1,1"
    ),
    "csv twice": csv(
        "FILE, line 4: pair_id '007' of judge 'j' stands at line 2 already",
        "pair_id,judge",
        "007,j",
        "007,k",
        "007,j",
    ),
    "csv two sessions in one place": csv(
        "FILE, line 3: task 't', agent 'x', trial 0 did something else at line 2: "
        "give each session its own `trial`",
        "pair_id,task_id,agent_a,agent_b,response_a,response_b",
        "1,t,x,y,one,two",
        "2,t,x,y,three,two",
    ),
    "judgebench no label": judgebench("FILE, line 2: label: is missing", label=...),
    "judgebench other label": judgebench(
        "FILE, line 2: label: expected A>B or B>A, found 'A=B'", label="A=B"
    ),
    "judgebench no question": judgebench("FILE, line 2: question: is missing", question=...),
    "judgebench no response": judgebench("FILE, line 2: response_B: is missing", response_B=...),
    "judgebench no source": judgebench("FILE, line 2: source: is missing", source=None),
    "judgebench one judgment": judgebench(
        "FILE, line 2: judgments: expected two, one for each order, found 1", judgments=[JUDGED]
    ),
    "judgebench no judgments": judgebench(
        "FILE, line 2: judgments: expected an array, found None", judgments=...
    ),
    "judgebench no decision": judgebench(
        "FILE, line 2, judgments[1]: decision: is missing", judgments=[JUDGED, NO_DECISION]
    ),
    "judgebench other decision": judgebench(
        "FILE, line 2, judgments[0]: decision: expected A>B, A=B or B>A, found 'A'",
        judgments=[JUDGED | {"decision": "A"}, JUDGED],
    ),
    "judgebench no judgment": judgebench(
        "FILE, line 2, judgments[1]: judgment: expected an object, found None", judgments=[JUDGED, {}]
    ),
    "judgebench no object": judgebench(
        "FILE, line 2, judgments[1]: judgment: expected an object, found None", judgments=[JUDGED, 5]
    ),
    "judgebench no reply": judgebench(
        "FILE, line 2, judgments[0], judgment: response: is missing",
        judgments=[JUDGED | {"judgment": {"judge_model": "j"}}, JUDGED],
    ),
    "judgebench two judges": judgebench(
        "FILE, line 2: judgments: two judges in one pair: j and k",
        judgments=[JUDGED, JUDGED | {"judgment": {"judge_model": "k", "response": "r"}}],
    ),
    "judgebench one score": judgebench(
        "FILE, line 2, judgments[0], judgment: scores: expected two, found 1",
        judgments=[JUDGED | {"judgment": {"judge_model": "j", "response": "r", "scores": [1]}}, JUDGED],
    ),
    "judgebench NaN score": judgebench(
        "FILE, line 2, judgments[0], judgment: scores[1]: expected a finite number, found nan",
        judgments=[
            JUDGED | {"judgment": {"judge_model": "j", "response": "r", "scores": [1, float("nan")]}},
            JUDGED,
        ],
    ),
    "judgebench twice": judgebench(
        "FILE, line 2: pair_id 'p1' of judge 'j' stands at line 1 already", pair_id="p1"
    ),
    "judgebench empty": Case("judgebench", b"", "FILE: holds no pairs"),
    "judgebench packed and cut": Case(
        "judgebench",
        gzip.compress(json.dumps(JUDGEBENCH).encode() + b"\n", mtime=0)[:-4],
        "FILE, line 2: cannot be read: Compressed file ended before the end-of-stream marker was reached",
        ".gz",
    ),
    "llmbar cut": Case("llmbar", b'[{"input":', "FILE, line 1 column 11: not valid JSON: Expecting value"),
    "llmbar empty": Case("llmbar", b"[]", "FILE: holds no pairs"),
    "llmbar no label": llmbar("FILE, [1]: label: is missing", without(LLMBAR, "label")),
    "llmbar other label": llmbar("FILE, [1]: label: expected 1 or 2, found '3'", LLMBAR | {"label": 3}),
    "llmbar no output": llmbar("FILE, [1]: output_2: is missing", without(LLMBAR, "output_2")),
    "llmbar no input": llmbar("FILE, [1]: input: is missing", without(LLMBAR, "input")),
    "llmbar no results": llmbar(
        "FILE, [1]: results: expected the judgments of both orders in the last item", LLMBAR | {"results": []}
    ),
    "llmbar one order": llmbar(
        "FILE, [1].results[-1]: swap = True: expected an object, found None",
        LLMBAR | {"results": [{"swap = False": SWAPPED}]},
    ),
    "llmbar no winner": llmbar(
        "FILE, [1].results[-1], swap = True: winner: is missing",
        LLMBAR | {"results": [{"swap = False": SWAPPED, "swap = True": without(SWAPPED, "winner")}]},
    ),
    "llmbar no reply": llmbar(
        "FILE, [1].results[-1], swap = False: completion: expected the reply and why it ended",
        LLMBAR | {"results": [{"swap = False": SWAPPED | {"completion": []}, "swap = True": SWAPPED}]},
    ),
    "pandalm one file": Case(
        "pandalm", b"[]", "FILE: pandalm needs two files: the test set and the judge's results"
    ),
    "gauge header only": gauge("FILE: holds no sessions", GAUGE),
    "gauge no column": gauge(
        "FILE, line 2: judge_flip: is missing: the header does not name it",
        GAUGE.removesuffix(",judge_flip"),
        "r,s,j,a,0.5,1,1,1,2",
    ),
    "gauge wrong number": gauge(
        "FILE, line 3: satisfaction: expected a number from 0 to 1, found '7'",
        GAUGE,
        "r,s,j,a,0.5,1,1,1,2,0",
        "r,s,j,a,7,1,1,1,2,0",
    ),
}


def deep(depth: int) -> str:
    return "[" * depth + "]" * depth


NESTED_MESSAGE = '{"pair_id":"p","response_a":[{"role":"assistant","content":%s}]}'
WIDE = ",".join(f"x{i}" for i in range(5000))
HOSTILE = {
    "a huge line": jsonl(None, '{"pair_id":"p","response_a":"' + "x" * 3_000_000 + '"}'),
    "a huge cell": csv(None, "pair_id,response_a", "p," + "x" * 3_000_000),
    "nested a little": jsonl(None, NESTED_MESSAGE % deep(200)),
    "nested more": jsonl("FILE, line 1: response_a: is nested too deep", NESTED_MESSAGE % deep(1000)),
    "nested without end": jsonl(
        "FILE, line 1: JSON that is nested too deep to be read", '{"a":' + deep(200_000)
    ),
    "nested in a field": jsonl(
        "FILE, line 1: pref_ab: expected one of a, b, tie, unreadable, failed, found an array",
        '{"pair_id":"p","pref_ab":' + deep(1000) + "}",
    ),
    "nested in an id": jsonl(
        "FILE, line 1: pair_id: expected text, found an array", '{"pair_id":' + deep(1000) + "}"
    ),
    "a number of 400 digits": jsonl(
        "FILE, line 1: reward_a: expected a finite number, found inf", '{"pair_id":"p","reward_a":1e400}'
    ),
    "an id of 10^30": csv(None, "pair_id", "1" + "0" * 30),
    "a JSON id of 2^64 - 1": jsonl(None, '{"pair_id":18446744073709551615}'),
    "a trial over 64 bit": jsonl(
        "FILE, line 1: trial: expected a whole number from 0 to 10^15, found 9223372036854775807",
        '{"pair_id":"p","trial":9223372036854775807}',
    ),
    "the largest trial": jsonl(None, '{"pair_id":"p","trial":1000000000000000,"response_a":"x"}'),
    "a trial of 5000 digits": csv(
        "FILE, line 2: trial: expected a whole number from 0 to 10^15, found '" + "9" * 56 + "...",
        "pair_id,trial",
        "p," + "9" * 5000,
    ),
    "minus zero": jsonl(None, '{"pair_id":"p","reward_a":-0.0,"reward_b":0,"gap":-0.0}'),
    "rewards as far apart as can be": jsonl(None, '{"pair_id":"p","reward_a":1.7e308,"reward_b":-1.7e308}'),
    "equal keys": jsonl(
        "FILE, line 1: the key 'reward_a' stands twice", '{"pair_id":"p","reward_a":1,"reward_a":0}'
    ),
    "NUL in an id": jsonl(
        r"FILE, line 1: pair_id: expected text without NUL or lone surrogates, found 'a\x00b'",
        '{"pair_id":"a\\u0000b"}',
    ),
    "NUL in a CSV id": csv(
        r"FILE, line 2: category: expected text without NUL or lone surrogates, found '\x00'",
        "pair_id,category",
        b"p,\0",
    ),
    "NUL in texts": jsonl(
        None,
        '{"pair_id":"p","raw_ab":"a\\u0000b","grammar":"json","prompt":"\\u0000","response_a":"c\\u0000d"}',
    ),
    "half a surrogate pair in an id": jsonl(
        r"FILE, line 1: task_id: expected text without NUL or lone surrogates, found '\ud800'",
        '{"pair_id":"p","task_id":"\\ud800"}',
    ),
    "half a surrogate pair in texts": jsonl(
        None, '{"pair_id":"p","raw_ab":"\\ud800","grammar":"json","prompt":"\\udfff","response_b":"\\ud83d"}'
    ),
    "half a surrogate pair in a key": jsonl(
        r"FILE, line 1: 'reward_\ud800': is not a known column; did you mean reward_a or reward_b?",
        '{"pair_id":"p","reward_\\ud800":1}',
    ),
    "empty strings": jsonl(
        None, '{"pair_id":"p","task_id":"","category":"","agent_a":"","reward_a":"","raw_ab":null,"judge":""}'
    ),
    "an id of blanks": jsonl(None, '{"pair_id":"  "}'),
    "a CSV with semicolons": csv(
        "FILE, line 1: the columns are separated by ';': save it as CSV with commas",
        "pair_id;reward_a",
        "p;1",
    ),
    "UTF-16": csv("FILE, line 1: not UTF-8: byte 0xff", "pair_id\np\n".encode("utf-16")),
    "UTF-16 without a mark": csv(
        NO_PAIR_ID % "p\x00a\x00i\x00r\x00_\x00i\x00d\x00", "pair_id\np\n".encode("utf-16-le")
    ),
    "JSON Lines called CSV": csv(
        "FILE, line 1: not valid CSV: ',' expected after '\"'", '{"pair_id":"p","reward_a":1}'
    ),
    "CSV called JSON Lines": jsonl("FILE, line 1 column 1: not valid JSON: Expecting value", "pair_id", "p"),
    "a JSON array called JSON Lines": jsonl(
        "FILE, line 1: expected a JSON object, found an array", '[{"pair_id":"p"}]'
    ),
    "no gzip": Case("jsonl", b'{"pair_id":"p"}', "FILE: cannot be read: Not a gzipped file (b'{\"')", ".gz"),
    "gzip without its name": Case(
        "jsonl", gzip.compress(b'{"pair_id":"p"}', mtime=0), "FILE, line 1: not UTF-8: byte 0x8b"
    ),
    "thousands of columns": csv(None, f"pair_id,{WIDE}", "p" + "," * 5000),
    "thousands of keys": jsonl(None, json.dumps({"pair_id": "p"} | dict.fromkeys(WIDE.split(","), 1))),
    "a time before all time": jsonl(
        "FILE, line 1: judged_at: expected an ISO 8601 time with a zone, found '0001-01-01T00:00:00+14:00'",
        '{"pair_id":"p","judged_at":"0001-01-01T00:00:00+14:00"}',
    ),
    "scores whose mean is none": jsonl(
        None,
        '{"pair_id":"p","pref_ab":"A","pref_ba":"A","judge_score_a":1.7e308,"judge_score_b":-1.7e308}',
    ),
}


def rows_of(engine: Engine) -> dict[str, int]:
    with reading(engine) as connection:
        counts = {
            table: connection.execute(text(f"select count(*) from {table}")).scalar_one()
            for table in metadata.tables
            if table != "view_digest"
        }
    return {table: count for table, count in counts.items() if count}


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_database(database_url, create=True)
    yield engine
    engine.dispose()


@pytest.fixture
def outcome_of(engine: Engine, tmp_path: Path) -> Callable[[str, Case], str | None]:
    """Imports a case: its whole error, cut where the list of grammars begins, or None."""

    def run(name: str, case: Case) -> str | None:
        path = tmp_path / f"file{case.suffix}"
        path.write_bytes(case.content)
        try:
            import_file(engine, Wish(case.format, (path,), name=name))
        except BadFile as error:
            return str(error).replace(str(path), "FILE").split(": use one of")[0]
        return None

    return run


def test_import_when_a_file_is_damaged_then_the_place_is_named_and_no_table_has_a_row(
    engine: Engine, outcome_of: Callable[[str, Case], str | None]
) -> None:
    found = {name: outcome_of(name, case) for name, case in DAMAGED.items()}
    assert found == {name: case.error for name, case in DAMAGED.items()}
    assert rows_of(engine) == {}


def test_import_when_input_is_made_up_to_break_it_then_it_is_right_or_refused(
    engine: Engine, outcome_of: Callable[[str, Case], str | None]
) -> None:
    found = {name: outcome_of(name, case) for name, case in HOSTILE.items()}
    assert found == {name: case.error for name, case in HOSTILE.items()}
    taken = sum(case.error is None for case in HOSTILE.values())
    counts = rows_of(engine)
    assert (counts["audit_runs"], counts["audit_pairs"]) == (taken, taken)


def test_import_when_there_is_no_file_or_a_directory_then_it_is_named(engine: Engine, tmp_path: Path) -> None:
    for path, problem in ((tmp_path / "none", "no such file"), (tmp_path, "cannot be read: Is a directory")):
        for name in ("jsonl", "csv", "judgebench", "llmbar", "gauge-csv"):
            with pytest.raises(BadFile) as caught:
                import_file(engine, Wish(name, (path,)))
            assert str(caught.value) == f"{path}: {problem}"
    assert rows_of(engine) == {}
