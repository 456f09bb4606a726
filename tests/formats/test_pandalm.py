"""PandaLM: a test set and a judge's results become pairs with graded rewards."""

import json
from pathlib import Path
from typing import Any

import pytest

from audit.doors.formats import pandalm
from audit.words.errors import BadFile
from audit.words.records import ImportedPair, RawAnswer


def record(idx: int = 0, votes: tuple[int, int, int] = (1, 1, 2), **fields: Any) -> dict[str, Any]:
    return {
        "idx": idx,
        "motivation_app": "Grammarly",
        "cmp_key": "bloom-7b_llama-7b",
        "instruction": "do",
        "input": "this",
        "response1": "one",
        "response2": "two",
        **{f"annotator{i}": vote for i, vote in enumerate(votes, 1)},
        **fields,
    }


def result(idx: int = 0, decision: str = "1") -> dict[str, Any]:
    return {"idx": idx, "gpt_result": decision, "gpt_reason": "because"}


def files(folder: Path, test_set: list[dict[str, Any]], judged: list[dict[str, Any]]) -> list[Path]:
    paths = [folder / "testset.json", folder / "gpt.json"]
    for path, content in zip(paths, (test_set, judged), strict=True):
        path.write_text(json.dumps(content))
    return paths


def test_read_when_a_pair_is_complete_then_every_field_has_its_place(tmp_path: Path) -> None:
    (pair,) = pandalm.read(files(tmp_path, [record(7)], [result(7, "2")]))
    assert pair == ImportedPair(
        place="[0]",
        source_pair_id="7",
        gate="gpt",
        task_id="7",
        answers=(RawAnswer("AB", "2", grammar="digit", is_recorded=True, choice="second", decision="2"),),
        category="Grammarly",
        agent_a="bloom-7b",
        agent_b="llama-7b",
        reward_a=2 / 3,
        reward_b=1 / 3,
        transcript_a='[{"role":"user","content":"do\\nthis"},{"role":"assistant","content":"one"}]',
        transcript_b='[{"role":"user","content":"do\\nthis"},{"role":"assistant","content":"two"}]',
        label_source="human",
    )


