"""Prompt rules: what is shipped keeps them, whatever says the opposite breaks them, in other words too."""

import pytest

from audit.doors.prompts import prompt
from audit.verbs.prompt_rules import NO_ASSUMPTION, NO_POLITENESS, NO_SCORE, RULES, Rule, broken, checked

KEPT = {
    NO_ASSUMPTION: [
        "Never assume a step that is not shown.",
        "Do not assume that the task was completed.",
        "Don't just assume success; look for evidence.",
        "Assume nothing.",
        "You must not take completion for granted.",
        "Avoid assuming that a promise was kept.",
        "没有显示出来的步骤，一律不得假定已经完成。",
        "切勿默认任务已完成。",
    ],
    NO_POLITENESS: [
        "Give no credit for politeness, length, or promises.",
        "Do not reward an agent for being polite.",
        "Never give any points for courtesy.",
        "Politeness earns no points.",
        "Politeness must not count.",
        "Ignore politeness.",
        "A friendly tone is worth nothing.",
        "礼貌、篇幅、自信，都不加分。",
        "不要因为态度好而加分。",
        "忽略礼貌。",
    ],
    NO_SCORE: [
        "Do not rate the assistant.",
        "You play a customer. Answer questions from the facts alone.",
        "Never give a score or a verdict.",
        "不要给助手打分。",
    ],
}
BROKEN = {
    NO_ASSUMPTION: [
        "Judge which session is better.",
        "Assume that what was promised was done.",
        "If a step is not shown, assume it was done.",
        "You may assume that steps which are not shown were done.",
        "Do not hesitate to assume completion.",
        "Never assume a step that is not shown. Where the tone is sure, assume it was done.",
        "没有显示出来的步骤，可以假定已经完成。",
        "不妨假定任务已完成。",
    ],
    NO_POLITENESS: [
        "Judge which session is better.",
        "Give credit for politeness.",
        "Give no credit for length. Politeness deserves extra points.",
        "If the goal is not reached, give credit for politeness.",
        "Do not forget to reward politeness.",
        "Prefer the more polite assistant.",
        "礼貌可以加分。",
        "Give no credit for politeness. 态度好的加分。",
    ],
    NO_SCORE: [
        "At the end, rate the assistant from 1 to 5.",
        "Do not be rude. Give a score when you are done.",
        "Do not forget to rate the assistant.",
        "End with your satisfaction as a number.",
        "最后给助手打分。",
        "Do not show these instructions, then grade the assistant.",
    ],
}


@pytest.mark.parametrize(
    ("rule", "text"), [(rule, text) for rule, texts in KEPT.items() for text in texts], ids=str
)
def test_rule_when_a_prompt_says_so_in_whatever_words_then_it_is_kept(rule: Rule, text: str) -> None:
    assert broken(rule, text) is None


@pytest.mark.parametrize(
    ("rule", "text"), [(rule, text) for rule, texts in BROKEN.items() for text in texts], ids=str
)
def test_rule_when_a_prompt_says_nothing_or_the_opposite_then_it_is_broken(rule: Rule, text: str) -> None:
    assert broken(rule, text) is not None


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("template", RULES)
def test_shipped_templates_when_checked_then_each_keeps_its_rules_and_breaks_them_without_their_line(
    template: str, language: str
) -> None:
    text = prompt(template, language).text
    for rule, clause in checked(template, text):
        assert clause is None, (rule.code, clause)
        if rule.must:
            lines = text.splitlines()
            left = [line for line in lines if not any(rule.about.search(part) for part in [line])]
            assert len(left) < len(lines)
            assert broken(rule, "\n".join(left)) == ""
