"""The gateways that `init` knows: where each is, and which variables hold its key and its models' names."""

from typing import NamedTuple


class Gateway(NamedTuple):
    """`base_url` is for this program. Claude Code appends `/v1/messages` to its own, Codex `/responses`.

    `key`: the variable of the key, NULL where the gateway wants none. `model`: of the agents' model.
    """

    note: str
    base_url: str
    claude_url: str
    codex_url: str
    key: str | None
    model: str = "AGENT_MODEL"


USER_MODEL, JUDGE_MODEL = "SIM_USER_MODEL", "JUDGE_MODEL"
GATEWAYS = {
    "custom": Gateway(
        "Any gateway that speaks OpenAI's chat completions: write its address in place of this one.",
        "https://gateway.example/v1",
        "https://gateway.example",
        "https://gateway.example/v1",
        "GATEWAY_API_KEY",
    ),
    "taotoken": Gateway(
        "TaoToken: models of several vendors behind one address and one key.",
        "https://taotoken.net/api",
        "https://taotoken.net/api",
        "https://taotoken.net/api/v1",
        "TAOTOKEN_API_KEY",
        "TAOTOKEN_MODEL",
    ),
    "openai": Gateway(
        "OpenAI itself.",
        "https://api.openai.com/v1",
        "https://api.anthropic.com",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
    ),
    "vllm": Gateway(
        "vLLM on this machine, as `vllm serve MODEL` starts it; it wants no key unless it was given one.",
        "http://127.0.0.1:8000/v1",
        "http://127.0.0.1:8000",
        "http://127.0.0.1:8000/v1",
        None,
    ),
    "ollama": Gateway(
        "Ollama on this machine; it wants no key, and `ollama list` names its models.",
        "http://127.0.0.1:11434/v1",
        "http://127.0.0.1:11434",
        "http://127.0.0.1:11434/v1",
        None,
    ),
}
# --with -> the file that is written; none is a name that a tool reads by itself.
EXAMPLES = {
    "claude-code": "claude-code.settings.example.json",
    "codex": "codex.config.example.toml",
    "profiles": "profiles.example.yaml",
}
