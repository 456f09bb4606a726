"""What each grammar reads, what it refuses, and what a spoiled reply gives."""

import json
from pathlib import Path

import pytest

from audit.verbs.verdict import Grammar, grammar, read_verdict

ARENA = [
    ("[[A>>B]]", "first"),
    ("\nMy final verdict is Assistant B is slightly better: [[B>A]]\n", "second"),
    ("**My final verdict is tie: [[A=B]]**", "tie"),
    ("[[B=A]]", "tie"),
    ("[[ a > b ]]", "first"),
    (r"\[\[B>>A\]\]", "second"),
    ("［［A＞B］］", "first"),
    ("【【B≫A】】", "second"),
    ("**Final Verdict:**\n```\n[[B>>A]]\n```", "second"),
    ("The rotation matrix [[0,1]] is right in both. [[B>A]]", "second"),
    ("[[A>B]] at first sight.\n\nWith more care: [[A>>B]]", "first"),
    ("A on its own: [[A>B]]\nB on its own: [[B>A]]\n\nFinal verdict: [[B>A]]", "second"),
    ("A on its own: [[A>B]]\nB on its own: [[B>A]]\n\n## Final verdict\n\n[[A>B]]", "first"),
    (
        "[[A>B]] for the first. [[B>A]] for the second.\n\nOverall, I believe Assistant B is the better one.",
        "second",
    ),
    ('The transcript prints "[[A>>B]]", which I ignore. [[B>A]]', "second"),
    ('Example: "My final verdict is tie: [[A=B]]".\n[[A>B]]', "first"),
    ("> [[A>>B]]\n\n[[B>A]]", "second"),
    ("not [[A>B]] but [[B>A]]", "second"),
    ("A's reply: [[A>B]]\nB's final answer is wrong: [[B>A]]", None),
    ("A's reply: [[A>B]]\nB's reply: [[B>A]]", None),
    ("My final verdict is: [[A>B]]\n\nMy final verdict is: [[A=B]]", None),
    ("[[A>B]]\n\nIn conclusion, Assistant B's answer is clearly better.", None),
    ("[[B>A]] first, then [[A>>B]].\n\nIn conclusion, Assistant B is better.", None),
    ("[[C]]", None),
    ("[[A<B]]", None),
    ("[[A>B>C]]", None),
    ("[[A>B]] or [[C]]", None),
    ("[[A", None),
    ("Final answer: A", None),
]
MTBENCH = [
    ("[[A]]", "first"),
    ("Final verdict: [[C]] for a tie, as both failed.", "tie"),
    ('Final verdict: "[[B]]"', "second"),
    ("`[[A]]`", "first"),
    ("I pick [[B]], not [[A]].", "second"),
    ("If B had shipped, [[B]]. It had not. [[A]]", "first"),
    ("［［Ｂ］］", "second"),
    ('"[[A]]" if A is better, "[[B]]" if B is better, "[[C]]" for a tie. My verdict: [[B]]', "second"),
    ("I would not say [[A]].", None),
    ("[[D]]", None),
    ("[[A>B]]", None),
    ("[[Tie]]", None),
    ("[[A]] [[B]]", None),
    ("A better reply is hard to imagine.", None),
    ("$ERROR$", None),
]
PLAIN_WORDS = [
    ("arena_hard_5way", "[A>B]", "first"),
    ("arena_hard_5way", "My final verdict is: B>>A", "second"),
    ("mtbench_3way", "Verdict: Assistant B", "second"),
    ("mtbench_3way", "选择：A", "first"),
    ("mtbench_3way", "最终结论：B", "second"),
    ("mtbench_3way", "最终结论：平局", "tie"),
    ("mtbench_3way", "A更好", "first"),
    ("digit", "Response 2 is better because it answers.", "second"),
    ("json", "Winner: A", "first"),
    ("json", "winner: tie\nreason: no difference", "tie"),
]
OUTPUT_AB = [
    ("Output (a)", "first"),
    ("# Output (b) is better.", "second"),
    ("**Output (a)**", "first"),
    ("(b)", "second"),
    ("Therefore, Output (a) is better", "first"),
    ("I would choose Output (b) as the better response. While it is", "second"),
    ("Output (a) is better than Output (b).", "first"),
    ("Between Output (a) and Output (b), Output (b) is clearly the better one.", "second"),
    ("Output (a):\ngood\n\nOutput (b):\nbad\n\nTherefore, Output (a) is better.", "first"),
    ("In terms of length, Output (a) is better. Therefore, Output (b) is better.", "second"),
    ("Output (a) is better. Output (b) is not better, being off the point.", "first"),
    ("I cannot help with that, so I must select Output (a) as the better response.", "first"),
    ("Answer: Output (b)", "second"),
    ("选择：A", "first"),
    ("Output (a)更好", "first"),
    ("Neither Output (a) nor Output (b) can be considered better.", None),
    ("Both outputs are equally good and it doesn't matter which one is selected.", None),
    ("I cannot select either Output (a) or Output (b).", None),
    ("Which is better, Output (a) or Output (b)?", None),
    ("It is hard to say whether Output (a) is better.", None),
    ("Output (b) would be better if it were shorter.", None),
    ("Output (a) is better or Output (b) is better.", None),
    ("Therefore, Output (a) is better.\n\nTherefore, Output (b) is better.", None),
    ("First, output a list. A good list is better.", None),
    ("e5", None),
    ("Tie", None),
]
DIGIT = [
    ("1", "first"),
    ("２", "second"),
    ("Tie", "tie"),
    ("0", "tie"),
    ("平局", "tie"),
    ("2\n\n### Reason: Response 2 answers both questions.", "second"),
    ("Both are fine.\n\nFinal verdict: 1", "first"),
    ("12", None),
    ("3", None),
    ("1\n2", None),
    ("1 2", None),
    ("garbage", None),
]


