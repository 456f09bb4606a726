"""Writes data/judged_pairs.jsonl: a synthetic set of judged pairs for the README and the tests.

Six agents on 36 made-up tasks, each pair of agents judged once a task in both orders. The rewards are
graded; the judge sees the difference of the two rewards through noise and leans to what stands first. So it
is right where agents differ much and often wrong where they are close, as real judges are.
"""

import json
import random
from itertools import combinations
from pathlib import Path

AGENTS = {"ash": 0.84, "birch": 0.82, "cedar": 0.78, "elm": 0.66, "fir": 0.50, "hazel": 0.42}
THINGS = (
    "table",
    "ferry",
    "room",
    "bicycle",
    "class",
    "coat",
    "parcel",
    "ticket",
    "lamp",
    "tour",
    "desk",
    "cake",
)
TASKS = {
    "booking": [f"book the {thing}" for thing in THINGS],
    "cancel": [f"cancel the {thing}" for thing in THINGS],
    "change": [f"change the {thing}" for thing in THINGS],
}
PRAISE = ("did every step that was asked", "shows the confirmation", "left the order as it should be")
BLAME = ("stopped before the last step", "promises more than it shows", "changed the wrong line")


def main(path: Path) -> None:
    """Write the file; the same bytes every time."""
    rng = random.Random(20261130)
    rewards = {
        (agent, task): round(min(1, max(0, rng.gauss(skill, 0.06))), 2)
        for agent, skill in AGENTS.items()
        for tasks in TASKS.values()
        for task in tasks
    }
    rows = []
    for category, tasks in TASKS.items():
        for task in tasks:
            for a, b in combinations(AGENTS, 2):
                rows.append(_row(rng, len(rows) + 1, category, task, a, b, rewards))
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


def _row(
    rng: random.Random,
    number: int,
    category: str,
    task: str,
    a: str,
    b: str,
    rewards: dict[tuple[str, str], float],
) -> dict[str, object]:
    seen = rewards[a, task] - rewards[b, task] + rng.gauss(0, 0.2)
    return {
        "pair_id": f"ex-{number:03d}",
        "task_id": task.replace(" ", "-"),
        "category": category,
        "judge": "synthetic-judge",
        "agent_a": a,
        "agent_b": b,
        "reward_a": rewards[a, task],
        "reward_b": rewards[b, task],
        "grammar": "mtbench_3way",
        "raw_ab": _reply(rng, seen + 0.08 + rng.gauss(0, 0.05)),
        "raw_ba": _reply(rng, -seen + 0.08 + rng.gauss(0, 0.05)),
    }


def _reply(rng: random.Random, lead: float) -> str:
    """What a judge writes that sees the first ahead by `lead`."""
    if rng.random() < 0.01:
        return "Both transcripts concern the same request, and"
    if abs(lead) < 0.02:
        return f"Assistant A {rng.choice(PRAISE)}, and so does Assistant B. Final verdict: [[C]]"
    better, worse = ("A", "B") if lead > 0 else ("B", "A")
    return (
        f"Assistant {better} {rng.choice(PRAISE)}, while Assistant {worse} {rng.choice(BLAME)}. "
        f"Final verdict: [[{better}]]"
    )


if __name__ == "__main__":
    main(Path(__file__).parents[1] / "data" / "judged_pairs.jsonl")
