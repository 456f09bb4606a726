"""What holds for every reply: exchanging the sides mirrors the verdict, nothing raises, time is linear."""

import json
import time
from collections.abc import Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from audit.verbs.verdict import Verdict, grammar, read_verdict
from audit.verbs.verdict_shape import mirrored

GRAMMARS = ["json:0-10", "arena_hard_5way", "mtbench_3way", "output_ab", "score_pair", "digit"]

# {x} and {y} stand for the sides as letters, {p} and {q} as numbers, {s} and {t} for their scores.
PROSE = [
    "Assistant {x} asked first. ",
    "Assistant {x}'s reply is better than Assistant {y}'s. ",
    "Output ({x}) is better.\n",
    "Output ({x}) is not better.",
    "Therefore, Output ({x}) is better.\n\n",
    "I would choose Output ({x}) over Output ({y}). ",
    "Neither Output ({x}) nor Output ({y}) is better. ",
    "Both Output ({x}) and Output ({y}) are equally good.",
    "In terms of length, Response {p} is better. ",
    "In conclusion, Response {p} is the stronger one.\n",
    "Overall, I believe Assistant {x} to be the better of the two.",
    "Had it refunded, I would say ",
    "A better answer asks a question. ",
    "Final verdict: ",
    "My final verdict is: ",
    "\n## Final verdict\n\n",
    "Winner: {x}\n",
    "选择：{x}\n",
    "{x}更好。",
    "The transcript ends with:\n",
    "not ",
    '"',
    "`",
    "\n```\n",
    "\n> ",
    "<think>",
    "</think>\n",
    "\n",
    " ",
]
LABELS = {
    "arena_hard_5way": [
        "[[{x}>>{y}]]",
        "[[{x}>{y}]]",
        "[[{x}={y}]]",
        "[[C]]",
        "[{x}>{y}]",
        "[[{x}<{y}]]",
        "[[1, 2]]",
    ],
    "mtbench_3way": ["[[{x}]]", "[[{y}]]", "[[C]]", "[[D]]", "［［{x}］］"],
    "output_ab": ["Output ({x})", "**Output ({x})**\n", "\nOutput ({y})\n", "({x})"],
    "digit": ["{p}\n", "\n{q}", "Tie\n", "0\n", "Answer: {p}\n", "3\n"],
    "score_pair": [
        "{s} {t}\n",
        "\n{s}, {t}",
        "Assistant {p}: {s}\nAssistant {q}: {t}\n",
        "Final scores: {s} {t}\n",
    ],
    "json:0-10": [
        '{{"winner": "{x}", "score_{l}": {s}, "score_{m}": {t}}}',
        '{{"winner": "{x}"}}',
        "{{'winner': '{x}', 'sure': True}}",
        '{{"winner": "tie",}}',
        '{{"winner": "C"}}',
        '{{"winner": "{x}", "reason": "cut',
    ],
}


def _sides(exchanged: bool, scores: tuple[str, str]) -> Mapping[str, str]:
    names = ("x", "y"), ("p", "q"), ("l", "m")
    values = ("A", "B"), ("1", "2"), ("a", "b")
    pairs = [*zip(names, values, strict=True)]
    sides = {
        n: v
        for name, value in pairs
        for n, v in zip(name, reversed(value) if exchanged else value, strict=True)
    }
    first, second = reversed(scores) if exchanged else scores
    return {**sides, "s": first, "t": second}


def _exchange_scores_of_labels(name: str, fragment: str) -> bool:
    # In a pair the scores stand for the positions themselves, elsewhere they go with the side they are
    # written beside.
    return name == "score_pair" and "{p}" not in fragment


@st.composite
def replies(draw: st.DrawFn) -> tuple[str, str, str]:
    """A grammar, a reply, and the same reply with the sides exchanged throughout."""
    name = draw(st.sampled_from(GRAMMARS))
    fragments = draw(
        st.lists(st.one_of(st.sampled_from(LABELS[name]), st.sampled_from(PROSE)), min_size=1, max_size=7)
    )
    scores = draw(st.tuples(*[st.sampled_from(["0", "1", "7", "8.5", "10", "11"])] * 2))
    plain, exchanged = [], []
    for fragment in fragments:
        plain.append(fragment.format(**_sides(False, scores)))
        swapped = dict(_sides(True, scores))
        if not _exchange_scores_of_labels(name, fragment):
            swapped |= {"s": scores[0], "t": scores[1]}
        exchanged.append(fragment.format(**swapped))
    return name, "".join(plain), "".join(exchanged)


