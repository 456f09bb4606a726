"""Our own formats: the documented columns, and that JSON Lines and CSV say the same."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.doors.formats.plain import COLUMNS, read_csv, read_jsonl
from audit.words.errors import BadFile
from audit.words.records import ImportedPair, RawAnswer


def from_jsonl(folder: Path, *rows: dict[str, Any], grammar: str | None = None) -> list[ImportedPair]:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(read_jsonl(path, grammar, None, set()))


def from_csv(folder: Path, text: str, grammar: str | None = None) -> list[ImportedPair]:
    path = folder / "pairs.csv"
    path.write_bytes(text.encode())
    return list(read_csv(path, grammar, None, set()))


FULL = {
    "pair_id": "p1",
    "task_id": "t1",
    "category": "refunds",
    "trial": 2,
    "judge": "j",
    "judged_at": "2026-03-05T09:15:00-08:00",
    "agent_a": "x",
    "agent_b": "y",
    "success_a": True,
    "success_b": False,
    "reward_a": 0.75,
    "reward_b": 0.25,
    "raw_ab": '{"winner":"A"}',
    "raw_ba": '{"winner":"B"}',
    "grammar": "json",
    "judge_score_a": 8,
    "judge_score_b": 3,
    "gap": 0.5,
    "prompt": "do",
    "response_a": "one",
    "response_b": "two",
}


def test_columns_then_the_full_row_and_the_columns_it_excludes_are_all_of_them() -> None:
    assert {*FULL, "label", "pref_ab", "pref_ba"} == set(COLUMNS)


def test_read_jsonl_when_every_column_is_there_then_each_has_its_place(tmp_path: Path) -> None:
    (pair,) = from_jsonl(tmp_path, FULL)
    assert pair == ImportedPair(
        place="line 1",
        source_pair_id="p1",
        gate="j",
        task_id="t1",
        # Scores are by side in the file and by position in an answer.
        answers=(
            RawAnswer("AB", '{"winner":"A"}', grammar="json", score_first=8.0, score_second=3.0),
            RawAnswer("BA", '{"winner":"B"}', grammar="json", score_first=3.0, score_second=8.0),
        ),
        category="refunds",
        trial=2,
        agent_a="x",
        agent_b="y",
        success_a=1,
        success_b=0,
        reward_a=0.75,
        reward_b=0.25,
        external_gap=0.5,
        transcript_a='[{"role":"user","content":"do"},{"role":"assistant","content":"one"}]',
        transcript_b='[{"role":"user","content":"do"},{"role":"assistant","content":"two"}]',
        label_source="external",
        judged_at="2026-03-05T17:15:00.000Z",
    )


def test_read_csv_when_it_holds_the_same_then_the_pairs_are_the_same(tmp_path: Path) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, FULL)
    writer.writeheader()
    writer.writerow(FULL)
    (from_text,) = from_csv(tmp_path, text.getvalue())
    (from_json,) = from_jsonl(tmp_path, FULL)
    assert from_text._replace(place="line 1") == from_json


def test_read_when_only_a_pair_id_is_given_then_the_rest_has_its_default(tmp_path: Path) -> None:
    bare = ImportedPair("line 1", "p1", "judge", "p1", (), label_source="external")
    assert from_jsonl(tmp_path, {"pair_id": "p1"}) == [bare]
    everything = dict.fromkeys(COLUMNS, "") | {"pair_id": "p1"}
    (pair,) = from_jsonl(tmp_path, everything | {"raw_ab": None, "raw_ba": None})
    assert pair == bare._replace(answers=(RawAnswer("AB", None), RawAnswer("BA", None)))


def test_read_csv_when_ids_look_like_numbers_or_nothing_then_they_survive_as_text(tmp_path: Path) -> None:
    """Case TX-04: nothing is guessed from a column's looks, and numbers are compared as numbers."""
    pairs = from_csv(
        tmp_path,
        "pair_id,success_a,reward_a,reward_b\n007,TRUE,10,9\nNA,False,-1,0.5\nnull,0,1e1,9.0\n1e5,,1,0\n",
    )
    assert [pair.source_pair_id for pair in pairs] == ["007", "NA", "null", "1e5"]
    assert [pair.task_id for pair in pairs] == ["007", "NA", "null", "1e5"]
    assert [pair.success_a for pair in pairs] == [1, 0, 0, None]
    higher = ["a" if (p.reward_a or 0) > (p.reward_b or 0) else "b" for p in pairs]
    assert higher == ["a", "b", "a", "a"]