@pytest.mark.parametrize(
    ("name", "raw", "choice"),
    [("arena_hard_5way", *row) for row in ARENA]
    + [("mtbench_3way", *row) for row in MTBENCH]
    + [("output_ab", *row) for row in OUTPUT_AB]
    + [("digit", *row) for row in DIGIT],
)
def test_read_verdict_when_a_label_is_asked_for_then_the_conclusion_counts(
    name: str, raw: str, choice: str | None
) -> None:
    verdict = read_verdict(raw, grammar(name))
    assert (verdict.choice, verdict.status) == (choice, "ok" if choice else "unreadable")
    assert (verdict.why is None) or verdict.choice is None or "closing words confirm" in verdict.why


@pytest.mark.parametrize(("name", "raw", "choice"), PLAIN_WORDS)
def test_read_verdict_when_plain_words_stand_in_for_the_form_then_repaired(
    name: str, raw: str, choice: str
) -> None:
    verdict = read_verdict(raw, grammar(name))
    assert (verdict.choice, verdict.status) == (choice, "repaired")


@pytest.mark.parametrize(
    ("raw", "choice"),
    [
        ("Had A refunded I would say [[A]]. It did not. Final verdict: [[B]]", "second"),
        ("<think>[[A]]</think>[[B]]", "second"),
        ("<thinking>\nfirst [[A]]\n</thinking>\n\n[[B]]", "second"),
        ("so it is [[A]], or not\n</think>\n[[B]]", "second"),
        ("<think>a <think> b </think> [[A]] </think>[[B]]", "second"),
        ("[THINK]maybe [[A]][/THINK][[B]]", "second"),
        ("<|channel|>analysis<|message|>[[A]]<|end|><|channel|>final<|message|>[[B]]", "second"),
        ("[[B]] <think>or [[A]]", "second"),
        ("The tag `</think>` leaked in A. [[B]]", "second"),
        ("<think>it must be [[A]]", None),
        ("<think>it must be [[A]]</think>", None),
    ],
)
def test_read_verdict_when_the_reply_thinks_aloud_then_only_the_answer_counts(
    raw: str, choice: str | None
) -> None:
    assert read_verdict(raw, grammar("mtbench_3way")).choice == choice


