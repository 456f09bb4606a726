"""tau-bench results: a list of runs, each with its trajectory, the reward and what the verifier saw.

A run that was stopped by the cap on steps has `reward_info` null and keeps the reward that was recorded; one
that broke holds `info.error`: its recorded reward 0 was never found by anyone, and is unknown. The files name
no agent. Source: tau-bench, arXiv:2406.12045, `tau_bench/types.py` and `run.py` of its repository.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from audit.doors.files import Progress, json_records, stem
from audit.doors.formats.chat import fingerprint, read_chat
from audit.doors.formats.fields import Row
from audit.words.names import TOLERANCE
from audit.words.records import ImportedSession
from audit.words.text import as_json

_DOMAIN = re.compile(r"\A\s*#\s*(\w+)\s+agent\s+policy\b", re.IGNORECASE)


def read(path: Path, agent: str | None, _progress: Progress | None = None) -> Iterator[ImportedSession]:
    """The sessions of one file; the agent's name is the file's where none is given."""
    for place, fields in json_records(path, ("results",)):
        yield _session(Row(str(path), place, fields), agent or stem(path))


def _session(row: Row, agent: str) -> ImportedSession:
    task_id = row.needed_text("task_id")
    trial = _needed_count(row, "trial")
    messages = read_chat(row, "traj")
    reward = _needed(row, "reward").number("reward")
    info = row.inner("info")
    found = Found(info, reward)
    task = info.maybe("task")
    policy = next((str(said["content"]) for said in messages if said["role"] == "system"), None)
    return ImportedSession(
        place=row.place,
        task_id=task_id,
        agent=agent,
        success=None,
        satisfaction=None,
        judge_flip=None,
        prompt_tokens=None,
        completion_tokens=None,
        total_tokens=None,
        source_json=as_json(told(goal=task.string("instruction"), policy=policy)),
        trial=trial,
        category=_domain(policy),
        task_fingerprint=fingerprint(task.fields),
        transcript_json=as_json(messages),
        end_reason=found.end_reason,
        reward=found.reward,
        checks_json=as_json(found.checks) if found.checks else None,
        label_source="external",
        fault=found.fault,
        error=found.error,
        is_odd=found.is_odd,
    )


class Found:
    """What the verifier recorded of one run, and how the run ended."""

    def __init__(self, info: Row, reward: float | None) -> None:
        self.reward = reward
        self.end_reason: str | None = None
        self.fault: str | None = None
        self.error: str | None = None
        self.is_odd = False
        self.checks: list[dict[str, Any]] = []
        if info.has("error"):
            # Not its text, which a gateway wrote and which may hold a key.
            self.reward, self.end_reason, self.fault = None, "error", "gateway"
            self.error = "the run broke before it was verified"
        elif _needed(info, "reward_info").fields["reward_info"] is None:
            self.end_reason = None if reward is None else "max_steps"
        else:
            source = info.text("source")
            self.end_reason = source and ("user_stop" if source == "user" else f"agent_stop: {source}")
            self._verified(info.inner("reward_info"))

    def _verified(self, found: Row) -> None:
        details = found.maybe("info")
        for name in ("actions", "outputs"):
            share = details.number(f"r_{name}")
            if share is not None:
                self.checks.append(check(name, "tau", share >= 1, required=True))
        for output in details.maybe("outputs").fields:
            passed = details.inner("outputs").flag(output)
            self.checks.append(check(f"output {output}", "tau", passed, required=True))
        part = found.number("reward")
        if part is not None and self.reward is not None and abs(part - self.reward) > TOLERANCE:
            self.is_odd = True
            self.error = f"reward {self.reward:g} is not the {part:g} of its reward_info"


def check(
    name: str, kind: str, passed: bool | int | None, *, required: bool, evidence: str = ""
) -> dict[str, Any]:
    """One recorded check, with the keys that our own verifier writes."""
    return {
        "name": name,
        "kind": kind,
        "passed": None if passed is None else bool(passed),
        "weight": 1.0,
        "required": required,
        "evidence": evidence,
    }


def told(**fields: Any) -> dict[str, Any]:
    """The fields that hold something."""
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _domain(policy: str | None) -> str | None:
    found = _DOMAIN.match(policy or "")
    return found[1].lower() if found else None


def _needed(row: Row, field: str) -> Row:
    """The row, refused where it has no such field; null is something else."""
    if field not in row.fields:
        raise row.wrong(field, "is missing")
    return row


def _needed_count(row: Row, field: str) -> int:
    return _needed(row, field).count(field) or 0
