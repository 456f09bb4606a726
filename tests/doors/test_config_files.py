"""`audit.yaml` as a file: YAML and JSON, profiles of their own file or of other programs, keys, faults."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from audit.doors.config import keys_of, load_config
from audit.words.errors import AuditError, BadFile


def profile(name: str, role: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "role": role, "base_url": "http://127.0.0.1:1/v1", "model": f"model-{name}", **more}


PROFILES = [
    profile("u", "simulated_user"),
    profile("a", "agent"),
    profile("b", "agent"),
    profile("j", "llm_judge"),
]
REST: dict[str, Any] = {"agents": ["a", "b"], "user": "u", "judges": "j", "tasks": ["tasks/shop"]}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Writes `audit.yaml` with the given keys."""
    (tmp_path / "tasks" / "shop").mkdir(parents=True)

    def write(**keys: Any) -> Path:
        path = tmp_path / "audit.yaml"
        path.write_text(yaml.safe_dump({"profiles": PROFILES} | REST | keys), encoding="utf-8")
        return path

    return write


FORMS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "YAML": ("models.yaml", yaml.safe_dump),
    "JSON": ("models.json", json.dumps),
    "JSON with a key": ("models.json", lambda listed: json.dumps({"profiles": listed})),
    "YAML with a key and a byte order mark": (
        "models.yml",
        lambda listed: "\ufeff" + yaml.safe_dump({"profiles": listed}),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_config_when_its_profiles_stand_in_their_own_file_then_it_is_the_same(
    form: str, written: Callable[..., Path], tmp_path: Path
) -> None:
    name, as_text = FORMS[form]
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / name).write_text(as_text(PROFILES), encoding="utf-8")
    apart, notes = load_config(written(profiles=f"models/{name}"))
    whole, _ = load_config(written())
    assert (apart, notes) == (whole, [])
    assert apart.tasks == [str(tmp_path / "tasks" / "shop")]


def test_config_when_it_is_json_then_it_is_read_as_such(tmp_path: Path) -> None:
    (tmp_path / "tasks" / "shop").mkdir(parents=True)
    path = tmp_path / "audit.json"
    path.write_text(json.dumps({"profiles": PROFILES} | REST), encoding="utf-8")
    assert [item.name for item in load_config(path)[0].profiles] == ["u", "a", "b", "j"]


def test_config_when_profiles_are_of_other_programs_then_they_are_passed_over_unread_with_a_note(
    written: Callable[..., Path],
) -> None:
    others = [
        {"name": "embedder", "role": "embedding", "dimensions": 1024, "api_key": "sk-other-1"},
        {"name": "ranker", "role": "reranker", "model": 2.0},
    ]
    # Between ours, so that a fault of ours must still be told with its own place in the file.
    config, notes = load_config(written(profiles=[others[0], *PROFILES, others[1]]))
    assert [item.name for item in config.profiles] == ["u", "a", "b", "j"]
    assert notes == [
        "profile 'embedder' has the role 'embedding', none of ours: passed over",
        "profile 'ranker' has the role 'reranker', none of ours: passed over",
    ]
    with pytest.raises(BadFile, match=r"profiles\[5\]\.model: expected text: put it in quotes, found 1\.0"):
        load_config(written(profiles=[others[0], *PROFILES, profile("c", "agent", model=1.0)]))
    with pytest.raises(BadFile, match="judges: profile 'ranker' has the role 'reranker', not 'llm_judge'"):
        load_config(written(profiles=[*PROFILES, others[1]], judges="ranker"))


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"satisfied": 0.8}, "satisfied: unknown key (did you mean satisfied_at?)"),
    "unknown key of a panel": (
        {"judges": {"members": ["j"], "votes": "majority"}},
        "judges[0].votes: unknown key (did you mean vote?)",
    ),
    "unknown key of a budget": (
        {"budget": {"max_token": 5}},
        "budget.max_token: unknown key (did you mean max_tokens?)",
    ),
    "a boolean in quotes": (
        {"llm_labels_count": "false"},
        "llm_labels_count: expected a valid boolean, found 'false'",
    ),
    "a number of trials in quotes": ({"trials": "3"}, "trials: expected a valid integer, found '3'"),
    "a pair twice": ({"pairs": [["a", "b"], ["b", "a"]]}, "pairs: a and b stand twice"),
    "no judge": ({"judges": []}, "judges: "),
    "no profiles": ({"profiles": []}, "profiles: "),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_config_when_a_key_is_wrong_then_its_path_is_told(fault: str, written: Callable[..., Path]) -> None:
    changes, message = FAULTS[fault]
    path = written(**changes)
    with pytest.raises(BadFile) as caught:
        load_config(path)
    assert f"{path}: {message}" in str(caught.value) or f"; {message}" in str(caught.value)


def test_config_when_it_has_faults_of_every_kind_then_all_are_told_at_once(
    written: Callable[..., Path],
) -> None:
    profiles = [*PROFILES, profile("x", "agent", temprature=1)]
    with pytest.raises(BadFile) as caught:
        load_config(written(profiles=profiles, trials=0, judges="jay", swap_rul="x", llm_labels_count="no"))
    assert sorted(fault.split(":")[0] for fault in caught.value.problem.split("; ")) == [
        "judges",
        "llm_labels_count",
        "profiles[4].temprature",
        "swap_rul",
        "trials",
    ]