@pytest.mark.parametrize("turned", [False, True])
def test_read_when_rows_ask_the_same_then_they_are_trials_of_one_task_in_any_order(
    tmp_path: Path, turned: bool
) -> None:
    rows = [
        record(9), record(10, cmp_key="opt-7b_llama-7b"), record(11, input="else"), record(12),
        record(13, cmp_key="opt-7b_opt-7b"), record(14, instruction="\ud800"),
    ]  # fmt: skip
    if turned:
        rows.reverse()
    pairs = pandalm.read(files(tmp_path, rows, [result(idx) for idx in range(9, 15)]))
    assert sorted((int(p.source_pair_id), p.task_id, p.trial) for p in pairs) == [
        (9, "9", 0), (10, "9", 1), (11, "11", 0), (12, "9", 2), (13, "13", 0), (14, "14", 0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("votes", "rewards"),
    [
        ((1, 1, 1), (1.0, 0.0)),
        ((2, 2, 1), (1 / 3, 2 / 3)),
        ((0, 0, 0), (0.0, 0.0)),
        ((0, 1, 2), (1 / 3, 1 / 3)),
        ((0, 0, 2), (0.0, 1 / 3)),
    ],
)
def test_read_when_annotators_voted_then_a_reward_is_the_share_of_them_and_success_unknown(
    tmp_path: Path, votes: tuple[int, int, int], rewards: tuple[float, float]
) -> None:
    (pair,) = pandalm.read(files(tmp_path, [record(votes=votes)], [result()]))
    assert (pair.reward_a, pair.reward_b) == rewards
    assert (pair.success_a, pair.success_b) == (None, None)


@pytest.mark.parametrize(
    ("decision", "choice"),
    [("1", "first"), ("2", "second"), ("Tie", "tie"), ("tie", "tie"), ("both are bad", None)],
)
def test_read_when_a_result_is_recorded_then_it_is_a_choice_or_none(
    tmp_path: Path, decision: str, choice: str | None
) -> None:
    (pair,) = pandalm.read(files(tmp_path, [record()], [result(0, decision)]))
    assert [answer.choice for answer in pair.answers] == [choice]


def test_read_when_the_files_are_named_the_other_way_round_then_the_pairs_are_the_same(
    tmp_path: Path,
) -> None:
    paths = files(tmp_path, [record(0), record(1)], [result(1), result(0)])
    assert list(pandalm.read(paths)) == list(pandalm.read(paths[::-1]))


def test_read_when_a_response_is_a_bare_value_then_it_is_its_text(tmp_path: Path) -> None:
    (pair,) = pandalm.read(files(tmp_path, [record(response1=True, response2=1.5)], [result()]))
    assert json.loads(pair.transcript_a or "")[1]["content"] == "true"
    assert json.loads(pair.transcript_b or "")[1]["content"] == "1.5"


def test_read_when_the_instruction_has_no_input_then_the_prompt_is_the_instruction(tmp_path: Path) -> None:
    (pair,) = pandalm.read(files(tmp_path, [record(input="")], [result()]))
    assert json.loads(pair.transcript_a or "")[0]["content"] == "do"


NO_VOTE = {key: value for key, value in record().items() if key != "annotator3"}


@pytest.mark.parametrize(
    ("test_set", "judged", "expected"),
    [
        ([record(0), record(1)], [result(0)], "testset.json, [1]: idx: 1 is not in FOLDER/gpt.json"),
        ([record(0)], [result(0), result(1)], "gpt.json, [1]: idx: 1 is not in FOLDER/testset.json"),
        ([record(0), record(0)], [result(0)], "testset.json, [1]: idx: 0 stands at [0] already"),
        ([record(0)], [result(0), result(0)], "gpt.json, [1]: idx: 0 stands at [0] already"),
        ([NO_VOTE], [result()], "testset.json, [0]: annotator3: expected 0 (tie), 1 or 2, found None"),
        (
            [record(votes=(1, 2, 3))],
            [result()],
            "testset.json, [0]: annotator3: expected 0 (tie), 1 or 2, found 3",
        ),
        (
            [record(cmp_key="bloom")],
            [result()],
            "testset.json, [0]: cmp_key: expected two names joined by _, found 'bloom'",
        ),
        (
            [record(cmp_key="_llama")],
            [result()],
            "testset.json, [0]: cmp_key: expected two names joined by _, found '_llama'",
        ),
        ([record(response2=None)], [result()], "testset.json, [0]: response2: is missing"),
        ([record()], [{"idx": 0}], "gpt.json, [0]: ..._result: expected one such field, found 0"),
        (
            [record()],
            [{"idx": 0, "a_result": "1", "b_result": "2"}],
            "gpt.json, [0]: ..._result: expected one such field, found 2",
        ),
        ([record()], [{"idx": 0, "gpt_result": None}], "gpt.json, [0]: gpt_result: is missing"),
    ],
)
def test_read_when_the_files_do_not_fit_then_the_right_one_is_named(
    tmp_path: Path, test_set: list[dict[str, Any]], judged: list[dict[str, Any]], expected: str
) -> None:
    with pytest.raises(BadFile) as caught:
        list(pandalm.read(files(tmp_path, test_set, judged)))
    assert str(caught.value) == f"{tmp_path}/" + expected.replace("FOLDER", str(tmp_path))


@pytest.mark.parametrize("count", [1, 3])
def test_read_when_there_are_not_two_files_then_it_says_what_is_needed(tmp_path: Path, count: int) -> None:
    path = tmp_path / "testset.json"
    with pytest.raises(BadFile) as caught:
        list(pandalm.read([path] * count))
    assert str(caught.value) == f"{path}: pandalm needs two files: the test set and the judge's results"
