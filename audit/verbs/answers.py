"""Reading one answer of a file: by our own reader, or as the decision that was recorded with it."""

from audit.verbs.grammars import grammar
from audit.verbs.settle import choice_of, preference_of
from audit.verbs.verdict import read_verdict
from audit.words.names import Answer, Choice, ParseStatus, Preference
from audit.words.records import Judgment, RawAnswer
from audit.words.text import as_json


def read_answer(raw: RawAnswer, *, reread: bool = False) -> Judgment:
    """The answer as a preference by side, or why there is none.

    A recorded decision stands (`parse_status` recorded, or unreadable where it says that none was found)
    unless `reread` asks for the reply, or for the two scores where there is no reply, to be read anew.
    Raises ValueError for an unknown grammar.
    """
    if raw.error is not None:
        return Judgment(raw.order, "failed", None, None, "error", None, None, None)
    if raw.grammar is not None and raw.raw_output is not None and (reread or not raw.is_recorded):
        return _read(raw, raw.raw_output, raw.grammar)
    if reread and raw.score_first is not None and raw.score_second is not None:
        return _by_scores(raw, raw.score_first, raw.score_second)
    if raw.is_recorded:
        return _recorded(raw)
    return Judgment(raw.order, "missing", None, None, "error", None, None, None)


def _read(raw: RawAnswer, reply: str, name: str) -> Judgment:
    verdict = read_verdict(reply, grammar(name), raw.finish_reason)
    parsed = None if verdict.parsed is None else as_json(verdict.parsed)
    if verdict.score_first is None and verdict.score_second is None:
        # The reply gives none: those that the file gives beside it stand.
        return _judgment(raw, verdict.choice, verdict.status, parsed, raw.score_first, raw.score_second)
    return _judgment(raw, verdict.choice, verdict.status, parsed, verdict.score_first, verdict.score_second)


def _by_scores(raw: RawAnswer, first: float, second: float) -> Judgment:
    choice: Choice = "tie" if first == second else "first" if first > second else "second"
    return _judgment(raw, choice, "ok", as_json({"scores": [first, second]}), first, second)


def _recorded(raw: RawAnswer) -> Judgment:
    parsed: dict[str, object] = {"decision": raw.decision}
    if raw.score_first is not None:
        parsed["scores"] = [raw.score_first, raw.score_second]
    choice = raw.choice or choice_of(raw.preference, raw.order)
    status: ParseStatus = "unreadable" if choice is None else "recorded"
    return _judgment(raw, choice, status, as_json(parsed), raw.score_first, raw.score_second)


def _judgment(
    raw: RawAnswer,
    choice: Choice | None,
    status: ParseStatus,
    parsed: str | None,
    first: float | None,
    second: float | None,
) -> Judgment:
    preference: Preference | None = preference_of(choice, raw.order)
    answer: Answer = preference or "unreadable"
    if choice is None:
        # A half of what could not be read is no score to average.
        first = second = None
    score_a, score_b = (first, second) if raw.order == "AB" else (second, first)
    return Judgment(raw.order, answer, choice, preference, status, parsed, score_a, score_b)