@pytest.mark.parametrize(
    ("fields", "rewards", "successes", "source"),
    [
        ({"label": "A"}, (1.0, 0.0), (None, None), "human"),
        ({"label": "b"}, (0.0, 1.0), (None, None), "human"),
        ({"label": "Tie"}, (0.5, 0.5), (None, None), "human"),
        ({"label": ""}, (None, None), (None, None), "external"),
        ({"success_a": "yes", "success_b": 0}, (1, 0), (1, 0), "external"),
        ({"success_a": True, "reward_a": 0.5}, (0.5, None), (1, None), "external"),
        ({"success_a": True, "reward_b": 0.5}, (1, 0.5), (1, None), "external"),
        ({"reward_a": "-1", "reward_b": 1e300}, (-1.0, 1e300), (None, None), "external"),
    ],
)
def test_read_when_a_label_or_successes_or_rewards_are_given_then_a_label_is_no_success(
    tmp_path: Path, fields: dict[str, Any], rewards: object, successes: object, source: str
) -> None:
    (pair,) = from_jsonl(tmp_path, {"pair_id": "p", **fields})
    assert (pair.reward_a, pair.reward_b) == rewards
    assert (pair.success_a, pair.success_b) == successes
    assert pair.label_source == source


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"pref_ab": "A"}, RawAnswer("AB", None, None, True, preference="A", decision="A")),
        ({"pref_ba": "a"}, RawAnswer("BA", None, None, True, preference="A", decision="A")),
        ({"pref_ab": "TIE"}, RawAnswer("AB", None, None, True, preference="tie", decision="tie")),
        ({"pref_ab": "unreadable"}, RawAnswer("AB", None, None, True, decision="unreadable")),
        (
            {"pref_ab": "failed"},
            RawAnswer("AB", None, None, True, decision="failed", error="recorded as failed"),
        ),
        # A decision wins over a reply, which is kept, and needs no grammar then.
        ({"pref_ab": "B", "raw_ab": "x"}, RawAnswer("AB", "x", None, True, preference="B", decision="B")),
        ({"raw_ab": "x", "grammar": "digit"}, RawAnswer("AB", "x", "digit")),
        ({"pref_ab": "", "raw_ab": None}, RawAnswer("AB", None)),
    ],
)
def test_read_when_an_answer_is_recorded_then_it_is_by_side_and_wins_over_the_reply(
    tmp_path: Path, fields: dict[str, Any], expected: RawAnswer
) -> None:
    (pair,) = from_jsonl(tmp_path, {"pair_id": "p", **fields})
    assert pair.answers == (expected,)


def test_read_when_a_grammar_is_given_outside_then_a_column_wins_over_it(tmp_path: Path) -> None:
    pairs = from_jsonl(
        tmp_path,
        {"pair_id": "1", "raw_ab": "x"},
        {"pair_id": "2", "raw_ab": "x", "grammar": "digit"},
        grammar="json",
    )
    assert [pair.answers[0].grammar for pair in pairs] == ["json", "digit"]


