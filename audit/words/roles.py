"""Which profiles a config as it is written gives which role, whatever else is wrong with it."""

from collections.abc import Iterator
from typing import Any


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
