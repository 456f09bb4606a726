"""The prompt templates: versioned by their text, filled without gaps, the same whatever the data."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from jinja2 import UndefinedError

import audit.doors.prompts
from audit.doors.prompts import prompt

NAMES = {
    "simulated_user": {
        "goal": "g",
        "facts": ["one", "two"],
        "finished": "<finished>",
        "blocked": "<blocked>",
    },
    "agent": {"policy": "p"},
    "judge_pair": {"goal": "g", "policy": "p", "nonce": "n0", "first": "f", "second": "s"},
    "check": {"goal": "g", "policy": "p", "nonce": "n0", "session": "s", "criterion": "c"},
    "satisfaction": {"goal": "g", "policy": "p", "nonce": "n0", "session": "s"},
}
LANGUAGES = ("en", "zh")
FOLDER = Path(audit.doors.prompts.__file__).parents[1] / "prompts"
EACH = [(name, language) for name in NAMES for language in LANGUAGES]


def test_templates_when_listed_then_each_is_there_in_english_and_in_chinese() -> None:
    assert {path.name for path in FOLDER.glob("*.jinja")} == {f"{name}.{lang}.jinja" for name, lang in EACH}


@pytest.mark.parametrize(("name", "language"), EACH)
def test_prompt_when_loaded_then_its_hash_is_of_the_templates_text_alone(name: str, language: str) -> None:
    found = prompt(name, language)
    text = (FOLDER / f"{name}.{language}.jinja").read_bytes()
    assert found.prompt_hash == hashlib.sha256(text).hexdigest()[:16]
    before = found.prompt_hash
    found.fill(**NAMES[name])
    assert prompt(name, language).prompt_hash == before
    assert len({prompt(*each).prompt_hash for each in EACH}) == len(EACH)


@pytest.mark.parametrize(("name", "language"), EACH)
def test_prompt_when_filled_then_every_value_is_in_it_and_a_gap_is_an_error(name: str, language: str) -> None:
    values: dict[str, Any] = {
        key: [f"[{key} 0]", f"[{key} 1]"] if isinstance(value, list) else f"[{key}]"
        for key, value in NAMES[name].items()
    }
    messages = prompt(name, language).fill(**values)
    whole = "\n".join(message["content"] for message in messages)
    assert messages[0]["role"] == "system"
    for value in values.values():
        assert all(part in whole for part in ([value] if isinstance(value, str) else value))
    for key in values:
        with pytest.raises(UndefinedError, match=key):
            prompt(name, language).fill(**{other: held for other, held in values.items() if other != key})


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["judge_pair", "satisfaction", "check"])
def test_prompt_when_data_holds_template_code_or_markup_then_it_stays_text(name: str, language: str) -> None:
    text = "{{ policy }} {% raw %} {# no comment #} <b>&amp;</b> 顾客 {{ 7 * 7 }}"
    values = {
        key: text if key in ("first", "session", "goal") else value for key, value in NAMES[name].items()
    }
    messages = prompt(name, language).fill(**values)
    assert text in messages[-1]["content"]
    # Data stands in the user's message, instructions in the system's.
    assert text not in messages[0]["content"]
    assert "49" not in messages[-1]["content"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_judge_prompt_when_read_then_evidence_is_asked_for_before_scores_and_scores_before_the_winner(
    language: str,
) -> None:
    system = prompt("judge_pair", language).fill(**NAMES["judge_pair"])[0]["content"]
    places = [system.rindex(f'"{key}"') for key in ("evidence", "score_first", "score_second", "winner")]
    assert places == sorted(places)
    assert system.index('"first"') < system.index('"score_first"')


@pytest.mark.parametrize("language", LANGUAGES)
def test_user_prompt_when_filled_then_it_names_both_stop_tokens_and_no_check_or_score(language: str) -> None:
    system = prompt("simulated_user", language).fill(**NAMES["simulated_user"])[0]["content"]
    assert "<finished>" in system
    assert "<blocked>" in system
    assert not [word for word in ("reward", "score", "check", "评分", "奖励") if word in system.lower()]
