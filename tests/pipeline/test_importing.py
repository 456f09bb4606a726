"""Import: one file, one run, whole or not at all, and once."""

import csv
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from audit.doors.db import open_database, reading
from audit.doors.formats import gauge_csv
from audit.pipeline.importing import import_file
from audit.pipeline.wishes import BATCH, Imported, Wish
from audit.verbs.gaps import buckets_from_text
from audit.words.errors import BadFile
from audit.words.text import from_stored

# What names a row or says when it was made: the only things in which two imports of one file may differ.
NAMES_AND_TIMES = {
    "pair_id",
    "run_id",
    "session_id",
    "session_a",
    "session_b",
    "log_id",
    "created_at",
    "judged_at",
    "scored_at",
    "simulated_at",
    "verified_at",
}


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_database(database_url, create=True)
    yield engine
    engine.dispose()


def written(folder: Path, *rows: dict[str, Any], name: str = "pairs.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows(engine: Engine, query: str) -> list[dict[str, Any]]:
    with reading(engine) as connection:
        return [dict(row) for row in connection.execute(text(query)).mappings()]


def counts(engine: Engine) -> tuple[int, ...]:
    """How many runs, sessions, pairs, logs and buckets there are."""
    tables = ("audit_runs", "sessions", "audit_pairs", "judge_logs", "gap_buckets")
    return tuple(rows(engine, f"select count(*) as n from {table}")[0]["n"] for table in tables)


def content(engine: Engine, run_id: str) -> dict[str, list[dict[str, Any]]]:
    """What a run holds, without what names it."""
    orders = {"audit_pairs": "pair_id", "sessions": "task_id, trial, agent", "judge_logs": "log_id"}
    return {
        table: [
            {column: value for column, value in row.items() if column not in NAMES_AND_TIMES}
            for row in rows(engine, f"select * from {table} where run_id = '{run_id}' order by {order}")
        ]
        for table, order in orders.items()
    }


def jsonl(engine: Engine, path: Path, **wish: Any) -> Imported:
    return import_file(engine, Wish("jsonl", (path,), **wish))


def judged(number: int, **fields: Any) -> dict[str, Any]:
    return {"pair_id": f"p{number}", "pref_ab": "A", "pref_ba": "A", "reward_a": 1, "reward_b": 0, **fields}


def test_import_when_a_file_is_new_then_it_is_one_complete_scored_run(engine: Engine, tmp_path: Path) -> None:
    path = written(tmp_path, judged(1), judged(2, pref_ab="B", pref_ba="B"), judged(3, reward_a=None))
    made = jsonl(engine, path)
    assert made._replace(run_id="") == Imported("", True, 3, 0)
    (run,) = rows(engine, "select * from audit_runs")
    assert run["run_id"] == made.run_id
    assert (run["name"], run["kind"], run["status"]) == ("pairs", "import", "complete")
    assert (run["swap_rule"], run["gap_source"], run["gap_scope"], run["bucket_set"]) == (
        "both_agree",
        "session",
        "run",
        "gauge",
    )
    assert run["created_at"] <= run["finished_at"]
    config = json.loads(run["config_json"])
    assert config["format"] == "jsonl"
    assert [file["name"] for file in config["files"]] == ["pairs.jsonl"]
    found = rows(
        engine, "select outcome, misselected, gap_bucket, verified_at from audit_pairs order by pair_id"
    )
    assert [(row["outcome"], row["misselected"], row["gap_bucket"]) for row in found] == [
        ("correct", 0, "[0.3,..)"),
        ("misselected", 1, "[0.3,..)"),
        ("unverified", None, "unknown"),
    ]
    assert [row["verified_at"] is None for row in found] == [False, False, True]


def test_import_when_the_same_file_comes_again_then_nothing_is_added_and_it_says_so(
    engine: Engine, tmp_path: Path
) -> None:
    path = written(tmp_path, judged(1), judged(2))
    made = jsonl(engine, path, name="nightly")
    before = counts(engine)
    assert jsonl(engine, path, name="nightly") == Imported(made.run_id, False, 0, 0)
    # It is the bytes that make a file, not where it lies or what it is called.
    copy = written(tmp_path, judged(1), judged(2), name="copy.jsonl")
    assert jsonl(engine, copy, name="nightly") == Imported(made.run_id, False, 0, 0)
    assert counts(engine) == before


def test_import_when_the_name_the_bytes_or_the_reading_differ_then_it_is_another_run(
    engine: Engine, tmp_path: Path
) -> None:
    path = written(tmp_path, judged(1))
    wishes: list[dict[str, Any]] = [{}, {"name": "other"}, {"reread": True}, {"grammar": "json"}]
    made = [jsonl(engine, path, **wish) for wish in wishes]
    made.append(jsonl(engine, written(tmp_path, judged(2))))
    assert [one.is_new for one in made] == [True] * 5
    assert len({one.run_id for one in made}) == 5


def test_import_when_pandalm_files_are_named_the_other_way_round_then_it_is_the_same_import(
    engine: Engine, tmp_path: Path
) -> None:
    pair = {"idx": 0, "cmp_key": "x_y", "instruction": "do", "input": "", "response1": "a", "response2": "b"}
    votes = {"annotator1": 1, "annotator2": 1, "annotator3": 0}
    paths = (tmp_path / "testset.json", tmp_path / "gpt.json")
    paths[0].write_text(json.dumps([pair | votes]))
    paths[1].write_text(json.dumps([{"idx": 0, "gpt_result": "1"}]))
    made = import_file(engine, Wish("pandalm", paths, name="n"))
    assert made.is_new
    again = import_file(engine, Wish("pandalm", paths[::-1], name="n"))
    assert again == Imported(made.run_id, False, 0, 0)
    (run,) = rows(engine, "select swap_rule, gap_source from audit_runs")
    assert run == {"swap_rule": "first_order", "gap_source": "session"}


def test_import_when_the_file_is_packed_then_the_rows_are_the_same(engine: Engine, tmp_path: Path) -> None:
    plain = written(tmp_path, judged(1, response_a="x", response_b="y"), judged(2, pref_ab="failed"))
    packed = tmp_path / "pairs.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    first, second = jsonl(engine, plain), jsonl(engine, packed)
    assert content(engine, first.run_id) == content(engine, second.run_id)
    assert [run["name"] for run in rows(engine, "select name from audit_runs")] == ["pairs", "pairs"]


def test_import_when_half_a_line_is_refused_then_the_completed_file_is_taken_once(
    engine: Engine, tmp_path: Path
) -> None:
    """Case ST-03."""
    whole = "".join(json.dumps(judged(number)) + "\n" for number in (1, 2, 3))
    path = tmp_path / "log.jsonl"
    path.write_text(whole[:-10] + "\n")
    with pytest.raises(BadFile, match=r"log\.jsonl, line 3 column \d+: not valid JSON: "):
        jsonl(engine, path)
    assert counts(engine) == (0, 0, 0, 0, 0)
    path.write_text(whole)
    assert jsonl(engine, path).pairs == 3
    found = rows(engine, "select source_pair_id from audit_pairs order by pair_id")
    assert [row["source_pair_id"] for row in found] == ["p1", "p2", "p3"]


def test_import_when_a_pair_stands_twice_then_both_lines_are_named_however_far_apart(
    engine: Engine, tmp_path: Path
) -> None:
    for second in (2, BATCH, BATCH + 1, 2 * BATCH + 5):
        numbers = [*range(1, second), 1, *range(second + 1, second + 10)]
        path = written(tmp_path, *(judged(number) for number in numbers))
        with pytest.raises(BadFile) as caught:
            jsonl(engine, path)
        problem = "pair_id 'p1' of judge 'judge' stands at line 1 already"
        assert str(caught.value) == f"{path}, line {second}: {problem}"
        assert counts(engine) == (0, 0, 0, 0, 0)


def test_import_when_it_is_interrupted_in_the_middle_then_nothing_is_left(
    engine: Engine, tmp_path: Path
) -> None:
    path = written(tmp_path, *(judged(number, response_a="x") for number in range(2 * BATCH)))
    told = []

    def interrupt(done: int) -> None:
        told.append(done)
        if len(told) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_file(engine, Wish("jsonl", (path,)), interrupt)
    assert counts(engine) == (0, 0, 0, 0, 0)
    # Nor is anything left locked: the same import goes through at once.
    assert jsonl(engine, path).pairs == 2 * BATCH


OTHER_PROCESS = """
import sys
from pathlib import Path
from audit.doors.db import open_database
from audit.pipeline.importing import Wish, import_file

engine = open_database(sys.argv[1], create=False)
print("ready", flush=True)
print(import_file(engine, Wish("jsonl", (Path(sys.argv[2]),))).is_new, flush=True)
engine.dispose()
"""


def test_import_when_two_processes_take_one_file_at_once_then_there_is_one_run(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    path = written(tmp_path, *(judged(number) for number in range(BATCH)))
    others: list[subprocess.Popen[str]] = []

    def start_the_other(_done: int) -> None:
        if not others:
            command = [sys.executable, "-c", OTHER_PROCESS, database_url, str(path)]
            others.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            assert others[0].stdout is not None
            assert others[0].stdout.readline() == "ready\n"
            # Long enough for it to look for an earlier import and find none.
            time.sleep(0.3)

    made = import_file(engine, Wish("jsonl", (path,)), start_the_other)
    said, _ = others[0].communicate(timeout=60)
    assert (made.is_new, said, others[0].returncode) == (True, "False\n", 0)
    assert counts(engine)[:4] == (1, 0, BATCH, 2 * BATCH)


Lines = list[dict[str, Any]]
DEFAULTS: list[tuple[Lines, dict[str, Any], tuple[str, str, str]]] = [
    ([{}], {}, ("both_agree", "session", "gauge")),
    ([{"pref_ab": "A", "pref_ba": "A"}], {}, ("both_agree", "session", "gauge")),
    ([{"pref_ab": "A"}], {}, ("first_order", "session", "gauge")),
    ([{"pref_ab": "A", "pref_ba": ""}], {}, ("first_order", "session", "gauge")),
    # A call that failed was asked.
    ([{"pref_ab": "A", "pref_ba": "failed"}], {}, ("both_agree", "session", "gauge")),
    # What the whole file holds decides, not its first line.
    ([{"pref_ab": "A"}, {"pref_ab": "A", "pref_ba": "A"}], {}, ("both_agree", "session", "gauge")),
    ([{}, {"agent_a": "x", "agent_b": "y"}], {}, ("both_agree", "agent", "gauge")),
    ([{"agent_a": "x", "agent_b": "y"}], {}, ("both_agree", "agent", "gauge")),
    ([{"agent_a": "x", "agent_b": "x"}], {}, ("both_agree", "session", "gauge")),
    ([{"agent_a": "x", "agent_b": "y"}, {"gap": 0.5}], {}, ("both_agree", "external", "gauge")),
    ([{"pref_ab": "A"}], {"swap_rule": "net_vote"}, ("net_vote", "session", "gauge")),
    ([{"gap": 1}], {"gap_source": "session"}, ("both_agree", "session", "gauge")),
    ([{}], {"gap_source": "judge"}, ("both_agree", "judge", "scores")),
    (
        [{}],
        {"gap_source": "judge", "buckets": buckets_from_text("0,1/3")},
        ("both_agree", "judge", "left:1/3"),
    ),
]


def test_import_when_nothing_is_asked_for_then_the_records_decide_how_they_are_scored(
    engine: Engine, tmp_path: Path
) -> None:
    found = []
    for case, (lines, wish, _) in enumerate(DEFAULTS):
        path = written(tmp_path, *({"pair_id": str(number), **line} for number, line in enumerate(lines)))
        made = jsonl(engine, path, name=str(case), **wish)
        query = f"select swap_rule, gap_source, bucket_set from audit_runs where run_id = '{made.run_id}'"
        found.append(tuple(rows(engine, query)[0].values()))
    assert found == [expected for _, _, expected in DEFAULTS]
    stored = rows(engine, "select distinct bucket_set from gap_buckets where label = 'unknown' order by 1")
    assert [row["bucket_set"] for row in stored] == ["gauge", "left:1/3", "scores"]


def test_import_when_the_first_pair_is_unlike_the_others_then_all_are_scored_alike(
    engine: Engine, tmp_path: Path
) -> None:
    one_order = {"pair_id": "p1", "pref_ab": "A", "reward_a": 1, "reward_b": 0}
    jsonl(engine, written(tmp_path, one_order, judged(2, pref_ba="B")))
    found = rows(engine, "select outcome, judge_pref from audit_pairs order by pair_id")
    assert [tuple(row.values()) for row in found] == [("incomplete", None), ("inconsistent", None)]


def test_import_when_agents_are_named_then_their_gap_is_exact_and_needs_two_shared_tasks(
    engine: Engine, tmp_path: Path
) -> None:
    def pair(number: int, task: str, agent_a: str, agent_b: str, a: float | None, b: float) -> dict[str, Any]:
        return judged(number, task_id=task, agent_a=agent_a, agent_b=agent_b, reward_a=a, reward_b=b)

    path = written(
        tmp_path,
        # x and y: means 0.1 and 0.1 as decimals, which a sum of floats misses.
        pair(1, "t1", "x", "y", 0.1, 0.3),
        pair(2, "t2", "y", "x", 0.0, 0.2),
        pair(3, "t3", "x", "y", 0.0, 0.0),
        # x and z share one task twice, y and w two of which one is not verified.
        pair(4, "t1", "x", "z", 1, 0),
        pair(5, "t1", "x", "z", 1, 0),
        pair(6, "t1", "y", "w", 1, 0),
        pair(7, "t2", "y", "w", None, 0),
        # v and w: the better one stands on either side.
        pair(8, "t1", "v", "w", 1, 0),
        pair(9, "t2", "w", "v", 0.5, 0.75),
    )
    jsonl(engine, path)
    found = rows(engine, "select agent_gap, reward_gap, gap_bucket from audit_pairs order by pair_id")
    assert [row["agent_gap"] for row in found] == [0, 0, 0, None, None, None, None, 0.625, 0.625]
    assert [row["reward_gap"] for row in found] == [row["agent_gap"] for row in found]
    assert [row["gap_bucket"] for row in found] == (["[0,0.05)"] * 3 + ["unknown"] * 4 + ["[0.3,..)"] * 2)


def test_import_when_two_judges_saw_the_same_sessions_then_each_session_is_stored_once(
    engine: Engine, tmp_path: Path
) -> None:
    shown = {
        "task_id": "t",
        "agent_a": "x",
        "agent_b": "y",
        "prompt": "q",
        "response_a": "1",
        "response_b": "2",
    }
    path = written(tmp_path, judged(1, judge="j", **shown), judged(1, judge="k", **shown))
    jsonl(engine, path)
    assert counts(engine)[1:4] == (2, 2, 4)
    ends = rows(engine, "select distinct session_a, session_b from audit_pairs")
    assert len(ends) == 1


def test_import_when_sides_are_unnamed_or_one_agents_then_they_are_two_trials(
    engine: Engine, tmp_path: Path
) -> None:
    path = written(
        tmp_path,
        judged(1, task_id="t1", response_a="1", response_b="2"),
        judged(2, task_id="t2", trial=3, agent_a="x", agent_b="x", response_a="1", response_b="2"),
        judged(3, task_id="t3"),
    )
    jsonl(engine, path)
    found = rows(engine, "select task_id, agent, trial, reward from sessions order by task_id, trial")
    assert [tuple(row.values()) for row in found] == [
        ("t1", None, 0, 1.0),
        ("t1", None, 1, 0.0),
        ("t2", "x", 6, 1.0),
        ("t2", "x", 7, 0.0),
    ]
    ends = rows(engine, "select session_a, session_b from audit_pairs where source_pair_id = 'p3'")
    assert ends == [{"session_a": None, "session_b": None}]


def test_import_when_answers_are_recorded_failed_or_absent_then_the_logs_tell_them_apart(
    engine: Engine, tmp_path: Path
) -> None:
    path = written(
        tmp_path,
        judged(1, raw_ab="said so", raw_ba=None),
        judged(2, pref_ab="unreadable", pref_ba="failed"),
        judged(3, pref_ab=None, pref_ba="tie"),
        {"pair_id": "p4", "raw_ab": '{"winner":"B"}', "raw_ba": "garbage", "grammar": "json"},
    )
    jsonl(engine, path)
    found = rows(
        engine,
        "select source_pair_id, presented_order, raw_output, choice, preference, parse_status, l.error, "
        "role, model, attempt, l.total_tokens "
        "from judge_logs l join audit_pairs p on p.pair_id = l.pair_id order by log_id",
    )
    call = ("judge", "judge", 1, None)
    assert [tuple(row.values()) for row in found] == [
        ("p1", "AB", "said so", "first", "A", "recorded", None, *call),
        ("p1", "BA", None, "second", "A", "recorded", None, *call),
        ("p2", "AB", None, None, None, "unreadable", None, *call),
        ("p2", "BA", None, None, None, "error", "recorded as failed", *call),
        ("p3", "BA", None, "tie", "tie", "recorded", None, *call),
        ("p4", "AB", '{"winner":"B"}', "second", "B", "ok", None, *call),
        ("p4", "BA", "garbage", None, None, "unreadable", None, *call),
    ]


def test_import_when_decisions_stand_beside_replies_then_reread_reads_the_replies(
    engine: Engine, tmp_path: Path
) -> None:
    reply = {"raw_ab": '{"winner":"B"}', "raw_ba": '{"winner":"A"}', "grammar": "json"}
    path = written(tmp_path, judged(1, **reply))
    for reread, preference, status in ((False, "A", "recorded"), (True, "B", "ok")):
        made = jsonl(engine, path, reread=reread)
        (pair,) = rows(engine, f"select pref_ab, pref_ba from audit_pairs where run_id = '{made.run_id}'")
        assert tuple(pair.values()) == (preference, preference)
        logs = rows(engine, f"select parse_status from judge_logs where run_id = '{made.run_id}'")
        assert [log["parse_status"] for log in logs] == [status, status]


def test_import_when_labels_are_preferences_then_they_are_rewards_and_success_is_null(
    engine: Engine, tmp_path: Path
) -> None:
    path = written(tmp_path, {"pair_id": "1", "label": "A"}, {"pair_id": "2", "label": "tie"})
    jsonl(engine, path)
    found = rows(engine, "select reward_a, reward_b, success_a, success_b from audit_pairs order by pair_id")
    assert [tuple(row.values()) for row in found] == [(1, 0, None, None), (0.5, 0.5, None, None)]


def test_import_when_a_csv_holds_ids_and_flags_that_look_like_others_then_they_are_stored_as_written(
    engine: Engine, tmp_path: Path
) -> None:
    """Case TX-04, with a byte order mark, CRLF and a newline in quotes."""
    path = tmp_path / "pairs.csv"
    path.write_bytes(
        b"\xef\xbb\xbfpair_id,success_a,reward_a,reward_b,category\r\n"
        b'007,TRUE,10,9,"two\r\nlines, ""quoted"""\r\n'
        b"NA,False,-1,0.5,\r\n"
        b"null,0,1e1,9.0,1e5\r\n"
        b"1e5,,1,0,null\r\n"
    )
    assert import_file(engine, Wish("csv", (path,))).pairs == 4
    found = rows(
        engine,
        "select source_pair_id, task_id, success_a, "
        "case when reward_a > reward_b then 'x' else 'y' end as higher, category "
        "from audit_pairs order by pair_id",
    )
    assert [tuple(row.values()) for row in found] == [
        ("007", "007", 1, "x", 'two\r\nlines, "quoted"'),
        ("NA", "NA", 0, "y", None),
        ("null", "null", 0, "x", "1e5"),
        ("1e5", "1e5", None, "x", "null"),
    ]


def test_import_when_times_have_other_zones_then_they_are_one_instant_in_one_window(
    engine: Engine, tmp_path: Path
) -> None:
    """Case ST-09."""
    written_at = ["2026-03-05T09:15:00-08:00", "2026-03-05T17:15:00Z", "2026-03-06T02:15:00+09:00"]
    path = written(tmp_path, *(judged(number, judged_at=at) for number, at in enumerate(written_at)))
    jsonl(engine, path)
    found = rows(
        engine,
        "select judged_at from audit_pairs "
        "where judged_at >= '2026-03-05T17:00:00.000Z' and judged_at < '2026-03-05T18:00:00.000Z'",
    )
    assert [row["judged_at"] for row in found] == ["2026-03-05T17:15:00.000Z"] * 3


def test_import_when_a_reply_holds_what_no_database_takes_then_nothing_of_it_is_lost(
    engine: Engine, tmp_path: Path
) -> None:
    """Case TX-02: what stands behind a NUL is seen by SQL."""
    replies = ["refund\0 denied, order 17", "half \ud83d a pair", "a literal ␀ and ␛"]
    pairs = [
        {"pair_id": str(number), "raw_ab": reply, "grammar": "json", "response_a": reply}
        for number, reply in enumerate(replies)
    ]
    jsonl(engine, written(tmp_path, *pairs))
    logs = rows(engine, "select raw_output, length(raw_output) as n from judge_logs order by log_id")
    assert [from_stored(log["raw_output"]) for log in logs] == replies
    assert all(log["n"] >= len(reply) for log, reply in zip(logs, replies, strict=True))
    sessions = rows(engine, "select transcript_json from sessions where trial = 0 order by task_id")
    told = [json.loads(session["transcript_json"])[0]["content"] for session in sessions]
    assert told == replies


def test_import_when_sessions_come_as_gauge_csv_then_every_value_is_kept(
    engine: Engine, tmp_path: Path
) -> None:
    header = [*gauge_csv.COLUMNS, "task_id"]
    lines = [
        ["r1", "sim", "judge", "x", "0.875", "true", "10", "20", "30", "0.25", "007"],
        ["r1", "sim", "judge", "x", "", "FALSE", "", "", "", "", "007"],
        ["r2", "sim", "judge", "y", "1", "", "1", "2", "3", "1", ""],
    ]
    path = tmp_path / "gauge.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *lines])
    made = import_file(engine, Wish("gauge-csv", (path,)))
    assert made._replace(run_id="") == Imported("", True, 0, 3)
    found = rows(
        engine,
        "select task_id, agent, trial, satisfaction, success, reward, prompt_tokens, completion_tokens, "
        "total_tokens, judge_flip, label_source, source_json from sessions order by session_id",
    )
    source = '{"run_id":"%s","sim_user_model":"sim","judge_model":"judge"}'
    assert [tuple(row.values()) for row in found] == [
        ("007", "x", 0, 0.875, 1, 1.0, 10, 20, 30, 0.25, "external", source % "r1"),
        ("007", "x", 1, None, 0, 0.0, None, None, None, None, "external", source % "r1"),
        (None, "y", 0, 1.0, None, None, 1, 2, 3, 1.0, "external", source % "r2"),
    ]
    assert not import_file(engine, Wish("gauge-csv", (path,))).is_new
    assert counts(engine)[:2] == (1, 3)
