"""`doctor` on real files: what each role is, where that was written, and everything that is wrong with it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from examined import URL, Doctor, Examined, profiles, write_config
from sqlalchemy import text

from audit.doors.db import HEAD, open_database, writing
from audit.pipeline.doctor_machine import clock, disk

CHECKOUT = Path(__file__).parents[2]
KEY = "zq7-planted-4f9b2c81d6"


def test_role_when_its_values_come_from_several_files_then_each_is_told_with_its_place(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = profiles(
        customer={"api_key_env": "USER_KEY"},
        v1={"api_key_env": "AGENT_KEY", "rpm": 600},
        judge={"api_key_env": "JUDGE_KEY", "tpm": 9000, "base_url": "http://127.0.0.1:9/v1/?api-version=3"},
    )
    (tmp_path / "models.json").write_text(json.dumps({"profiles": listed}), encoding="utf-8")
    write_config(tmp_path, "models.json")
    monkeypatch.setenv("USER_KEY", KEY)
    (tmp_path / ".env").write_text(f"AGENT_KEY={KEY}-2\n", encoding="utf-8")
    found = doctor().found

    customer, v1, v2, judge = found["roles"]
    assert customer["base_url"] == {"value": URL, "from": "models.json: profiles[0].base_url"}
    assert customer["model"] == {"value": "mint", "from": "models.json: profiles[0].model"}
    assert customer["key"] == {
        "variable": "USER_KEY",
        "variable_from": "models.json: profiles[0].api_key_env",
        "is_set": True,
        "from": "environment",
    }
    assert (v1["key"]["is_set"], v1["key"]["from"]) == (True, ".env")
    assert (judge["key"]["is_set"], judge["key"]["from"]) == (False, None)
    assert v1["rpm"] == {"value": 600.0, "from": "models.json: profiles[1].rpm"}
    assert v2["rpm"] == {"value": None, "from": "default"}
    assert judge["tpm"] == {"value": 9000.0, "from": "models.json: profiles[3].tpm"}
    assert judge["base_url"]["value"] == "http://127.0.0.1:9/v1/"
    assert KEY not in json.dumps(found)


def test_roles_when_shown_on_a_terminal_then_the_same_stands_there_within_80_columns(
    here: Callable[..., Any], doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config(tmp_path, profiles(judge={"api_key_env": "JUDGE_KEY", "rpm": 60}, v1={"model": "\x1b[2Jx"}))
    (tmp_path / ".env").write_text(f"JUDGE_KEY={KEY}\n", encoding="utf-8")
    (tmp_path / ".env").chmod(0o600)
    did = here("doctor")
    lines = did.stdout.splitlines()
    start = lines.index("llm_judge judge, from audit.yaml: profiles[3]")
    assert [" ".join(line.split()) for line in lines[start + 1 : start + 5]] == [
        f"base_url {URL}",
        "model basil",
        "api_key_env JUDGE_KEY: set, from .env",
        "rpm, tpm 60, no limit (default)",
    ]
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in did.stdout
    assert lines[-1].startswith("0 errors, 0 warnings, ")


def test_counts_when_one_entry_stands_for_several_places_then_both_numbers_are_told(
    here: Callable[..., Any], doctor: Doctor, tmp_path: Path
) -> None:
    unset = {"api_key_env": "UNSET_KEY"}
    write_config(tmp_path, profiles(customer=unset, v1=unset, v2=unset, judge={"model": "YOUR_JUDGE_MODEL"}))
    lines = here("doctor").stdout.splitlines()
    found = doctor().found
    for level, word in (("error", "errors"), ("warning", "warnings"), ("ok", "ok")):
        entries = sum(line.split(" ")[0] == level for line in lines[:-1])
        places = sum(item["level"] == level for item in found["findings"])
        assert found["counts"][level] == places
        noun = level if entries == 1 else word
        told = f"{entries} {noun}" + ("" if entries == places else f" (in {places} places)")
        assert told in lines[-1].split(", "), (told, lines[-1])
    assert lines[-1].startswith("2 errors (in 4 places), ")


def test_doctor_when_there_is_no_config_then_it_looks_at_the_embedded_one_and_says_so(doctor: Doctor) -> None:
    examined = doctor()
    assert examined.code == 0
    assert examined.found["config"]["is_embedded"] is True
    assert "there is no audit.yaml here" in examined.one("config")["what"]
    assert {row["base_url"]["value"] for row in examined.found["roles"]} == {"offline://synthetic"}
    assert "48 tasks" in examined.one("tasks")["what"]
    assert examined.bad() == []


def test_config_when_it_has_many_faults_then_each_is_a_finding_and_the_sound_profiles_are_still_shown(
    doctor: Doctor, tmp_path: Path
) -> None:
    listed = profiles(
        v2={"temprature": 1},
        judge={"base_url": "https://h.example.org/v1?utm_source=mail&gclid=1&api-version=2"},
    )
    write_config(tmp_path, listed, trials=0, swap_rul="x", tasks=["nowhere"], judges=["judge", "jude"])
    examined = doctor()
    told = [item["what"].split(":")[0] for item in examined.of("config")]
    assert sorted(told) == ["judges", "profiles[2].temprature", "swap_rul", "tasks[0]", "trials"]
    assert [row["profile"] for row in examined.found["roles"]] == ["customer", "v1", "judge"]
    assert examined.found["config"]["is_loaded"] is False
    refused = examined.one("url_refused")
    assert refused["where"] == "judge (profiles[3])"
    assert "tracking parameters (utm_source, gclid)" in refused["what"]
    assert refused["do"] == "write https://h.example.org/v1?api-version=..."


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a: [", "not YAML"),
        ("a: !<x> *y", "not YAML"),
        ("[1, 2]", "expected keys such as"),
        ("", "expected keys such as"),
        ("profiles: nowhere.yaml", "no such file"),
        ("&a [*a]", "holds itself"),
        (None, "no such file"),
    ],
)
def test_config_when_it_cannot_be_read_then_that_is_a_finding_and_the_rest_is_looked_at(
    content: str | None, problem: str, doctor: Doctor, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "audit.yaml").write_text(content, encoding="utf-8")
    examined = doctor("-c", "audit.yaml")
    assert problem in examined.one("config")["what"]
    assert (examined.one("database")["level"], examined.found["roles"]) == ("ok", [])


def test_config_when_it_names_judges_alone_then_it_is_told_what_it_is_good_for(
    doctor: Doctor, tmp_path: Path
) -> None:
    config = {"profiles": profiles()[3:], "judges": "judge"}
    (tmp_path / "audit.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert doctor().bad() == [("warning", "config_judges_only", "audit.yaml")]


def test_tasks_when_one_has_a_fault_then_it_is_told_before_any_spend(doctor: Doctor, tmp_path: Path) -> None:
    shutil.copytree(CHECKOUT / "data" / "init" / "tasks", tmp_path / "tasks")
    file = tmp_path / "tasks" / "tasks.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("from loans", "from lones"), encoding="utf-8")
    write_config(tmp_path, profiles(), tasks=["tasks"])
    item = doctor().one("tasks")
    assert (item["level"], "no such table: lones" in item["what"]) == ("error", True)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"buckets": "gage"}, "buckets: 'gage' is no bucket set (did you mean gauge?)"),
        ({"buckets": "0,.3,.1"}, "buckets: "),
        ({"near": 0.1}, "near: it needs buckets"),
    ],
)
def test_buckets_when_they_are_none_then_doctor_and_a_dry_run_say_so(
    doctor: Doctor, here: Callable[..., Any], tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    file = write_config(tmp_path, profiles(), **changes)
    item = doctor().one("buckets")
    assert (item["level"], item["what"].startswith(what)) == ("error", True)
    dry = here("run", "-c", file, "--dry-run")
    assert (dry.code, what in dry.stderr) == (1, True)


@pytest.mark.parametrize(
    ("mode", "line", "bad"),
    [
        (0o644, "GATEWAY_KEY=zq7", [("warning", "env_file", ".env")]),
        (0o600, "GATEWAY_KEY=zq7", []),
        (0o644, "MODEL=small", []),
    ],
)
def test_env_file_when_others_may_read_its_keys_then_that_is_a_warning(
    doctor: Doctor, tmp_path: Path, mode: int, line: str, bad: list[tuple[str, ...]]
) -> None:
    (tmp_path / ".env").write_text(f"{line}\n", encoding="utf-8")
    (tmp_path / ".env").chmod(mode)
    write_config(tmp_path, profiles())
    assert [found for found in doctor().bad() if found[1] == "env_file"] == bad


def test_sessions_when_they_are_recorded_then_their_files_are_looked_for(
    doctor: Doctor, tmp_path: Path
) -> None:
    (tmp_path / "old.json").write_text("[]", encoding="utf-8")
    config = {"profiles": profiles()[2:], "judges": "judge"}
    for files, level in ((["old.json"], "ok"), (["old.json", "new.json"], "error")):
        sessions = {"format": "tau", "files": files}
        (tmp_path / "audit.yaml").write_text(
            yaml.safe_dump(config | {"sessions": sessions}), encoding="utf-8"
        )
        examined = doctor()
        assert examined.one("sessions")["level"] == level
    assert examined.one("sessions")["what"] == "no such file: new.json"
    assert examined.one("profile_unused")["where"] == "v2"


# Address -> (code, level, words of it). The first six are those of case GW-05.
ADDRESSES = {
    "http://127.0.0.1:9/v1": (None, None, ""),
    "http://127.0.0.1:9/v1/": ("url_slash", "ok", "http://127.0.0.1:9/v1 is meant"),
    "http://127.0.0.1:9/v1?utm_source=mail": ("url_refused", "error", "write http://127.0.0.1:9/v1"),
    "http://127.0.0.1:9/openai?api-version=2025-04-01": ("url_query", "ok", "api-version) is kept, and sent"),
    "http://127.0.0.1:9/v1/chat/completions": ("url_endpoint_pasted", "ok", "http://127.0.0.1:9/v1 is meant"),
    "http://127.0.0.1:9": ("url_without_path", "warning", "most gateways want http://127.0.0.1:9/v1"),
    "http://127.0.0.1:9/v1?gclid=x&api-version=1": ("url_refused", "error", "v1?api-version=..."),
    "127.0.0.1:9/v1": ("url_refused", "error", "https://127.0.0.1:9/v1"),
    f"http://me:{KEY}@127.0.0.1:9/v1": ("url_refused", "error", "holds a password"),
    f"http://127.0.0.1:9/v1?api_key={KEY}": ("key_in_url", "warning", "holds a key (api_key)"),
    "http://127.0.0.1:9/v1/messages": ("url_other_endpoint", "error", "write http://127.0.0.1:9/v1"),
    "http://127.0.0.1:9/v1/responses": ("url_other_endpoint", "error", "write http://127.0.0.1:9/v1"),
    "http://127.0.0.1:9/anthropic": ("url_of_other_api", "warning", "chat completions are what is spoken"),
    "https://gateway.example/v1": ("url_placeholder", "error", "is a placeholder"),
    "https://YOUR-GATEWAY/v1": ("url_placeholder", "error", "is a placeholder"),
    "http://gateway.acme.io/v1": ("url_not_encrypted", "warning", "write https://gateway.acme.io/v1"),
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_address_when_it_was_pasted_then_what_is_meant_is_told_and_what_cannot_be_is_refused(
    url: str, doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "kd8-4711-aaaa")
    write_config(tmp_path, profiles(judge={"base_url": url, "api_key_env": "JUDGE_KEY"}))
    examined = doctor()
    about = [item for item in examined.found["findings"] if item["where"] == "judge (profiles[3])"]
    about = [item for item in about if item["code"] != "isolation"]
    code, level, words = ADDRESSES[url]
    assert [(item["code"], item["level"]) for item in about] == ([(code, level)] if code else [])
    assert all(words in f"{item['what']} {item['do']}" for item in about)
    assert KEY not in json.dumps(examined.found)


def test_cases_of_addresses_when_listed_then_all_of_them_are_above(shared: Path) -> None:
    lines = (shared / "cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    (case,) = [found for found in map(json.loads, lines) if found["id"] == "GW-05"]
    assert set(case["input"]) <= ADDRESSES.keys()


HOME, OPENAI, ACME = "http://127.0.0.1:9/v1", "https://api.openai.com/v1", "https://gateway.acme.io/v1"
# What JUDGE_KEY holds, the address -> (level, code) of what is wrong.
KEYS = {
    "right": ("kd8-aaaa-4711-bbbb", ACME, []),
    "the vendor's own": ("sk-proj-aaaabbbbcccc1234", OPENAI, []),
    "unset": (None, ACME, [("error", "key_unset")]),
    "empty": ("", ACME, [("error", "key_unset")]),
    "blank": ("  ", ACME, [("error", "key_unset")]),
    "YOUR_API_KEY": ("YOUR_API_KEY", ACME, [("error", "key_placeholder")]),
    "<your key>": ("<your key>", ACME, [("error", "key_placeholder")]),
    "sk-xxxx": ("sk-xxxx", ACME, [("error", "key_placeholder")]),
    "sk-your-key-here": ("sk-your-key-here", ACME, [("error", "key_placeholder")]),
    "changeme": ("changeme", ACME, [("error", "key_placeholder")]),
    "a variable nobody put in": ("${REAL_KEY}", ACME, [("error", "key_placeholder")]),
    "a placeholder in quotes": ('"YOUR_API_KEY"', ACME, [("error", "key_placeholder")]),
    "blanks round it": (f" {KEY} ", ACME, [("warning", "key_padded")]),
    "a line end": (f"{KEY}\n", ACME, [("warning", "key_padded")]),
    "quotes": (f'"{KEY}"', ACME, [("error", "key_spoiled")]),
    "curly quotes": (f"“{KEY}”", ACME, [("error", "key_spoiled")]),
    "a line end within": (f"{KEY}\n{KEY}", ACME, [("error", "key_spoiled")]),
    "a header": (f"Bearer {KEY}", ACME, [("error", "key_spoiled")]),
    "an assignment": (f"JUDGE_KEY={KEY}", ACME, [("error", "key_spoiled")]),
    "a zero-width blank": (f"{KEY}\u200b", ACME, [("error", "key_spoiled")]),
    "Anthropic's for OpenAI": (f"sk-ant-{KEY}", OPENAI, [("error", "key_of_other_vendor")]),
    "Anthropic's for a stranger": (f"sk-ant-{KEY}", ACME, [("warning", "key_of_other_vendor")]),
    "OpenAI's for OpenRouter": (
        f"sk-proj-{KEY}",
        "https://openrouter.ai/api/v1",
        [("error", "key_of_other_vendor")],
    ),
    "Anthropic's for a proxy of one's own": (f"sk-ant-{KEY}", HOME, []),
}


@pytest.mark.parametrize("case", KEYS)
def test_key_when_it_cannot_be_meant_then_it_is_told_and_never_shown(
    case: str,
    doctor: Doctor,
    here: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value, url, wanted = KEYS[case]
    write_config(tmp_path, profiles(judge={"base_url": url, "api_key_env": "JUDGE_KEY"}))
    if value is not None:
        monkeypatch.setenv("JUDGE_KEY", value)
    examined = doctor()
    assert examined.bad() == [(level, code, "judge (profiles[3])") for level, code in wanted]
    assert all("JUDGE_KEY" in item["what"] for _, code in wanted for item in examined.of(code))
    assert KEY not in json.dumps(examined.found) + "".join(here("doctor", "-v")[:2])


def test_key_when_its_variable_is_named_for_another_vendor_or_goes_to_two_hosts_then_that_is_a_warning(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"sk-{KEY}")
    openai = {"base_url": OPENAI, "api_key_env": "OPENAI_API_KEY"}
    listed = profiles(v1=openai, judge={"base_url": ACME, "api_key_env": "OPENAI_API_KEY"})
    write_config(tmp_path, listed)
    examined = doctor()
    assert examined.bad() == [
        ("warning", "key_of_other_vendor", "judge (profiles[3])"),
        ("warning", "key_to_several_hosts", "OPENAI_API_KEY"),
    ]
    assert examined.of("left_over") == []  # the config names it: it is meant
    assert "named for a key of OpenAI" in examined.one("key_of_other_vendor")["what"]
    assert "api.openai.com and gateway.acme.io" in examined.one("key_to_several_hosts")["what"]


def test_key_when_another_vendors_is_set_and_its_own_is_not_then_the_profile_is_named(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: Path
) -> None:
    """Case GW-07, before anything is sent."""
    lines = (shared / "cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    (case,) = [found for found in map(json.loads, lines) if found["id"] == "GW-07"]
    for name, value in case["input"]["env"].items():
        monkeypatch.setenv(name, value)
    write_config(tmp_path, profiles(judge={"api_key_env": case["input"]["unset"][0]}))
    examined = doctor()
    assert examined.bad() == [("error", "key_unset", "judge (profiles[3])")]
    assert "JUDGE_KEY is not set" in examined.one("key_unset")["what"]
    left = examined.one("left_over")
    assert (left["where"], left["level"]) == ("OPENAI_API_KEY", "ok")
    assert "reward-audit does not read it" in left["what"]
    assert "sk-company-123" not in json.dumps(examined.found)


def test_key_when_none_is_named_or_it_stands_in_the_file_then_that_is_told(
    doctor: Doctor, tmp_path: Path
) -> None:
    listed = profiles(
        v1={"base_url": ACME},
        v2={"extra": {"extra_headers": {"X-Api-Key": KEY}}},
        judge={"api_key": KEY},
    )
    write_config(tmp_path, listed)
    examined = doctor()
    assert examined.bad() == [
        ("error", "key_unnamed", "v1 (profiles[1])"),
        ("warning", "key_in_file", "v2 (profiles[2])"),
        ("warning", "key_in_file", "judge (profiles[3])"),
    ]
    assert KEY not in json.dumps(examined.found)


@pytest.mark.parametrize("model", ["YOUR_JUDGE_MODEL", "<model>", "${JUDGE_MODEL}", "model-name", "TODO"])
def test_model_when_nobody_filled_it_in_then_it_is_an_error(
    model: str, doctor: Doctor, tmp_path: Path
) -> None:
    write_config(tmp_path, profiles(judge={"model": model}))
    item = doctor().one("model_placeholder")
    assert (item["level"], item["what"]) == ("error", f'model is a placeholder: "{model}"')


def test_environment_when_variables_are_left_over_then_each_is_named_with_its_effect(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config(tmp_path, profiles())
    left = {
        "OPENAI_BASE_URL": "",
        "ANTHROPIC_BASE_URL": f"https://old.example/{KEY}",
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_AUTH_TOKEN": KEY,
        "https_proxy": "http://proxy:3128",
        "NO_PROXY": "localhost",
    }
    for name, value in left.items():
        monkeypatch.setenv(name, value)
    examined = doctor()
    told = {item["where"]: item for item in examined.found["findings"] if item["where"] in left}
    assert told.keys() == left.keys()
    assert {name: item["level"] for name, item in told.items()} == {
        "OPENAI_BASE_URL": "warning",
        "ANTHROPIC_BASE_URL": "warning",
        "OPENAI_API_KEY": "ok",
        "ANTHROPIC_AUTH_TOKEN": "ok",
        "https_proxy": "ok",  # all profiles are on this machine
        "NO_PROXY": "ok",
    }
    assert told["OPENAI_BASE_URL"]["what"].startswith("is set, but empty: other programs take the empty text")
    assert "Claude Code send every call and the key there" in told["ANTHROPIC_BASE_URL"]["what"]
    assert all("reward-audit does not read it" in item["what"] for item in told.values())
    assert KEY not in json.dumps(examined.found)

    monkeypatch.setenv("JUDGE_KEY", "kd8-aaaa-4711")
    write_config(tmp_path, profiles(judge={"base_url": ACME, "api_key_env": "JUDGE_KEY"}))
    assert doctor().one("proxy")["level"] == "warning"
    monkeypatch.setenv("SIM_USER_MODEL", "mint")
    monkeypatch.setenv("JUDGE_MODEL", "mint")
    assert "both mapped to mint" in doctor().one("one_model")["what"]


JUDGES = {
    "another house": ({"model": "claude-3", "base_url": "http://127.0.0.2:9/v1"}, "full", [], "ok"),
    "one gateway": ({"model": "claude-3"}, "good", ["provider"], "ok"),
    "one temperature": (
        {"model": "claude-3", "temperature": 0.5, "base_url": "http://127.0.0.2:9/v1"},
        "good",
        ["temperature"],
        "warning",
    ),
    "one family": ({"model": "openai/gpt-4o"}, "fair", ["family", "provider"], "warning"),
    "one model": (
        {"model": "GPT-5", "base_url": "http://127.0.0.2:9/v1", "temperature": 0.1},
        "poor",
        ["model", "family"],
        "warning",
    ),
    "a twin": (
        {"model": "gpt-5", "temperature": 0.5},
        "none",
        ["model", "family", "temperature", "provider"],
        "warning",
    ),
}


@pytest.mark.parametrize("case", JUDGES)
def test_isolation_when_judge_and_user_share_something_then_it_is_graded(
    case: str, doctor: Doctor, tmp_path: Path
) -> None:
    judge, grade, shared_parts, level = JUDGES[case]
    write_config(tmp_path, profiles(customer={"model": "gpt-5", "temperature": 0.5}, judge=judge))
    examined = doctor()
    assert examined.found["isolation"] == [
        {"judge": "judge", "user": "customer", "shared": shared_parts, "grade": grade}
    ]
    assert examined.one("isolation")["level"] == level


def test_isolation_when_a_judge_judges_its_own_kin_then_the_agents_are_named(
    doctor: Doctor, tmp_path: Path
) -> None:
    kin = {"v1": {"model": "gpt-5"}, "v2": {"model": "gpt-4o"}}
    write_config(tmp_path, profiles(judge={"model": "gpt-5"}, **kin))
    examined = doctor()
    assert examined.one("judges_itself")["what"].startswith("judges v1, ")
    assert examined.one("judges_its_family")["what"].startswith("judges v2, ")


# A template's line -> what a careless hand put in its place, the code of the rule that it breaks.
DOCTORED = {
    "judge_pair.en": (
        "- Never assume a step that is not shown. A promise to do something is not the thing done.",
        "- Where a step is not shown, assume that it was done.",
        "prompt_assumes_completion",
    ),
    "satisfaction.zh": ("- 礼貌、篇幅、自信、格式、承诺，都不加分。", "", "prompt_credits_politeness"),
    "simulated_user.en": (
        "- Do not rate the assistant.",
        "- At the end rate the assistant from 1 to 5.",
        "prompt_asks_for_a_score",
    ),
}


def test_prompts_when_a_template_was_changed_for_the_worse_then_that_is_an_error(tmp_path: Path) -> None:
    for folder in ("audit", "migrations", "sql", "data"):
        shutil.copytree(CHECKOUT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (line, worse, _) in DOCTORED.items():
        file = tmp_path / "audit" / "prompts" / f"{name}.jinja"
        before = file.read_text(encoding="utf-8")
        assert line in before
        file.write_text(before.replace(line, worse), encoding="utf-8")

    def broken(language: str) -> set[tuple[str, str]]:
        write_config(tmp_path, profiles(), language=language)
        call = [sys.executable, "-m", "audit", "doctor", "--json"]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 1, done.stderr
        found = json.loads(done.stdout)["findings"]
        return {(item["code"], item["where"]) for item in found if item["level"] == "error"}

    def wanted(language: str) -> set[tuple[str, str]]:
        return {
            (code, f"audit/prompts/{name}.jinja")
            for name, (_, _, code) in DOCTORED.items()
            if name.endswith(language)
        }

    assert broken("en") == wanted("en")
    assert broken("zh") == wanted("zh")


def test_database_when_it_stands_anyhow_then_that_is_told_and_nothing_is_changed(
    doctor: Doctor, database_url: str, tmp_path: Path
) -> None:
    write_config(tmp_path, profiles())
    if database_url.startswith("sqlite"):
        assert "is not there yet" in doctor(db=database_url).one("database")["what"]
        assert not Path(database_url.removeprefix("sqlite:///")).exists()
    else:
        assert "is empty" in doctor(db=database_url).one("database")["what"]
    engine = open_database(database_url, create=True)

    def told(*statements: str) -> Examined:
        with writing(engine) as connection:
            for statement in statements:
                connection.execute(text(statement))
        return doctor(db=database_url)

    assert told().one("database")["what"].endswith(f"is at revision {HEAD}, the newest")
    assert told("update view_digest set digest = 'x'").one("database_older")["level"] == "warning"
    newer = told("update alembic_version set version_num = '9999'")
    assert newer.one("database_newer")["do"] == "upgrade reward-audit"
    engine.dispose()


def test_database_when_it_cannot_be_used_then_that_is_an_error(doctor: Doctor, tmp_path: Path) -> None:
    write_config(tmp_path, profiles())
    (tmp_path / "letter.db").write_text("Dear Sir or Madam,\n" * 400, encoding="utf-8")
    assert "not a database" in doctor(db=f"sqlite:///{tmp_path}/letter.db").one("database")["what"]
    missing = doctor(db=f"sqlite:///{tmp_path}/none/a.db").one("database_unwritable")
    assert f"there is no folder {tmp_path / 'none'}" in missing["what"]
    assert doctor(db="mysql://me:secret@host/x").one("database")["level"] == "error"


def test_clock_when_it_is_behind_the_newest_row_then_that_is_an_error(
    doctor: Doctor, here: Callable[..., Any], tmp_path: Path
) -> None:
    write_config(tmp_path, profiles())
    pairs = "pair_id,reward_a,reward_b,pref_ab,pref_ba\np1,1,0,A,A\n"
    (tmp_path / "judged.csv").write_text(pairs, encoding="utf-8")
    assert here("import", "csv", "judged.csv").code == 0
    assert doctor().one("clock")["level"] == "ok"
    engine = open_database(f"sqlite:///{tmp_path / 'audit.db'}", create=False)
    with writing(engine) as connection:
        connection.execute(text("update audit_runs set created_at = '2999-01-01T00:00:00.000Z'"))
    engine.dispose()
    item = doctor().one("clock")
    assert (item["level"], "before the newest row of 2999-01-01" in item["what"]) == ("error", True)


def test_database_when_named_in_several_ways_then_its_origin_is_told(
    here: Callable[..., Any], cli: Callable[..., Any], tmp_path: Path
) -> None:
    def origin(did: Any) -> str:
        return next(i["where"] for i in json.loads(did.stdout)["findings"] if i["code"] == "database")

    asked = ("doctor", "--json", "-c", write_config(tmp_path, profiles()))
    assert origin(here(*asked)) == "database (from --db)"
    assert origin(cli(*asked)) == "database (from REWARD_AUDIT_DB, environment)"
    (tmp_path / "keys").write_text("REWARD_AUDIT_DB=sqlite:///b.db\n", encoding="utf-8")
    told = origin(cli(*asked, "--env-file", tmp_path / "keys", db=""))
    assert told == f"database (from REWARD_AUDIT_DB, {tmp_path / 'keys'})"
    assert origin(cli(*asked, db="")) == "database (the default)"


@pytest.mark.parametrize(
    ("free", "level", "words"),
    [
        (99 * 2**20, "error", "only 99 MB are free"),
        (100 * 2**20, "warning", "only 100 MB are free"),
        (2**30, "ok", "1.0 GB are free"),
    ],
)
def test_disk_when_little_is_free_then_it_is_told_before_a_night_fills_it(
    free: int, level: str, words: str
) -> None:
    found = disk("sqlite:///a.db", free)
    assert (found.level, words in found.what) == (level, True)


@pytest.mark.parametrize(
    ("now", "newest", "level"),
    [
        ("2026-12-01T00:00:00Z", None, "ok"),
        ("1970-01-01T00:00:00Z", None, "error"),
        ("2026-12-01T00:00:00Z", "2026-12-01T00:04:59.000Z", "ok"),  # another machine's clock, as clocks go
        ("2026-12-01T00:00:00Z", "2026-12-01T00:05:01.000Z", "error"),
        ("2026-12-01T00:00:00Z", "soon", "ok"),
    ],
)
def test_clock_when_it_cannot_be_right_then_that_is_an_error(
    now: str, newest: str | None, level: str
) -> None:
    assert clock(datetime.fromisoformat(now), newest).level == level
