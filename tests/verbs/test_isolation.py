"""Isolation: one prompt for judge and simulated user is none at all, whatever else they differ in."""

from audit.verbs.isolation import isolation
from audit.words.config import Profile


def test_isolation_when_both_have_one_prompt_then_the_grade_is_none() -> None:
    judge = Profile(name="j", role="llm_judge", base_url="https://a/v1", model="gpt-5")
    user = Profile(name="u", role="simulated_user", base_url="https://b/v1", model="claude-4")
    assert isolation(judge, user, is_same_prompt=False).grade == "full"
    assert isolation(judge, user, is_same_prompt=True) == ("j", "u", ("prompt",), "none")


def test_isolation_when_two_models_are_served_in_this_program_then_no_provider_is_shared() -> None:
    judge = Profile(name="j", role="llm_judge", base_url="offline://synthetic", model="judge-80")
    user = Profile(name="u", role="simulated_user", base_url="offline://synthetic", model="customer")
    assert isolation(judge, user, is_same_prompt=False).shared == ()