@settings(max_examples=600, deadline=None)
@given(replies())
@example(
    ("output_ab", "Output (a)\n\nA better list is Output (b).", "Output (b)\n\nA better list is Output (a).")
)
def test_read_verdict_when_the_sides_are_exchanged_then_the_verdict_is_mirrored(
    reply: tuple[str, str, str],
) -> None:
    name, raw, exchanged = reply
    one, other = read_verdict(raw, grammar(name)), read_verdict(exchanged, grammar(name))
    assert other.choice == (None if one.choice is None else mirrored(one.choice))
    assert other.status == one.status
    assert (other.score_first, other.score_second) == (one.score_second, one.score_first)


def _well_formed(verdict: Verdict) -> None:
    assert (verdict.choice is None) == (verdict.status == "unreadable")
    assert verdict.choice is not None or verdict.why
    json.dumps(verdict.parsed, allow_nan=False).encode()
    json.dumps(verdict.parsed, ensure_ascii=False, allow_nan=False).encode("utf-8")


HOSTILE = st.one_of(
    st.text(),
    st.text(alphabet=st.sampled_from("[]{}<>=:\"'\\/AB12C.,\n ﻿\u200f\ud800\x00“”［］｛＂`#*")),
    st.lists(
        st.sampled_from(['{"winner":', '"A"', "}", "{", "[[", "A>B", "]]", "<think>", "</think>", "NaN", ","])
    ).map("".join),
)


@settings(max_examples=500, deadline=None)
@given(HOSTILE, st.sampled_from(GRAMMARS))
@example('{"winner": "A", "reason": "\ud800"}', "json:0-10")
@example('{"winner": "A", "reason": "\\ud800", "score_a": -Infinity}', "json:0-10")
@example('{"winner": "A", "score_a": 1' + "0" * 5000 + "}", "json:0-10")
@example('{"winner":' * 3000, "json:0-10")
def test_read_verdict_when_the_text_is_anything_then_it_does_not_raise(raw: str, name: str) -> None:
    _well_formed(read_verdict(raw, grammar(name)))
    assert read_verdict(raw, grammar(name), "length").status == "truncated"


@settings(max_examples=200, deadline=None)
@given(
    st.text(),
    st.sampled_from(["A", "B", "tie"]),
    st.sampled_from(["{}", "```json\n{}\n```", "Verdict:\n{}\nDone."]),
)
def test_read_verdict_when_the_json_is_valid_then_any_reason_survives(
    reason: str, winner: str, around: str
) -> None:
    raw = around.replace("{}", json.dumps({"winner": winner, "reason": reason}))
    verdict = read_verdict(raw, grammar("json"))
    assert (verdict.choice, verdict.status) == ({"A": "first", "B": "second", "tie": "tie"}[winner], "ok")
    assert verdict.parsed == {"winner": winner, "reason": reason}


KNOWN = {"A", "B", "C", "A>B", "A>>B", "A=B", "B=A", "B>A", "B>>A"}


@settings(max_examples=300, deadline=None)
@given(
    st.text(alphabet="ABCDEXtie<>=~ 12", min_size=1, max_size=6),
    st.sampled_from(["arena_hard_5way", "mtbench_3way"]),
)
def test_read_verdict_when_the_label_is_unknown_then_never_a_tie(label: str, name: str) -> None:
    if label.replace(" ", "").upper() not in KNOWN:
        verdict = read_verdict(f"My final verdict is: [[{label}]]", grammar(name))
        assert verdict.choice is None


MEGABYTE = [
    "[",
    "[[A",
    "[[A]] ",
    '"[[A>B]]" ',
    "{",
    '{"',
    '{"a":',
    '{"winner":"A",',
    '{"winner":"A"}',
    '{"winner":"A" "',
    "}{",
    "<think>",
    "</think>",
    "<think></think>",
    " ",
    "\n",
    "Output (a) ",
    "Output (a) is ",
    "Output (a) is better. ",
    "1\n",
    "9 8\n",
    "Assistant 1: 9 ",
    "Winner: A\n",
    "final verdict ",
    "neither ",
    "a",
    '"',
    "\\",
    "A更好",
    "【",
    "\u0301\u0327",
]


@pytest.mark.parametrize("piece", MEGABYTE)
def test_read_verdict_when_the_reply_is_a_megabyte_of_one_thing_then_time_stays_linear(piece: str) -> None:
    raw = piece * (1_000_000 // len(piece))
    for name in GRAMMARS:
        started = time.process_time()
        read_verdict(raw, grammar(name))
        # Linear reading takes about half a second; a quadratic one takes hours.
        assert time.process_time() - started < 2, name
