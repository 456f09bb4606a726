"""audit.yaml: nothing is guessed, nothing unknown is taken, every fault is told at once with its key path."""

from datetime import date
from typing import Any

import pytest

from audit.words.config import Config, check_config
from audit.words.errors import BadFile


def profile(name: str, role: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "role": role, "base_url": "http://127.0.0.1:1/v1", "model": f"model-{name}", **more}


def config(**changes: Any) -> dict[str, Any]:
    return {
        "profiles": [
            profile("u", "simulated_user"),
            profile("a", "agent"),
            profile("b", "agent"),
            profile("c", "agent"),
            profile("j", "llm_judge"),
            profile("k", "llm_judge"),
        ],
        "agents": ["a", "b", "c"],
        "user": "u",
        "judges": "j",
    } | changes


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown key": (
        {"swap_rul": "net_vote"},
        "swap_rul: unknown key (did you mean swap_rule?)",
    ),
    "a boolean as text": (
        {"llm_labels_count": "false"},
        "llm_labels_count: expected a valid boolean, found 'false'",
    ),
    "a number as text": ({"trials": "2"}, "trials: expected a valid integer, found '2'"),
    "a seed over 64 bits": (
        {"seed": 2**70},
        "seed: expected less than 9223372036854775808, found 1180591620717411303424",
    ),
    "a seed below 64 bits": (
        {"profiles": [*config()["profiles"], profile("x", "agent", seed=-(2**63) - 1)]},
        "profiles[6].seed: expected greater than or equal to -9223372036854775808, "
        "found -9223372036854775809",
    ),
    "no end of trials": (
        {"trials": 10**9},
        "trials: expected less than or equal to 10000000, found 1000000000",
    ),
    "no number": ({"max_error_rate": float("nan")}, "max_error_rate: expected a finite number, found nan"),
    "no finite number": (
        {"profiles": [*config()["profiles"], profile("x", "agent", rpm=float("inf"))]},
        "profiles[6].rpm: expected a finite number, found inf",
    ),
    "a date among what is sent": (
        {"profiles": [*config()["profiles"], profile("x", "agent", extra={"a": [date(2025, 1, 1)]})]},
        "profiles[6].extra: holds what JSON cannot: a date, an infinite number, or itself",
    ),
    "no finite number among what is sent": (
        {"profiles": [*config()["profiles"], profile("x", "agent", extra={"a": float("inf")})]},
        "profiles[6].extra: holds what JSON cannot: a date, an infinite number, or itself",
    ),
    "no pairs": ({"pairs": []}, "pairs: expected one pair of agents or more, found none"),
    "too few": ({"trials": 0}, "trials: expected greater than or equal to 1, found 0"),
    "a number as a model": (
        {"profiles": [*config()["profiles"], profile("x", "agent", model=1.0)]},
        "profiles[6].model: expected text: put it in quotes, found 1.0",
    ),
    "a key of a wrong type": (
        {"profiles": [*config()["profiles"], profile("x", "agent", api_key=12345)]},
        "profiles[6].api_key: expected text: put it in quotes, found a secret",
    ),
    "a slip in a profile": (
        {"profiles": [*config()["profiles"], profile("x", "agent", temprature=0)]},
        "profiles[6].temprature: unknown key (did you mean temperature?)",
    ),
    "a vote that is none": (
        {"judges": {"members": ["j"], "vote": "most"}},
        "judges[0].vote: expected 'majority' or 'unanimous', found 'most'",
    ),
    "a judge that is none": ({"judges": "jj"}, "judges: there is no profile 'jj' (did you mean j?)"),
    "a wrong role": ({"user": "a"}, "user: profile 'a' has the role 'agent', not 'simulated_user'"),
    "a pair of strangers": (
        {"pairs": [["a", "x"]]},
        "pairs[0]: 'x' is none of the agents",
    ),
    "one agent twice": ({"agents": ["a", "a"]}, "agents: 'a' stands twice"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_config_when_it_has_a_fault_then_key_path_value_and_way_out_are_told(fault: str) -> None:
    changes, message = FAULTS[fault]
    with pytest.raises(BadFile) as caught:
        check_config(config(**changes), "audit.yaml")
    assert str(caught.value) == f"audit.yaml: {message}"


def test_config_when_it_has_several_faults_then_all_are_told_at_once() -> None:
    with pytest.raises(BadFile) as caught:
        check_config(config(trials="2", user="nobody", swap_rul="x"), "audit.yaml")
    told = str(caught.value)
    assert [part in told for part in ("trials:", "user: there is no profile", "swap_rul: unknown")] == [
        True
    ] * 3


def test_config_when_pairs_are_named_then_those_are_judged() -> None:
    def pairs(wanted: Any) -> list[tuple[str, str]]:
        return check_config(config(pairs=wanted), "f").agent_pairs()

    assert pairs("all") == [("a", "b"), ("a", "c"), ("b", "c")]
    assert pairs("adjacent") == [("a", "b"), ("b", "c")]
    assert pairs([["c", "a"]]) == [("c", "a")]


def test_config_when_judges_are_a_name_a_panel_or_a_list_then_each_is_a_gate() -> None:
    def gates(judges: Any) -> list[str]:
        return [panel.gate for panel in check_config(config(judges=judges), "f").judges]

    assert gates("j") == ["j"]
    assert gates(["j", "k"]) == ["j", "k"]
    assert gates({"members": ["j", "k"], "vote": "majority"}) == ["panel(j+k)"]
    assert gates([{"members": ["j", "k"], "name": "board"}, "j"]) == ["board", "j"]


def test_config_when_a_key_is_written_in_it_then_no_form_of_it_shows_the_key() -> None:
    found = check_config(
        config(profiles=[*config()["profiles"], profile("x", "agent", api_key="sk-planted")]), "f"
    )
    assert isinstance(found, Config)
    assert "sk-planted" not in repr(found)
    assert "sk-planted" not in found.model_dump_json()
