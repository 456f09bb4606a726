"""What changed between two runs: config, prompts, models asked and served, tasks; and what that explains."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection

from audit.doors import matched
from audit.pipeline.standing import config_of
from audit.words.records import Run

# Keys of a config that decide nothing of what a run finds.
_NO_FINDING = ("name", "budget", "prices", "gate", "max_error_rate")
# What a run's config_json holds beside its config.
_DERIVED = ("config", "planned", "role_isolation", "judged_since", "in_hand", "gate_failed")
_NO_ANSWER = ("api_key_env", "timeout_s", "attempts", "rpm", "tpm", "concurrency")
_SCALE = ("swap_rule", "gap_source", "gap_scope", "bucket_set")
_OF_ROLE = {"llm_judge": "judge", "agent": "agents", "simulated_user": "simulator"}
_OF_CALL = {
    "judge": "judge",
    "satisfaction": "judge",
    "agent": "agents",
    "user_simulator": "simulator",
    "verifier": "verifier",
}
_OF_KEY = {
    "judges": "judge",
    "agents": "agents",
    "pairs": "agents",
    "user": "simulator",
    "stop_tokens": "simulator",
    "max_turns": "simulator",
    "tasks": None,
    "files": "recorded answers",
    "success_at": "scoring",
    "buckets": "scoring",
    "near": "scoring",
    "outside_rewards": "scoring",
    "swap_rule": "scoring",
    "gap_source": "scoring",
    "gap_scope": "scoring",
}


def changes(
    connection: Connection, before: Run, after: Run, gates: tuple[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """The part `changed` of `compare --json`, and what moved: `judge`, `judge prompt`, `tasks` and so on."""
    keys = _config_changes(before, after)
    asked = [matched.asked_with(connection, run.run_id) for run in (before, after)]
    prompts = _differing(*({(row[0], None): row[4] for row in rows} for rows in _by_prompt(asked)))
    models = _models(*asked)
    tasks = _tasks(*(matched.tasks(connection, run.run_id) for run in (before, after)))
    found = {
        "config": [{name: value for name, value in key.items() if name != "moves"} for key in keys],
        "prompts": prompts,
        "models": models,
        "tasks": tasks,
        "gate": None if gates[0] == gates[1] else {"before": gates[0], "after": gates[1]},
    }
    moved = {key["moves"] for key in keys if key["moves"]}
    moved |= {_OF_CALL[model["role"]] for model in models if model["role"] in _OF_CALL}
    for prompt in prompts:
        whose = _OF_CALL.get(prompt["role"])
        moved.add("judge prompt" if prompt["role"] == "judge" else f"{whose} prompt")
    if gates[0] != gates[1]:
        moved.add("judge")
        # Answers of two judges are in two files, as a matter of course.
        moved.discard("recorded answers")
    if tasks["only_before"] or tasks["only_after"]:
        moved.add("tasks")
    return found, sorted(moved)


def explanation(moved: list[str], found: dict[str, Any]) -> str:
    """Whether what moved can explain the change of misselected: only where one thing alone moved can that be
    said. Then which other rates moved.
    """
    # Where misselected moved, its shares and the accuracy do as a matter of course.
    told = ("consistent", "error_calls") if found["is_beyond_chance"] else None
    others = [
        rate["rate"].replace(".", ": ").replace("_", " ")
        for rate in found["rates"]
        if rate["rate"] != "misselected_of_decided"
        and (told is None or rate["rate"] in told)
        and rate["low"] is not None
        and not rate["low"] <= 0 <= rate["high"]
    ]
    also = f" By intervals of their own {', '.join(others)} moved beyond chance." if others else ""
    return _explained(moved, found) + also


def _explained(moved: list[str], found: dict[str, Any]) -> str:
    if not found["matched"]["pairs"]:
        return "No pair is in both runs: nothing can be laid to anything."
    beyond = found["is_beyond_chance"]
    change = "The change" if beyond else "No change of misselected beyond chance was seen; what there is"
    anew = (
        ""
        if found["matched"]["same_rewards"] == found["matched"]["pairs"]
        else " The sessions are not the same (rewards differ), so part of it may be the luck of new ones."
    )
    if not moved:
        lead = "Nothing that is recorded moved. "
        return (
            lead
            + (
                "Yet the change is beyond chance: something unrecorded did, such as the model behind a name."
                if beyond
                else "What differs in misselected is no more than chance."
            )
            + (anew if beyond else "")
        )
    if moved == ["tasks"]:
        return (
            "Only the tasks moved. On the pairs both runs have nothing did: what differs there is "
            f"{'beyond chance all the same' if beyond else 'chance'}, and the rest of the change between all "
            f"pairs of both runs can be laid to the tasks alone.{anew if beyond else ''}"
        )
    if len(moved) == 1:
        return f"Only the {moved[0]} moved: {change[0].lower()}{change[1:]} can be laid to that alone.{anew}"
    return (
        f"{', '.join(moved)} moved together: {change[0].lower()}{change[1:]} can be laid to none alone.{anew}"
    )


def _config_changes(before: Run, after: Run) -> list[dict[str, Any]]:
    flat = [_flat(_whole(run), run) for run in (before, after)]
    roles = {
        f"profiles.{profile['name']}": _OF_ROLE.get(profile["role"])
        for run in (before, after)
        for profile in config_of(run).get("profiles", ())
    }
    found = []
    for key in sorted(flat[0].keys() | flat[1].keys()):
        one, other = flat[0].get(key), flat[1].get(key)
        if one != other:
            found.append({"key": key, "before": one, "after": other, "moves": _moves(key, roles)})
    return found


def _whole(run: Run) -> dict[str, Any]:
    """What the run was begun with: its import's settings, its config, or both where an import was judged."""
    begun = {key: value for key, value in json.loads(run.config_json).items() if key not in _DERIVED}
    return begun | config_of(run)