def test_read_jsonl_when_messages_are_given_then_they_are_kept_as_they_are(tmp_path: Path) -> None:
    prompt = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    reply = [{"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}]
    (pair,) = from_jsonl(
        tmp_path, {"pair_id": "p", "prompt": prompt, "response_a": reply, "response_b": "two"}
    )
    assert json.loads(pair.transcript_a or "") == prompt + reply
    assert json.loads(pair.transcript_b or "") == [*prompt, {"role": "assistant", "content": "two"}]


def test_read_when_a_column_is_not_ours_then_it_is_passed_over(tmp_path: Path) -> None:
    (pair,) = from_jsonl(tmp_path, {"pair_id": "p", "note": {"any": ["thing"]}, "": 1})
    assert pair.source_pair_id == "p"


WRONG = [
    ({"task_id": "t"}, "pair_id: is missing"),
    ({"pair_id": ""}, "pair_id: is missing"),
    ({"pair_id": 1.5}, "pair_id: expected text, found 1.5"),
    ({"trial": -1}, "trial: expected a whole number from 0 to 10^15, found -1"),
    ({"success_a": "maybe"}, "success_a: expected true or false, found 'maybe'"),
    ({"reward_b": "high"}, "reward_b: expected a finite number, found 'high'"),
    ({"gap": -0.5}, "gap: expected a number from 0 up, found -0.5"),
    ({"label": "C"}, "label: expected one of a, b, tie, found 'C'"),
    ({"label": "A", "reward_a": 1}, "label: give either a label, or rewards and successes"),
    ({"label": "A", "success_b": 0}, "label: give either a label, or rewards and successes"),
    ({"raw_ab": "x"}, "raw_ab: needs a grammar to be read: a column `grammar`, or --grammar"),
    ({"raw_ba": 5, "grammar": "json"}, "raw_ba: expected text, found 5"),
    ({"pref_ab": "C"}, "pref_ab: expected one of a, b, tie, unreadable, failed, found 'C'"),
    ({"judged_at": "now"}, "judged_at: expected an ISO 8601 time with a zone, found 'now'"),
    ({"judge_score_a": "8/10"}, "judge_score_a: expected a finite number, found '8/10'"),
    (
        {"response_a": [{"content": "x"}]},
        "response_a: expected text or a list of chat messages, each with a role",
    ),
    (
        {"response_a": "x", "prompt": {"role": "user"}},
        "prompt: expected text or a list of chat messages, each with a role",
    ),
    ({"rewards_a": 1}, "rewards_a: is not a known column; did you mean reward_a?"),
    ({"raw-ab": "x"}, "raw-ab: is not a known column; did you mean raw_ab?"),
    ({"Raw AB ": "x"}, "Raw AB : is not a known column; did you mean raw_ab?"),
    ({"raw_a": "x"}, "raw_a: is not a known column; did you mean raw_ab or raw_ba?"),
    ({"pairid": 1}, "pairid: is not a known column; did you mean pair_id?"),
    ({"Success_b": 1}, "Success_b: is not a known column; did you mean success_b?"),
]


@pytest.mark.parametrize(("fields", "problem"), WRONG, ids=[problem.split(":")[0] for _, problem in WRONG])
def test_read_jsonl_when_a_field_is_wrong_then_line_field_and_value_are_named(
    tmp_path: Path, fields: dict[str, Any], problem: str
) -> None:
    second = fields if "task_id" in fields else {"pair_id": "p2", **fields}
    with pytest.raises(BadFile) as caught:
        from_jsonl(tmp_path, {"pair_id": "p1"}, second)
    assert str(caught.value) == f"{tmp_path / 'pairs.jsonl'}, line 2: {problem}"


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(cells, min_size=1, max_size=5, unique=True))
def test_read_when_ids_are_any_text_then_both_formats_bring_them_back(tmp_path: Path, ids: list[str]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(["pair_id"])
    writer.writerows([one] for one in ids)
    assert [pair.source_pair_id for pair in from_csv(tmp_path, text.getvalue())] == ids
    assert [pair.source_pair_id for pair in from_jsonl(tmp_path, *({"pair_id": one} for one in ids))] == ids
