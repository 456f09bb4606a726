"""What a model is reached with: an address, a model's name, its parameters and its limits."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One profile of the config. The key itself is not in it, only the name of the variable that holds it.

    `timeout_s` is the total deadline of one HTTP request, its answer read to the end. `attempts` is how many
    HTTP requests one call may take where they fail. `rpm` and `tpm` are requests and tokens a minute,
    `concurrency` is how many requests may be under way at once. `extra` holds more of the request's body.
    """

    name: str
    base_url: str
    api_key_env: str | None
    model: str
    role: str
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    timeout_s: float = 120
    attempts: int = 4
    rpm: float | None = None
    tpm: float | None = None
    concurrency: int | None = None
    extra: dict[str, Any] = field(default_factory=dict, hash=False)
