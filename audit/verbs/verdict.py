"""Reading a judge's verdict from the raw text of its reply: one reader, told what the prompt asked for.

The idea: a reply is a list of *claims*, the places that name a verdict. Each claim has a weight by how it is
put forward (`verdict_claims`):

    FINAL    where the judge concludes: "Final verdict: [[B]]", "Therefore, Output (a) is better"
    STATED   anywhere else in the judge's own words
    ASIDE    quoted, fenced, supposed ("had A refunded, [[A]]"), or about one aspect ("in terms of length")

and the claims are settled by one rule: what follows from the first final claim on is heard, without the
asides; with no final claim, all that is stated; asides only where there is nothing else. What is heard must
name one choice. Two that differ leave the reply unreadable, and so does a label the grammar does not know:
neither is ever a tie. Prose after a label may confirm it, never overrule it. Thinking is cut out before
anything is read (`verdict_text`).

    verdict_labels    [[A>>B]], [[C]], "Output (a)", 1/2/tie     verdict_prose   "Output (b) is better"
    verdict_objects   {"winner": "A", ...}                       verdict_find    the objects among the text
    verdict_scores    9 8.5

Sides stand in every pattern and table as a pair, so a reply with its sides exchanged gives the mirrored
verdict.
"""

from __future__ import annotations

from dataclasses import replace

from audit.verbs.grammars import Grammar, grammar
from audit.verbs.verdict_claims import MOST_CLAIMS, TooManyClaims
from audit.verbs.verdict_labels import read_bracketed, read_digit, read_output_ab
from audit.verbs.verdict_objects import read_object
from audit.verbs.verdict_scores import read_score_pair
from audit.verbs.verdict_shape import Choice, Status, Verdict, unreadable

__all__ = ["Choice", "Grammar", "Status", "Verdict", "grammar", "read_verdict"]

_READERS = {
    "arena_hard_5way": read_bracketed,
    "mtbench_3way": read_bracketed,
    "json": read_object,
    "output_ab": read_output_ab,
    "digit": read_digit,
}
# OpenAI's word, and those of providers behind compatible gateways.
_CUT = frozenset({"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length"})


def read_verdict(raw: str | None, grammar: Grammar, finish_reason: str | None = None) -> Verdict:
    """What `raw` says in `grammar`; never raises, whatever the text, in time linear in its length.

    A reply that the provider cut is `truncated`; its choice is kept when the conclusion was complete by then.
    """
    is_cut = finish_reason in _CUT
    if raw is None or not raw or raw.isspace():
        verdict = unreadable("empty reply")
    else:
        is_cut = is_cut or finish_reason == "content_filter"
        verdict = _read(raw, grammar, is_cut)
    return replace(verdict, status="truncated") if is_cut else verdict


def _read(raw: str, grammar: Grammar, is_cut: bool) -> Verdict:
    try:
        if grammar.name == "score_pair":
            return read_score_pair(raw, grammar, cut=is_cut)
        return _READERS[grammar.name](raw, grammar)
    except TooManyClaims:
        return unreadable(f"more than {MOST_CLAIMS} verdicts")
