"""Which profiles a config as it is written gives which role, whatever else is wrong with it."""

import difflib
from collections.abc import Iterator
from typing import Any

KNOWN_ROLES = ("simulated_user", "agent", "llm_judge")


def is_slip(role: object) -> bool:
    """Is it none of ours, but near one?"""
    return isinstance(role, str) and role not in KNOWN_ROLES and meant_role(role) is not None


def meant_role(role: str) -> str | None:
    """The role of ours that this one is a slip of, such as `llm_jugde` or `LLM-judge`."""
    plain = role.strip().lower().replace("-", "_").replace(" ", "_")
    near = difflib.get_close_matches(plain, KNOWN_ROLES, n=1, cutoff=0.75)
    return near[0] if near else "llm_judge" if plain == "judge" else None


def named_roles(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(key path, profile name, role) of every profile that the file refers to."""
    agents = found.get("agents")
    for index, name in enumerate(agents if isinstance(agents, list) else []):
        if isinstance(name, str):
            yield f"agents[{index}]", name, "agent"
    if isinstance(found.get("user"), str):
        yield "user", found["user"], "simulated_user"
    judges = found.get("judges")
    for panel in judges if isinstance(judges, list) else [judges]:
        members = (
            [panel] if isinstance(panel, str) else panel.get("members") if isinstance(panel, dict) else []
        )
        for name in members if isinstance(members, list) else []:
            if isinstance(name, str):
                yield "judges", name, "llm_judge"
