"""`doctor --live` over real HTTP: one tiny call a profile, and what each way to fail is told as."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from examined import Doctor, profiles, write_config
from server import ChatServer, Say, refusing

KEY = "zq7-planted-4f9b2c81d6"
READY = Say(text='{"ready": true}')
Gateway = Callable[..., ChatServer]


def answering(**by_model: Any) -> Callable[[dict[str, Any]], Say]:
    """The answer by the model that is asked; READY for the others."""

    def answer(body: dict[str, Any]) -> Say:
        found = by_model.get(body["model"], READY)
        return found(body) if callable(found) else found

    return answer


def without_schema(body: dict[str, Any]) -> Say:
    form = body.get("response_format", {}).get("type")
    return refusing("response_format json_schema is not supported") if form == "json_schema" else READY


def test_live_when_all_is_well_then_each_profile_in_use_is_asked_once_and_little(
    doctor: Doctor, gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", f" {KEY}\n")
    server = gateway(answering())
    listed = profiles(server.base_url, judge={"api_key_env": "JUDGE_KEY", "max_tokens": 4000})
    spare = {"name": "spare", "role": "agent", "base_url": server.base_url, "model": "dill"}
    write_config(tmp_path, [*listed, spare])
    examined = doctor("--live")

    assert (examined.code, server.requests, server.looked) == (0, 4, [])
    assert sorted(body["model"] for body in server.bodies) == ["basil", "mint", "sage", "thyme"]
    for body in server.bodies:
        assert body["max_tokens"] <= 256
        assert body["response_format"]["type"] == "json_schema"
        assert len(json.dumps(body["messages"])) < 200
    sent = {
        body["model"]: head.get("authorization")
        for body, head in zip(server.bodies, server.headers, strict=True)
    }
    assert sent["basil"] == f"Bearer {KEY}"
    assert KEY not in f"{sent['mint']}{sent['sage']}{sent['thyme']}"
    assert [(row["profile"], row["status"], row["takes_json_schema"]) for row in examined.found["live"]] == [
        (name, "ok", True) for name in ("customer", "v1", "v2", "judge")
    ]
    assert all(row["latency_ms"] > 0 for row in examined.found["live"])
    assert [level for level, code, _ in examined.bad()] == ["warning"]  # the padded key
    assert KEY not in json.dumps(examined.found)
    assert doctor().found["live"] is None
    assert server.requests == 4


def test_live_when_a_model_takes_no_schema_or_does_not_keep_to_it_then_that_matters_of_a_judge(
    doctor: Doctor, gateway: Gateway, tmp_path: Path
) -> None:
    server = gateway(answering(basil=without_schema, mint=without_schema, thyme=Say(text="ready!")))
    write_config(tmp_path, profiles(server.base_url))
    examined = doctor("--live")
    told = {item["where"].split()[0]: item for item in examined.of("live_json_schema")}
    assert {name: item["level"] for name, item in told.items()} == {
        "customer": "ok",
        "v1": "ok",
        "v2": "ok",
        "judge": "warning",
    }
    assert "refuses json_schema" in told["judge"]["what"]
    assert "does not keep to it" in told["v2"]["what"]
    assert {row["profile"]: row["takes_json_schema"] for row in examined.found["live"]} == {
        "customer": False,
        "v1": True,
        "v2": True,
        "judge": False,
    }


def test_live_when_the_model_is_not_there_then_the_nearest_names_of_the_gateway_are_told(
    doctor: Doctor, gateway: Gateway, tmp_path: Path
) -> None:
    missing = refusing("The model `basil` does not exist", 404, code="model_not_found")
    server = gateway(answering(basil=missing, sage=missing, **{"gpt-4o-mni": missing}))
    server.models = ["gpt-4o-mini", "gpt-4o", "Basil-2", "sage", "\x1b[2J"]
    write_config(
        tmp_path,
        profiles(f"{server.base_url}?api-version=3", customer={"model": "gpt-4o-mni"}),
    )
    examined = doctor("--live")
    told = {item["where"].split()[0]: item for item in examined.of("live_no_model")}
    assert told["customer"]["do"] == "write one of those that it lists: gpt-4o-mini, gpt-4o"
    assert told["judge"]["do"] == "write one of those that it lists: Basil-2"
    # It is on the list: then the name is not what is wrong.
    assert [item["where"] for item in examined.of("live") if item["level"] == "error"] == ["v1 (profiles[1])"]
    assert server.looked == ["/v1/models?api-version=3"] * 3


@pytest.mark.parametrize("models", [None, []])
def test_live_when_the_gateway_lists_no_models_then_what_it_said_is_told(
    models: list[str] | None, doctor: Doctor, gateway: Gateway, tmp_path: Path
) -> None:
    server = gateway(answering(basil=refusing("no such model", 404)))
    server.models = models
    write_config(tmp_path, profiles(server.base_url))
    (item,) = [item for item in doctor("--live").of("live") if item["level"] == "error"]
    assert "HTTP 404" in item["what"]
    assert "no such model" in item["what"]


FAILURES = {
    "key refused": (refusing(f"Incorrect API key: {KEY}", 401), "live_key_refused", "error"),
    "limited": (refusing("slow down", 429), "live_limited", "warning"),
    "broken": (refusing(f"boom {KEY}", 500), "live", "error"),
    "gone": (Say(drop=True), "live", "error"),
    "no JSON": (Say(body=b"<html>hello"), "live", "error"),
    "thought too long": (Say(text=None, finish="length"), "live", "ok"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_live_when_a_call_fails_then_it_is_told_once_asked_once_and_the_key_is_not_shown(
    case: str, doctor: Doctor, gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say, code, level = FAILURES[case]
    monkeypatch.setenv("JUDGE_KEY", KEY)
    server = gateway(answering(basil=say))
    write_config(tmp_path, profiles(server.base_url, judge={"api_key_env": "JUDGE_KEY"}))
    examined = doctor("--live")
    (item,) = [item for item in examined.of(code) if item["where"] == "judge (profiles[3])"]
    assert item["level"] == level
    assert server.requests == 4
    assert KEY not in json.dumps(examined.found)


def test_live_when_a_profile_has_an_error_already_then_it_is_not_asked(
    doctor: Doctor, gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call with a missing key, a placeholder, or the key of somebody else."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = gateway(answering())
    write_config(
        tmp_path, profiles(server.base_url, judge={"api_key_env": "JUDGE_KEY"}, v1={"model": "YOUR_MODEL"})
    )
    examined = doctor("--live")
    assert sorted(body["model"] for body in server.bodies) == ["mint", "thyme"]
    assert {row["profile"]: row["status"] for row in examined.found["live"]} == {
        "customer": "ok",
        "v2": "ok",
        "v1": "not asked",
        "judge": "not asked",
    }
    assert not any(KEY in str(headers) for headers in server.headers)


def test_live_when_the_gateways_clock_says_something_else_then_that_is_a_warning(
    doctor: Doctor, gateway: Gateway, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    late = Say(text=READY.text, headers={"Date": format_datetime(now - timedelta(hours=2), usegmt=True)})
    same = Say(text=READY.text, headers={"Date": format_datetime(now, usegmt=True)})
    server = gateway(answering(basil=late, mint=same, sage=Say(text=READY.text, headers={"Date": "soon"})))
    write_config(tmp_path, profiles(server.base_url))
    (item,) = [item for item in doctor("--live").of("clock") if item["level"] == "warning"]
    assert (item["where"], "120 minutes apart" in item["what"]) == ("judge (profiles[3])", True)


def test_live_when_the_models_are_synthetic_then_there_is_nothing_to_ask(doctor: Doctor) -> None:
    examined = doctor("--live")
    assert examined.code == 0
    assert {row["status"] for row in examined.found["live"]} == {"offline"}