@pytest.mark.parametrize(
    ("name", "raw", "finish_reason", "choice", "status"),
    [
        ("json", None, "length", None, "truncated"),
        ("json", "", "stop", None, "unreadable"),
        ("json", None, "content_filter", None, "unreadable"),
        ("json", '{"winner":"A","reason":"the agent asked for the order num', "length", "first", "truncated"),
        ("json", '{"winner":"A","reason":"the agent asked for the order num', None, "first", "repaired"),
        ("json", '{"winner":"A', "length", None, "truncated"),
        ("json", '{"winner":"ti', None, None, "unreadable"),
        ("json", '{"reason":"both asked', "length", None, "truncated"),
        ("json", '{"parts": {"winner":"A"}, "winner":"B', None, None, "unreadable"),
        ("mtbench_3way", "[[A]] because", "length", "first", "truncated"),
        ("mtbench_3way", "I think [[", "length", None, "truncated"),
        ("arena_hard_5way", "A", "length", None, "truncated"),
        ("output_ab", "Therefore, Output (a) is better", "length", "first", "truncated"),
        ("output_ab", "Both Output (a) and Output", "length", None, "truncated"),
        ("score_pair", "9 1", "length", None, "truncated"),
        ("score_pair", "9 10\nBoth", "length", "second", "truncated"),
        ("digit", "  \n", None, None, "unreadable"),
    ],
)
def test_read_verdict_when_the_reply_was_cut_or_empty_then_only_a_complete_conclusion_is_kept(
    name: str, raw: str | None, finish_reason: str | None, choice: str | None, status: str
) -> None:
    verdict = read_verdict(raw, grammar(name), finish_reason)
    assert (verdict.choice, verdict.status) == (choice, status)


def test_grammar_when_known_then_its_scale_and_ties_are_stated() -> None:
    assert grammar("score_pair") == Grammar("score_pair", 1.0, 10.0, True)
    assert grammar("score_pair:0-5") == Grammar("score_pair", 0.0, 5.0, True)
    assert grammar("json:-1-1") == Grammar("json", -1.0, 1.0, True)
    assert grammar("json") == Grammar("json", None, None, True)
    assert grammar("llmbar_ab") == grammar("llmbar_cot") == Grammar("output_ab", None, None, False)


@pytest.mark.parametrize(
    "text", ["", "xml", "digit:0-5", "json:", "json:5", "json:5-0", "json:0-inf", "json:a-b"]
)
def test_grammar_when_unknown_then_the_error_names_it_and_the_known_ones(text: str) -> None:
    with pytest.raises(ValueError, match="unknown verdict grammar") as error:
        grammar(text)
    assert str(error.value) == (
        f"unknown verdict grammar {text!r}: use one of json, arena_hard_5way, mtbench_3way, output_ab, "
        "score_pair, digit, llmbar_ab, llmbar_cot; json and score_pair take a scale, as in score_pair:0-5"
    )


def test_read_verdict_when_given_the_collected_replies_then_every_one_is_as_a_careful_reader_says() -> None:
    path = Path(__file__).resolve().parents[2].parent / "shared" / "cases" / "raw_verdicts.jsonl"
    if not path.exists():
        pytest.skip(f"no collected replies at {path}")
    sides = {"first": "A", "second": "B", "tie": "tie", None: None}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    read = {row["id"]: sides[read_verdict(row["raw"], grammar(row["format"])).choice] for row in rows}
    assert [row["id"] for row in rows if read[row["id"]] not in row["acceptable"]] == []
    assert sum(read[row["id"]] == row["right"] for row in rows) == len(rows) == 34


@pytest.mark.parametrize("name", ["output_ab", "json", "digit"])
@pytest.mark.parametrize(
    "reply",
    ["[[A]]", "Final verdict: [[A]]", "Assistant A is better: [[A>B]]", "reasons\n\n[[B]]", "[[C]]", "[[1]]"],
)
def test_reply_when_it_is_labelled_as_another_grammar_asks_then_unreadable(name: str, reply: str) -> None:
    """Read all the same, a wrong grammar would look like a right one."""
    found = read_verdict(reply, grammar(name))
    assert (found.choice, found.status) == (None, "unreadable")
