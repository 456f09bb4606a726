"""Whose a key, a host or a variable is, and what was never filled in."""

import re

# The longest beginnings first: `sk-` alone is given out by everybody.
_KEYS = {
    "sk-ant-": "Anthropic",
    "sk-or-": "OpenRouter",
    "sk-proj-": "OpenAI",
    "sk-svcacct-": "OpenAI",
    "sk-admin-": "OpenAI",
    "gsk_": "Groq",
    "hf_": "Hugging Face",
    "AIza": "Google",
    "xai-": "xAI",
    "pplx-": "Perplexity",
    "nvapi-": "NVIDIA",
    "r8_": "Replicate",
    "csk-": "Cerebras",
    "ghp_": "GitHub",
    "github_pat_": "GitHub",
}
_HOSTS = {
    "openai.azure.com": "Azure",
    "azure.com": "Azure",
    "openai.com": "OpenAI",
    "anthropic.com": "Anthropic",
    "openrouter.ai": "OpenRouter",
    "groq.com": "Groq",
    "huggingface.co": "Hugging Face",
    "googleapis.com": "Google",
    "x.ai": "xAI",
    "perplexity.ai": "Perplexity",
    "nvidia.com": "NVIDIA",
    "replicate.com": "Replicate",
    "cerebras.ai": "Cerebras",
    "github.ai": "GitHub",
    "githubcopilot.com": "GitHub",
    "deepseek.com": "DeepSeek",
    "mistral.ai": "Mistral",
    "moonshot.cn": "Moonshot",
    "moonshot.ai": "Moonshot",
    "aliyuncs.com": "Alibaba",
    "together.xyz": "Together",
    "together.ai": "Together",
    "taotoken.net": "TaoToken",
}
_VARIABLES = {
    "AZURE_": "Azure",
    "OPENAI_": "OpenAI",
    "ANTHROPIC_": "Anthropic",
    "CLAUDE_": "Anthropic",
    "OPENROUTER_": "OpenRouter",
    "GROQ_": "Groq",
    "HF_": "Hugging Face",
    "HUGGINGFACE_": "Hugging Face",
    "GEMINI_": "Google",
    "GOOGLE_": "Google",
    "XAI_": "xAI",
    "PERPLEXITY_": "Perplexity",
    "NVIDIA_": "NVIDIA",
    "REPLICATE_": "Replicate",
    "CEREBRAS_": "Cerebras",
    "GITHUB_": "GitHub",
    "DEEPSEEK_": "DeepSeek",
    "MISTRAL_": "Mistral",
    "MOONSHOT_": "Moonshot",
    "DASHSCOPE_": "Alibaba",
    "TOGETHER_": "Together",
    "TAOTOKEN_": "TaoToken",
}
_PLACEHOLDER = re.compile(
    r"[<\[{(].*[>\]})]"  # <your key>, [key], {{KEY}}
    r"|\$\{?\w+\}?|%\w+%"  # a variable that nobody put in
    r"|.*(?<![a-z])your(?![a-z]).*"
    r"|(sk-)?(change|replace|insert|put|fill)[-_ ]?(\w*[-_ ])?(me|this|here|in)\b.*"
    r"|.*(placeholder|x{6,}|\*{3,}|\.{3}|…).*"
    r"|([a-z0-9]+[-_])*x{3,}"  # sk-xxxx
    r"|(todo|tbd|fixme|(my[-_ ]?)?(api[-_ ]?)?key|secret|token|model([-_ ]?(name|id))?)",
    re.IGNORECASE | re.DOTALL,
)


def vendor_of_key(key: str) -> str | None:
    """Who gives out keys that begin so; NULL where many do."""
    return next((vendor for start, vendor in _KEYS.items() if key.startswith(start)), None)


def vendor_of_host(host: str) -> str | None:
    """Whose the host is; NULL for a stranger's."""
    name = host.lower().rstrip(".")
    return next((vendor for end, vendor in _HOSTS.items() if name == end or name.endswith(f".{end}")), None)


def vendor_of_variable(name: str) -> str | None:
    """For whose key the variable is named: OPENAI_API_KEY for OpenAI's."""
    return next((vendor for start, vendor in _VARIABLES.items() if name.upper().startswith(start)), None)


def is_placeholder(text: str) -> bool:
    """Whether it stands where something was to be filled in: `YOUR_API_KEY`, `<model>`, `${JUDGE_MODEL}`."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


def is_example_host(host: str) -> bool:
    """Whether the host is one of those kept free for examples (RFC 2606), or a word to be replaced."""
    labels = host.lower().rstrip(".").split(".")
    kept = labels[-1] in ("example", "invalid", "test") or (
        labels[-2:-1] == ["example"] and labels[-1] in ("com", "net", "org")
    )
    return kept or host.upper() == "HOST" or any(is_placeholder(label) for label in labels)
