"""What was never filled in, and whose a key, a host or a variable is; real names are neither."""

import pytest

from audit.words.vendors import (
    is_example_host,
    is_placeholder,
    vendor_of_host,
    vendor_of_key,
    vendor_of_variable,
)

NOT_FILLED_IN = [
    "YOUR_API_KEY", "your-key-here", "sk-your-key", "<your key>", "[key]", "{{ key }}", "sk-xxxx", "xxx",
    "sk-ant-xxxxxxxx", "changeme", "CHANGE_ME", "replace-me", "${JUDGE_MODEL}", "$KEY", "%KEY%", "TODO",
    "api_key", "sk-...", "sk-1234…", "********", "model", "MODEL_NAME", "my-api-key",
    "insert_key_here",
]  # fmt: skip
FILLED_IN = [
    "sk-proj-aB3xxxQ9", "gpt-5", "Qwen/Qwen2.5-7B-Instruct", "EMPTY", "none", "llama3.1:8b", "tokenmaster-2",
    "kd8-aaaa-4711", "glm-4.5-air", "modelscope/qwen3", "o3", "yourself-7b", "deepseek-chat", "my-org/tuned",
    "output-here-7",
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_FILLED_IN)
def test_placeholder_when_nobody_filled_it_in_then_it_is_seen(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize("text", FILLED_IN)
def test_placeholder_when_it_is_a_name_or_a_key_then_it_is_none(text: str) -> None:
    assert not is_placeholder(text)


@pytest.mark.parametrize(
    ("host", "vendor"),
    [
        ("api.openai.com", "OpenAI"),
        ("my.openai.azure.com", "Azure"),
        ("API.Anthropic.com.", "Anthropic"),
        ("notopenai.com", None),
        ("api.openai.com.evil.io", None),
        ("127.0.0.1", None),
    ],
)
def test_host_when_it_only_looks_like_a_vendors_then_it_is_a_strangers(host: str, vendor: str | None) -> None:
    assert vendor_of_host(host) == vendor


def test_key_and_variable_when_they_begin_as_a_vendors_then_they_are_its_own() -> None:
    keys = ("sk-ant-api03-x", "sk-or-v1-x", "sk-proj-x", "sk-abc", "gsk_x")
    assert [vendor_of_key(key) for key in keys] == ["Anthropic", "OpenRouter", "OpenAI", None, "Groq"]
    names = ("OPENAI_API_KEY", "AZURE_OPENAI_KEY", "JUDGE_KEY", "ANTHROPIC_AUTH_TOKEN")
    assert [vendor_of_variable(name) for name in names] == ["OpenAI", "Azure", None, "Anthropic"]


def test_host_when_it_is_kept_for_examples_then_it_is_a_placeholder() -> None:
    hosts = (
        "gateway.example",
        "api.example.com",
        "HOST",
        "your-gateway",
        "gateway.acme.io",
        "127.0.0.1",
        "vllm",
    )
    assert [is_example_host(host) for host in hosts] == [True] * 4 + [False] * 3
