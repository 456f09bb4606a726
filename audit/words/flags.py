"""The flags of a pair: why it should not be trained on as it stands, and what is only told of it."""

from typing import Literal

Prefer = Literal["judge", "reward"]
Cut = Literal["first-divergence", "last-turn", "whole"]
Form = Literal["conversational", "standard", "kto"]

# What the judge did: no reason to drop a pair whose order is the verifier's.
JUDGES = ("misselected", "inconsistent", "judge_tie", "unreadable", "incomplete")
# In the view `flagged_pairs`, and dropped by default.
STORED = (
    *JUDGES,
    "reward_tie",
    "both_failed",
    "unverified",
    "llm_labelled",
    "simulator_fault",
    "verifier_fault",
    "gateway_fault",
    "human_disagrees",
)
# Found in the text while exporting, and dropped: of such pairs no row can be made.
ROWLESS = ("no_transcript", "identical", "no_shared_prompt", "too_long", "no_preference")
TOLD = ("near_tie", "injection_suspected")
FLAGS = (*STORED, *ROWLESS, *TOLD)


def no_row(prefer: Prefer) -> frozenset[str]:
    """The flags that cannot be kept: no side could be called chosen, or there is no text to train on."""
    if prefer == "reward":
        return frozenset({*ROWLESS, "reward_tie", "unverified"})
    return frozenset({*ROWLESS, "reward_tie", "inconsistent", "judge_tie", "unreadable", "incomplete"})


def dropping(prefer: Prefer, keep: tuple[str, ...], drop: tuple[str, ...]) -> frozenset[str]:
    """The flags that drop a pair, by default or because they are named in `drop` and not in `keep`."""
    default = {*STORED, *ROWLESS} - (set(JUDGES) if prefer == "reward" else set())
    return frozenset((default - set(keep)) | set(drop))
