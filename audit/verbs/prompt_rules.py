"""What a prompt must ask for and must not: read from its words, in English and Chinese.

A rule looks at clauses. One that denies (`never assume a step`) keeps it, one that affirms (`assume that it
was done`) breaks it whatever else stands there. In doubt a clause breaks it: a false alarm costs a look, a
judge that credits politeness costs a night.
"""

import re
from typing import NamedTuple

_NOT = (
    r"(?:\b(?:never|not|no|don't|doesn't|isn't|aren't|mustn't|shouldn't|cannot|can't|without|nor|neither)\b)"
)
_GAP = r"(?:[^\S\n]+[\w'-]+){0,3}?[^\S\n]+"  # up to three words, and no comma
_NOT_ZH = r"(?:不(?!妨|但|仅|如|少|过|要紧)|勿|别(?!人|的)|莫|切忌|禁止|无需|没有)"
_TURNED = re.compile(
    r"\b(hesitate|forget|fail|refuse|neglect|afraid|shy)\b|不要忘|别忘|不得不", re.IGNORECASE
)

_ASSUME = r"(?:assum\w*|presum\w*|suppos\w*|infer\w*|take[^.;\n]{0,30}for granted|guess\w*)"
_ASSUME_ZH = r"(?:假定|假设|推定|臆断|默认|认定|猜测)"
_MANNERS = r"(?:polite\w*|courte\w*|manners|friendl\w*|kind(?:ness|ly)|pleasant\w*)"
_MANNERS_ZH = r"(?:礼貌|客气|友好|态度)"
_WORTH = (
    r"(?:credit\w*|reward\w*|points?|score\w*|bonus\w*|prefer\w*|favou?r\w*|better|higher|plus|generous\w*"
    r"|counts?|weight\w*|worth)"
)
_WORTH_ZH = r"(?:加分|得分|给分|计分|评分|打分|奖励|偏向|更高|更好|优先|计入)"
_RATE = (
    r"(?:rat(?:e|es|ing|ings)\b|scor(?:e|es|ing)\b|grad(?:e|es|ing)\b|evaluat\w*|assess\w*|verdict|stars?\b"
    r"|satisfaction|out of (?:5|10|100|five|ten)|judge\b)"
)
_RATE_ZH = r"(?:打分|评分|给分|评价|满意度|分数|评判)"


class Rule(NamedTuple):
    """`about`: a clause that speaks of it; `denied`: it says no. `must`: one clause has to."""

    code: str
    wanted: str
    cut: re.Pattern[str]
    about: re.Pattern[str]
    denied: re.Pattern[str]
    must: bool


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_SENTENCES = re.compile(r"[;；。！!？?\n]+|\.(?=\s|$)")
_CLAUSES = re.compile(r"[,，;；:：。！!？?\n]+|\.(?=\s|$)")

NO_ASSUMPTION = Rule(
    "assumes_completion",
    "never to assume a step that is not shown",
    _CLAUSES,
    _words(rf"\b{_ASSUME}", _ASSUME_ZH),
    _words(
        rf"{_NOT}{_GAP}{_ASSUME}", rf"{_NOT}[^\S\n]+{_ASSUME}", rf"\b{_ASSUME}[^\S\n]+(?:nothing|no)\b",
        rf"\b(?:avoid|refrain from)[^\S\n]+{_ASSUME}", rf"{_NOT_ZH}.{{0,6}}{_ASSUME_ZH}",
    ),
    must=True,
)  # fmt: skip
NO_POLITENESS = Rule(
    "credits_politeness",
    "to give no credit for politeness",
    _SENTENCES,
    _words(
        rf"\b{_MANNERS}.*\b{_WORTH}", rf"\b{_WORTH}.*\b{_MANNERS}", rf"(?:ignore|disregard).*\b{_MANNERS}",
        rf"{_MANNERS_ZH}.*{_WORTH_ZH}", rf"{_WORTH_ZH}.*{_MANNERS_ZH}", rf"(?:忽略|无视).*{_MANNERS_ZH}",
        rf"{_NOT}{_GAP}{_MANNERS}", rf"{_MANNERS}.*{_NOT}",
    ),
    _words(
        rf"{_NOT}{_GAP}{_WORTH}.*\b{_MANNERS}", rf"{_NOT}[^\S\n]+{_WORTH}.*\b{_MANNERS}",
        rf"{_NOT}{_GAP}{_MANNERS}", rf"(?:ignore|disregard)[^\S\n][^,]*\b{_MANNERS}",
        rf"\b{_MANNERS}[^.]*(?:{_NOT}|\bnothing\b|\bnone\b|\birrelevant\b)",
        rf"{_MANNERS_ZH}.*?{_NOT_ZH}.{{0,4}}{_WORTH_ZH}", rf"{_NOT_ZH}.{{0,8}}{_MANNERS_ZH}.*{_WORTH_ZH}",
        rf"(?:忽略|无视).*{_MANNERS_ZH}", rf"{_MANNERS_ZH}.*(?:无关|不计|不予)",
    ),
    must=True,
)  # fmt: skip
NO_SCORE = Rule(
    "asks_for_a_score",
    "for no score of the assistant",
    _CLAUSES,
    _words(rf"\b{_RATE}", _RATE_ZH),
    _words(
        rf"{_NOT}{_GAP}{_RATE}", rf"{_NOT}[^\S\n]+{_RATE}", rf"\b(?:avoid|refrain from)[^\S\n]+{_RATE}",
        rf"{_NOT_ZH}.{{0,8}}{_RATE_ZH}",
    ),
    must=False,
)  # fmt: skip
# Template -> what holds for it: the first three are put to a judge.
RULES: dict[str, tuple[Rule, ...]] = {
    "judge_pair": (NO_ASSUMPTION, NO_POLITENESS),
    "satisfaction": (NO_ASSUMPTION, NO_POLITENESS),
    "check": (NO_ASSUMPTION, NO_POLITENESS),
    "simulated_user": (NO_SCORE,),
}


def broken(rule: Rule, text: str) -> str | None:
    """The clause that breaks the rule, empty where one is missing; NULL where the rule is kept."""
    clauses = [clause.strip(" -*\t") for clause in rule.cut.split(_without_code(text))]
    about = [clause for clause in clauses if rule.about.search(clause)]
    for clause in about:
        if not _denies(rule, clause):
            return clause
    return "" if rule.must and not about else None


def _denies(rule: Rule, clause: str) -> bool:
    return rule.denied.search(clause) is not None and _TURNED.search(clause) is None


def _without_code(text: str) -> str:
    """Without the template's own code, and without the JSON of the answer."""
    return re.sub(r"\{[{%#].*?[}%#]\}|^\{.*\}$", "", text, flags=re.DOTALL | re.MULTILINE)


def checked(template: str, text: str) -> list[tuple[Rule, str | None]]:
    """(rule, what breaks it) of every rule for a template with this text."""
    return [(rule, broken(rule, text)) for rule in RULES[template]]
