"""`doctor` on the settings of Claude Code, Codex, CC Switch: faults told, nothing changed, no key shown."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from examined import Doctor, Examined, profiles, write_config

KEY = "sk-planted-4f9b2c81d6aa"
CODEX = """
model = "m"
model_provider = "acme"
[model_providers.acme]
base_url = "{url}"
env_key = "ACME_KEY"
wire_api = "responses"
"""


@pytest.fixture
def beside(doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Examined]:
    """Writes the files that are given and looks at them, beside a config on this machine."""
    monkeypatch.setenv("ACME_KEY", "kd8-aaaa-4711-bbbb")
    write_config(tmp_path, profiles("http://127.0.0.1:9/v1"))

    def look(claude: Any = None, codex: str | None = None, listed: Any = None) -> Examined:
        args: list[str] = []
        for option, name, text in (
            ("--claude-settings", "settings.json", None if claude is None else json.dumps(claude)),
            ("--codex-config", "config.toml", codex),
            ("--profiles", "list.yaml", None if listed is None else yaml.safe_dump(listed)),
        ):
            if text is not None:
                (tmp_path / name).write_text(text, encoding="utf-8")
                args += [option, name]
        before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.glob("*.*")}
        examined = doctor(*args)
        assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
        assert KEY not in json.dumps(examined.found)
        return examined

    return look


HERE = "http://127.0.0.1:9"
CLAUDE = {
    "right": ({"ANTHROPIC_BASE_URL": HERE, "ANTHROPIC_MODEL": "m"}, []),
    "with /v1": (
        {"ANTHROPIC_BASE_URL": f"{HERE}/v1"},
        [("error", "neighbour_url", "env.ANTHROPIC_BASE_URL", f"write {HERE}")],
    ),
    "with the endpoint": (
        {"ANTHROPIC_BASE_URL": f"{HERE}/v1/messages"},
        [("error", "neighbour_url", "env.ANTHROPIC_BASE_URL", f"write {HERE}")],
    ),
    "with OpenAI's endpoint": (
        {"ANTHROPIC_BASE_URL": f"{HERE}/v1/chat/completions"},
        [("error", "neighbour_url", "env.ANTHROPIC_BASE_URL", f"write {HERE}")],
    ),
    "from a letter": (
        {"ANTHROPIC_BASE_URL": f"{HERE}?utm_source=mail"},
        [("error", "url_refused", "env.ANTHROPIC_BASE_URL", f"write {HERE}")],
    ),
    "Codex's variables": (
        {"OPENAI_BASE_URL": HERE, "OPENAI_API_KEY": ""},
        [
            ("error", "neighbour_wrong_family", "env.OPENAI_BASE_URL", "use ANTHROPIC_... instead"),
            ("error", "neighbour_wrong_family", "env.OPENAI_API_KEY", "use ANTHROPIC_... instead"),
        ],
    ),
    "a key": (
        {"ANTHROPIC_BASE_URL": HERE, "ANTHROPIC_AUTH_TOKEN": KEY},
        [("warning", "neighbour_key_in_file", "env.ANTHROPIC_AUTH_TOKEN", "keep the file out of")],
    ),
    "a placeholder": (
        {"ANTHROPIC_AUTH_TOKEN": "<your key>"},
        [("error", "key_placeholder", "env.ANTHROPIC_AUTH_TOKEN", "put the key in")],
    ),
    "two keys": (
        {"ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_API_KEY": KEY},
        [
            ("warning", "neighbour_key_in_file", "env.ANTHROPIC_AUTH_TOKEN", ""),
            ("warning", "neighbour_key_in_file", "env.ANTHROPIC_API_KEY", ""),
            ("warning", "neighbour_two_keys", "env", "keep the one that the gateway wants"),
        ],
    ),
    "a model nobody wrote": (
        {"ANTHROPIC_MODEL": "YOUR_MODEL"},
        [("error", "model_placeholder", "env.ANTHROPIC_MODEL", "write the model's name")],
    ),
    "judge and user on one model": (
        {"SIM_USER_MODEL": "m", "JUDGE_MODEL": "m"},
        [("warning", "one_model", "env", "give the judge another model")],
    ),
}


@pytest.mark.parametrize("case", CLAUDE)
def test_claude_code_when_its_settings_are_looked_at_then_each_fault_has_its_place(
    case: str, beside: Callable[..., Examined]
) -> None:
    env, wanted = CLAUDE[case]
    examined = beside(claude={"env": env, "permissions": {"allow": []}})
    assert sorted(examined.bad()) == sorted(
        (level, code, f"settings.json: {at}") for level, code, at, _ in wanted
    )
    for _, code, at, words in wanted:
        assert any(words in item["do"] for item in examined.of(code) if item["where"].endswith(at))


CODEXES = {
    "right": (CODEX.format(url=f"{HERE}/v1"), []),
    "without /v1": (
        CODEX.format(url=HERE),
        [("warning", "neighbour_url", "model_providers.acme.base_url", f"most gateways want {HERE}/v1")],
    ),
    "with the endpoint": (
        CODEX.format(url=f"{HERE}/v1/responses"),
        [("error", "neighbour_url", "model_providers.acme.base_url", f"write {HERE}/v1")],
    ),
    "with a pasted endpoint": (
        CODEX.format(url=f"{HERE}/v1/chat/completions"),
        [("error", "neighbour_url", "model_providers.acme.base_url", f"write {HERE}/v1")],
    ),
    "Claude Code's address": (
        CODEX.format(url=f"{HERE}/anthropic"),
        [("error", "neighbour_url", "model_providers.acme.base_url", "OpenAI-compatible")],
    ),
    "from a letter": (
        CODEX.format(url=f"{HERE}/v1?gclid=3"),
        [("error", "url_refused", "model_providers.acme.base_url", f"write {HERE}/v1")],
    ),
    "chat": (
        CODEX.format(url=f"{HERE}/v1").replace("responses", "chat"),
        [("error", "neighbour_wire_api", "model_providers.acme.wire_api", "responses")],
    ),
    "no wire": (
        CODEX.format(url=f"{HERE}/v1").replace("responses", "grpc"),
        [("error", "neighbour_wire_api", "model_providers.acme.wire_api", "responses")],
    ),
    "a key as the variable": (
        CODEX.format(url=f"{HERE}/v1").replace("ACME_KEY", KEY),
        [("error", "neighbour_key_in_file", "model_providers.acme.env_key", "write the variable's name")],
    ),
    "Claude Code's variable": (
        CODEX.format(url=f"{HERE}/v1").replace("ACME_KEY", "ANTHROPIC_AUTH_TOKEN"),
        [("error", "neighbour_wrong_family", "model_providers.acme.env_key", "name the variable")],
    ),
    "an unset variable": (
        CODEX.format(url=f"{HERE}/v1").replace("ACME_KEY", "OTHER_KEY"),
        [("warning", "neighbour_key_unset", "model_providers.acme.env_key", "export OTHER_KEY=...")],
    ),
    "a token": (
        CODEX.format(url=f"{HERE}/v1") + f'experimental_bearer_token = "{KEY}"\n',
        [("warning", "neighbour_key_in_file", "model_providers.acme.experimental_bearer_token", "")],
    ),
    "a header": (
        CODEX.format(url=f"{HERE}/v1") + f'http_headers = {{ Authorization = "Bearer {KEY}" }}\n',
        [("warning", "neighbour_key_in_file", "model_providers.acme.http_headers.Authorization", "")],
    ),
    "Claude Code's settings": (
        CODEX.format(url=f"{HERE}/v1") + '[shell_environment_policy.set]\nANTHROPIC_BASE_URL = "x"\n',
        [("error", "neighbour_wrong_family", "shell_environment_policy.set.ANTHROPIC_BASE_URL", "env_key")],
    ),
    "no such provider": (
        CODEX.format(url=f"{HERE}/v1").replace('= "acme"', '= "acne"'),
        [("error", "neighbour_no_provider", "model_provider", "name one of")],
    ),
    "profiles of old": (
        'profile = "b"\n[profiles.a]\nmodel_provider = "x"\n',
        [
            ("warning", "neighbour_profiles", "profiles", "move each to NAME.config.toml"),
            ("error", "neighbour_no_profile", "profile", "there are: a"),
            ("error", "neighbour_no_provider", "profiles.a.model_provider", "name one of"),
        ],
    ),
    "a key as a name": (
        CODEX.format(url=f"{HERE}/v1") + f'[model_providers.{KEY}]\nbase_url = "{HERE}/v1/responses"\n',
        [("error", "neighbour_url", "model_providers.[key].base_url", f"write {HERE}/v1")],
    ),
    "a list for a table": (
        "model_providers = [1]\n",
        [("error", "neighbour_shape", "model_providers", "see its manual")],
    ),
}


@pytest.mark.parametrize("case", CODEXES)
def test_codex_when_its_config_is_looked_at_then_each_fault_has_its_place(
    case: str, beside: Callable[..., Examined]
) -> None:
    text, wanted = CODEXES[case]
    examined = beside(codex=text)
    assert sorted(examined.bad()) == sorted(
        (level, code, f"config.toml: {at}") for level, code, at, _ in wanted
    )
    for _, code, at, words in wanted:
        assert any(words in item["do"] for item in examined.of(code) if item["where"].endswith(at))


ONE: dict[str, Any] = {"name": "a", "base_url": f"{HERE}/v1", "model": "m", "api_key_env": "ACME_KEY"}
LISTS = {
    "right": ([ONE], []),
    "under a key": ({"profiles": [ONE | {"base_url": f"{HERE}/v1?utm_id=1"}]},
                    [("error", "url_refused", "profiles[0].base_url")]),
    "a key": ([ONE | {"api_key": KEY}], [("warning", "neighbour_key_in_file", "[0].api_key")]),
    "a key as the variable": (
        [ONE | {"api_key_env": KEY}],
        [("error", "neighbour_key_in_file", "[0].api_key_env")],
    ),
    "an unset variable": (
        [ONE | {"api_key_env": "B_KEY"}],
        [("warning", "neighbour_key_unset", "[0].api_key_env")],
    ),
    "one name twice": ([ONE, ONE], [("warning", "neighbour_name_twice", "[1]")]),
    "judge and user on one model": (
        [ONE | {"role": "llm_judge"}, ONE | {"name": "b", "role": "simulated_user"}],
        [("warning", "one_model", "")],
    ),
    "Codex's address for Claude Code": (
        [ONE | {"tool": "claude-code"}],
        [("error", "neighbour_url", "[0].base_url")],
    ),
    "Claude Code's address for Codex": (
        [ONE | {"app": "codex", "base_url": HERE}],
        [("warning", "neighbour_url", "[0].base_url")],
    ),
    "Codex's old wire": (
        [ONE | {"app": "codex", "wire_api": "chat"}],
        [("error", "neighbour_wire_api", "[0].wire_api")],
    ),
    "OpenAI's variable for Claude Code": (
        [ONE | {"tool": "claude-code", "base_url": HERE, "api_key_env": "OPENAI_API_KEY"}],
        [
            ("error", "neighbour_wrong_family", "[0].api_key_env"),
            ("warning", "neighbour_key_unset", "[0].api_key_env"),
        ],
    ),
    "no profile": ([ONE, "b"], [("error", "neighbour_shape", "[1]")]),
    "a model nobody wrote": ([ONE | {"model": "<model>"}], [("error", "model_placeholder", "[0].model")]),
}  # fmt: skip


@pytest.mark.parametrize("case", LISTS)
def test_profiles_when_a_list_is_looked_at_then_each_fault_has_its_place(
    case: str, beside: Callable[..., Examined]
) -> None:
    listed, wanted = LISTS[case]
    assert sorted(beside(listed=listed).bad()) == sorted(
        (level, code, f"list.yaml: {at}" if at else "list.yaml") for level, code, at in wanted
    )


@pytest.mark.parametrize(
    ("claude", "codex", "config", "apart"),
    [
        ("https://g.acme.io/api", "https://g.acme.io/api/v1", "https://g.acme.io/api", False),
        ("https://g.acme.io/anthropic", "https://g.acme.io/v1", "https://G.acme.io:443/v1/", False),
        ("http://localhost:9", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1", False),
        ("https://g.acme.io/api", "https://g.acme.io/v1", "https://g.acme.io/api", True),
        ("https://other.acme.io", "https://g.acme.io/v1", "https://g.acme.io/v1", True),
        ("http://127.0.0.1:8", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1", True),
    ],
)
def test_addresses_when_the_tools_are_compared_then_only_another_gateway_counts(
    claude: str,
    codex: str,
    config: str,
    apart: bool,
    beside: Callable[..., Examined],
    tmp_path: Path,
) -> None:
    write_config(tmp_path, [profile | {"api_key_env": "ACME_KEY"} for profile in profiles(config)])
    examined = beside(claude={"env": {"ANTHROPIC_BASE_URL": claude}}, codex=CODEX.format(url=codex))
    assert bool(examined.of("neighbour_bases_differ")) is apart
    assert bool(examined.of("neighbour_bases")) is not apart
    for item in examined.of("neighbour_bases_differ"):
        assert claude in item["what"]
        assert codex in item["what"]


BOMB = "a: &a [x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 8)}]\n" for i in range(8)
)
HOSTILE = {
    "not there": None,
    "empty": b"",
    "no text": b"\xff\xfe\x00",
    "broken": b'{"env": {"ANTHROPIC_AUTH_TOKEN": "' + KEY.encode() + b'" oops',
    "deep": b"[" * 100_000,
    "deep toml": b"a = " + b"[" * 50_000,
    "huge": b" " * (1 << 21),
    "a long number": b'{"a": ' + b"9" * 10_000 + b"}",
    "a long toml number": b"a = " + b"9" * 10_000,
    "a list": b'["' + KEY.encode() + b'"]',
    "a word": b"hello",
    "half a character": b'{"env": "\\ud800"}',
    "aliases": BOMB.encode(),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("option", ["--claude-settings", "--codex-config", "--profiles"])
def test_file_when_it_is_broken_or_hostile_then_it_is_one_finding(
    option: str, case: str, doctor: Doctor, tmp_path: Path
) -> None:
    write_config(tmp_path, profiles())
    content = HOSTILE[case]
    if content is not None:
        (tmp_path / "file.json").write_bytes(content)
    examined = doctor(option, "file.json")
    bad = examined.bad()
    if option == "--codex-config" and case in (
        "empty",
        "a list",
    ):  # a config that says nothing; a table's name
        assert bad == []
    elif (option, case) == ("--profiles", "a list"):
        assert bad == [("error", "neighbour_shape", "file.json: [0]")]
    else:
        assert [(level, code) for level, code, _ in bad] == [("error", "neighbour_file")]
    assert KEY not in json.dumps(examined.found)


def test_file_when_it_is_a_pipe_or_a_folder_then_nobody_waits_for_it(doctor: Doctor, tmp_path: Path) -> None:
    write_config(tmp_path, profiles())
    os.mkfifo(tmp_path / "pipe")
    examined = doctor("--claude-settings", "pipe", "--codex-config", tmp_path, "--profiles", "pipe")
    assert [item["what"] for item in examined.of("neighbour_file")] == ["is no ordinary file"] * 3


def test_key_when_planted_in_every_file_and_variable_then_no_output_shows_it(
    here: Callable[..., Any], beside: Callable[..., Examined], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "JUDGE_KEY", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, KEY)
    claude = {
        "env": {"ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_BASE_URL": f"{HERE}/{KEY}", "ANTHROPIC_MODEL": KEY}
    }
    codex = (
        CODEX.format(url=f"{HERE}/v1?key={KEY}").replace("ACME_KEY", KEY)
        + f'query_params = {{ key = "{KEY}" }}\n'
    )
    listed = [ONE | {"api_key": KEY, "base_url": f"https://me:{KEY}@h.acme.io/v1"}, KEY, {KEY: KEY}]
    config = profiles(
        f"{HERE}/v1?api_key={KEY}",
        customer={"api_key": KEY, "base_url": f"{HERE}/{KEY}/v1"},
        judge={"api_key_env": "JUDGE_KEY"},
        v2={"extra": {"headers": {"Authorization": f"Bearer {KEY}"}}},
    )
    write_config(tmp_path, config)
    beside(claude, codex, listed)
    args = ("--claude-settings", "settings.json", "--codex-config", "config.toml", "--profiles", "list.yaml")
    for more in ([], ["-v"], ["--json"], ["--live"]):
        did = here("doctor", *args, *more)
        assert did.code == 1
        assert KEY not in did.stdout + did.stderr
        assert len(did.stdout) > 1000