KEY = "sk-planted-8f3b2c"
# Where a key may be written by mistake; the message must help and not show it.
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "in place of its variable": (
        {"profiles": [*PROFILES, profile("x", "agent", api_key_env=KEY)]},
        "profiles[4].api_key_env: expected the name of a variable such as JUDGE_KEY, not the key itself",
    ),
    "profiles as a mapping": ({"profiles": {"x": {"api_key": KEY}}}, "profiles: expected"),
    "a profile in a list": ({"profiles": [*PROFILES, [{"api_key": KEY}]]}, "profiles[4]: expected"),
    "a list of keys": (
        {"profiles": [*PROFILES, profile("x", "agent", api_key=[KEY])]},
        "profiles[4].api_key: expected",
    ),
    "beside another fault": (
        {"profiles": [*PROFILES, profile("x", "agent", api_key=KEY, modle="m")]},
        "profiles[4].modle: unknown key (did you mean model?)",
    ),
    "in the address": (
        {"profiles": [*PROFILES, profile("x", "agent") | {"base_url": f"https://me:{KEY}@host/v1"}]},
        "profile 'x': base_url holds a password: write https://host/v1",
    ),
    "in the query of a link": (
        {"profiles": [*PROFILES, profile("x", "agent") | {"base_url": f"https://h/v1?k={KEY}&utm_source=a"}]},
        "profile 'x': base_url 'https://h/v1' carries tracking parameters (utm_source): write https://h/v1?k=...",
    ),
    "in a query without https": (
        {"profiles": [*PROFILES, profile("x", "agent") | {"base_url": f"h/v1?k={KEY}#{KEY}"}]},
        "profile 'x': base_url 'h/v1' is not an address: write it as https://h/v1",
    ),
    "as the model": (
        {"profiles": [*PROFILES, profile("x", "agent") | {"model": KEY}]},
        "profiles[4].model: expected the name of a model; this looks like a key, which no config holds",
    ),
    "in place of its variable, as a word": (
        {"profiles": [*PROFILES, profile("x", "agent", api_key_env=KEY.replace("-", "_"))]},
        "profiles[4].api_key_env: expected the name of a variable",
    ),
    "as a number": (
        {"profiles": [*PROFILES, profile("x", "agent", temperature=KEY)]},
        "profiles[4].temperature: expected a valid number, found 'sk-'... (17 characters)",
    ),
    "as a profile": ({"profiles": [*PROFILES, KEY]}, "profiles[4]: expected"),
    "grown together with its name": (
        {"profiles": [*PROFILES, profile("x", "agent") | {f"api_key:{KEY}": None}]},
        "'api'... (25 characters): unknown key",
    ),
    "in an address without https": (
        {"profiles": [*PROFILES, profile("x", "agent") | {"base_url": f"me:{KEY}@host/v1"}]},
        "profile 'x': base_url holds a password: write https://host/v1",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_config_when_a_key_stands_in_the_wrong_place_then_the_message_does_not_show_it(
    mistake: str, written: Callable[..., Path]
) -> None:
    changes, message = MISTAKES[mistake]
    with pytest.raises(BadFile) as caught:
        load_config(written(**changes))
    assert message in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (f"!{KEY} x", "could not determine a constructor for the tag '!sk-...'"),
        (f"*{KEY}", "found undefined alias 'sk-p...'"),
    ],
)
def test_config_when_yaml_takes_a_key_for_its_own_then_the_message_cuts_it(
    value: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text(f"profiles:\n  - name: x\n    api_key: {value}\n", encoding="utf-8")
    with pytest.raises(BadFile) as caught:
        load_config(path)
    assert str(caught.value) == f"{path}, line 3: not YAML: {problem}"


def test_config_when_it_is_no_yaml_then_the_line_is_told_and_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text(f"profiles:\n  - name: x\n    api_key: {KEY}: no\n", encoding="utf-8")
    with pytest.raises(BadFile) as caught:
        load_config(path)
    assert "line 3" in str(caught.value)
    # Nor is it in the errors behind it, which -v prints.
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in str(error)
        error = (
            None
            if error.__suppress_context__ and error.__cause__ is None
            else error.__cause__ or error.__context__
        )


def test_keys_when_a_profile_names_a_variable_then_it_gets_that_one_or_its_own_literal_and_never_another(
    written: Callable[..., Path],
) -> None:
    environ = {"OPENAI_API_KEY": "sk-company-123", "A_KEY": " sk-a \n", "EMPTY": ""}
    profiles = [
        PROFILES[0],
        profile("a", "agent", api_key_env="A_KEY"),
        profile("b", "agent", api_key_env="EMPTY", api_key="sk-own-2"),
        profile("j", "llm_judge", api_key="sk-own-1"),
        # Not used by this run, so its key need not be there.
        profile("c", "agent", api_key_env="NOT_SET"),
    ]
    config, notes = load_config(written(profiles=profiles), environ)
    assert keys_of(config) == {"u": None, "a": "sk-a", "b": "sk-own-2", "j": "sk-own-1"}
    assert [note.split(" holds")[0] for note in notes] == ["profile 'b'", "profile 'j'"]
    assert "sk-own" not in " ".join(notes)

    missing, _ = load_config(
        written(profiles=[*PROFILES[:3], profile("j", "llm_judge", api_key_env="JUDGE_KEY")]), environ
    )
    with pytest.raises(AuditError) as caught:
        keys_of(missing)
    assert str(caught.value) == (
        "profile 'j' takes its key from JUDGE_KEY, which is not set: export JUDGE_KEY=..."
    )