def _moves(key: str, roles: Mapping[str, str | None]) -> str | None:
    parts = key.split(".")
    if parts[0] in _NO_FINDING or parts[-1] in _NO_ANSWER:
        return None
    if parts[0] == "profiles":
        return next((moves for name, moves in roles.items() if key.startswith(f"{name}.")), "settings")
    return "scoring" if parts[0] in _SCALE else _OF_KEY.get(parts[0], "settings")


def _flat(config: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Key path -> value; a profile by its name and not its place. With the scale that the run has now."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if key == "profiles":
            for profile in value:
                found |= {f"profiles.{profile['name']}.{name}": item for name, item in profile.items()}
        elif isinstance(value, dict):
            found |= {f"{key}.{name}": item for name, item in value.items()}
        else:
            found[key] = value
    return found | {name: getattr(run, name) for name in _SCALE}


def _by_prompt(asked: Iterable[list[tuple[Any, ...]]]) -> Iterable[list[tuple[Any, ...]]]:
    """Rows with all prompts of a role as one value."""
    for rows in asked:
        roles = sorted({row[0] for row in rows})
        yield [
            (role, None, None, None, sorted({row[4] for row in rows if row[0] == role and row[4]}))
            for role in roles
        ]


def _differing(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Prompts of roles that both runs asked, where they are not the same."""
    return [
        {"role": key[0], "before": before[key], "after": after[key]}
        for key in sorted(before.keys() & after.keys())
        if before[key] != after[key]
    ]


def _models(before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Models by role and profile, asked and served, where they differ; of roles that both runs asked."""
    both = {row[0] for row in before} & {row[0] for row in after}
    told = []
    for rows in (before, after):
        by: dict[tuple[str, str], dict[str, list[str]]] = {}
        for role, profile, model, served, _ in rows:
            if role not in both:
                continue
            one = by.setdefault((role, profile or ""), {"asked": [], "served": []})
            for name, value in (("asked", model), ("served", served)):
                if value is not None and value not in one[name]:
                    one[name].append(value)
        told.append(by)
    return [
        {"role": key[0], "profile": key[1], "before": told[0].get(key), "after": told[1].get(key)}
        for key in sorted(told[0].keys() | told[1].keys())
        if told[0].get(key) != told[1].get(key)
    ]


def _tasks(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, Any]:
    """How many tasks both runs have, and how many one alone; `edited`: of one id, but no longer the same."""
    gone, new = before.keys() - after.keys(), after.keys() - before.keys()
    edited = {before[task] for task in gone} & {after[task] for task in new}
    return {
        "both": len(before.keys() & after.keys()),
        "only_before": len(gone),
        "only_after": len(new),
        "edited": len(edited),
    }
