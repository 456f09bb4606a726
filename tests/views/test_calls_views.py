"""prompt_versions and token_cost: what the calls of a run were asked with, and what they took."""

from typing import Any

from audit.words import schema


def test_prompt_versions_when_a_wording_was_kept_then_it_stands_beside_its_calls(given: Any) -> None:
    given.run("r1")
    given.run("r2")
    given._put(
        schema.prompts,
        {"prompt_hash": "aa", "role": "judge", "name": "judge_pair", "version": "1", "text": "Who?"},
    )
    given.call(prompt_hash="aa", created_at="2026-01-02T00:00:00Z")
    given.call(prompt_hash="aa", created_at="2026-01-01T00:00:00Z")
    given.call(prompt_hash="bb")
    given.call(prompt_hash="aa", role="satisfaction")
    given.call()
    given.call("r2", prompt_hash="aa")

    assert given.rows(
        "select run_id, role, prompt_hash, name, version, calls, text from prompt_versions order by 1, 2, 3"
    ) == [
        ("r1", "judge", "aa", "judge_pair", "1", 2, "Who?"),
        ("r1", "judge", "bb", None, None, 1, None),
        ("r1", "satisfaction", "aa", "judge_pair", "1", 1, "Who?"),
        ("r2", "judge", "aa", "judge_pair", "1", 1, "Who?"),
    ]
    assert given.rows("select first_at, last_at from prompt_versions where calls = 2") == [
        ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    ]


def test_token_cost_when_some_tokens_are_unknown_then_known_ones_are_summed_and_nothing_is_0(
    given: Any,
) -> None:
    given.run()
    for tokens in (10, None, 5):
        given.call(profile="j", model="m", prompt_tokens=tokens, total_tokens=tokens, latency_ms=200.0)
    given.call(profile="j", model="m", parse_status="error")
    given.call(profile="a", model="n", role="agent")

    assert given.rows(
        "select role, profile, model, calls, calls_failed, calls_unknown, prompt_tokens, completion_tokens, "
        "reasoning_tokens, total_tokens, mean_latency_ms from token_cost order by role"
    ) == [
        ("agent", "a", "n", 1, 0, 1, None, None, None, None, None),
        ("judge", "j", "m", 4, 1, 2, 15, None, None, 15, 200.0),
    ]
