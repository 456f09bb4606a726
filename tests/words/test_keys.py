"""What is taken for a key, and what must not be."""

from typing import Any

import pytest

from audit.words.keys import (
    is_guessable,
    is_variable,
    keys_in,
    looks_like_key,
    names_a_key,
    shown,
    without_keys,
)


@pytest.mark.parametrize(
    "name",
    [
        "JUDGE_KEY",
        "OpenAI_Key_2",
        "openai_api_key",
        "_K",
        "EMPTY",
        "deepseek",
        "AZURE_OPENAI_API_KEY_EU_WEST_2",
    ],
)
def test_variable_when_it_is_a_name_then_is_taken(name: str) -> None:
    assert is_variable(name)


@pytest.mark.parametrize(
    "name",
    [
        "SeCrEt9876",
        "sk-abcdefgh1",
        "gsk_abcdefgh1",
        "hf_abcdefgh1",
        "abcdef0123456789abcdef0123456789",
        "JUDGE KEY",
        "9K",
        "",
        "JUDGE_KEY\n",
    ],
)
def test_variable_when_it_may_be_the_key_itself_then_is_refused(name: str) -> None:
    assert not is_variable(name)


@pytest.mark.parametrize(
    "key", ["first", "true", "1234", "none", "not-needed", "lm studio", "20250601", "Xq7-a"]
)
def test_key_when_short_or_a_word_or_a_number_then_is_guessable(key: str) -> None:
    assert is_guessable(key)


@pytest.mark.parametrize(
    "key", ["SeCrEt9876", "sk-judge1", "abcdefghijklmnopqrstuvwx", "123456789012345678901"]
)
def test_key_when_nobody_would_write_it_by_chance_then_is_not_guessable(key: str) -> None:
    assert not is_guessable(key)


@pytest.mark.parametrize(
    "name",
    ["key", "api_key", "api-key", "apikey", "X-Api-Key", "accessToken", "Authorization", "client_secret"],
)
def test_name_when_a_key_stands_under_it_then_is_known(name: str) -> None:
    assert names_a_key(name)


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "stop_token_ids", "prompt_cache_key", "keyboard", "seed", "api-version", "", "模型"],
)
def test_name_when_no_key_stands_under_it_then_is_left(name: str) -> None:
    assert not names_a_key(name)


def test_looks_when_long_with_digits_or_well_known_then_like_a_key() -> None:
    assert all(map(looks_like_key, ("sk-12345678", "a1b2c3d4e5f6a7b8c9d0", "AIzaSyA12345678")))
    assert not any(
        map(looks_like_key, ("2025-04-01-preview", "gpt-4o-mini", "sk-x", "two words of 20 letters"))
    )


def test_without_keys_when_nested_then_only_keys_are_replaced() -> None:
    extra: dict[str, Any] = {
        "top_p": 0.5,
        "stop": ["<|im_end|>"],
        "key": "Xq7-one",
        "eos_token": "<|im_end|>",
        "auth": {"token": ["Xq7-two", None, True], "user": "me"},
        "tools": [{"parameters": {"key": {"type": "string"}}}],
        "headers": {"X-Any": "Bearer Xq7-three"},
    }
    assert without_keys(extra) == {
        "top_p": 0.5,
        "stop": ["<|im_end|>"],
        "key": "[key]",
        "eos_token": "[key]",
        "auth": {"token": ["[key]", None, True], "user": "me"},
        "tools": [{"parameters": {"key": {"type": "string"}}}],
        "headers": {"X-Any": "[key]"},
    }
    # What no key looks like is not looked for elsewhere: replies may well hold it.
    assert keys_in(extra) == {"Xq7-one", "Xq7-two", "Bearer Xq7-three", "Xq7-three"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("false", "'false'"),
        ("both_agre", "'both_agre'"),
        (7, "7"),
        ("Xq7-planted", "'Xq7'... (11 characters)"),
        ({"a": 1}, "a mapping"),
        (["Xq7-planted"], "a list"),
    ],
)
def test_shown_when_it_may_be_a_key_then_is_cut(value: object, text: str) -> None:
    assert shown(value) == text
