"""What the config says of prices and of what a run may use."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# No type is guessed, no unknown key is taken.
STRICT = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class _Strict(BaseModel):
    model_config = STRICT


class Price(_Strict):
    """What a model takes, in USD a million tokens."""

    prompt: Annotated[float, Field(ge=0)]
    completion: Annotated[float, Field(ge=0)]

    def usd(self, prompt_tokens: float, completion_tokens: float) -> float:
        """What so many tokens take."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


class Allowance(_Strict):
    """So many tokens, and so much in USD."""

    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_cost: Annotated[float, Field(gt=0)] | None = None


class Budget(Allowance):
    """What a run may use, and each role of it; reached, it stops resumable with exit code 4."""

    roles: dict[Literal["simulated_user", "agent", "llm_judge"], Allowance] = {}
    allow_unknown_cost: bool = False
