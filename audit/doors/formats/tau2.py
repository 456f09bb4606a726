"""tau2-bench results: simulations, the tasks they are of, and what the verifier found.

A task is its scenario and criteria, not its id. An infrastructure error leaves the reward unknown, whatever
was recorded; a run stopped by the cap on steps keeps its recorded reward. Calls of the user's own tools
(telecom) stay on the user's side. Source: tau2-bench, arXiv:2506.07982, its `src/tau2/data_model`.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from audit.doors.files import Progress, json_document, stem
from audit.doors.formats.chat import Chat, arguments_in, fingerprint, needed_role, text_of
from audit.doors.formats.fields import Row
from audit.doors.formats.tau import check, told
from audit.words.errors import BadFile
from audit.words.names import TOLERANCE
from audit.words.records import ImportedSession
from audit.words.text import as_json

_CRITERIA = ("user_scenario", "ticket", "initial_state", "evaluation_criteria")
_BROKEN = {"infrastructure_error": "gateway", "unexpected_error": "gateway"}
_FAULTS = _BROKEN | {"user_error": "simulator", "agent_error": "agent"}
# (list of checks, the object in each that is checked, its name, what was found, its part of the reward)
_CHECKS = (
    ("env_assertions", "env_assertion", "func_name", "met", "ENV_ASSERTION"),
    ("action_checks", "action", "name", "action_match", "ACTION"),
    ("nl_assertions", None, "nl_assertion", "met", "NL_ASSERTION"),
    ("communicate_checks", None, "info", "met", "COMMUNICATE"),
)


class Setting(NamedTuple):
    """What the simulations of one results object share."""

    agent: str
    domain: str | None
    policy: str | None
    tasks: dict[str, Row]


def read(path: Path, agent: str | None, _progress: Progress | None = None) -> Iterator[ImportedSession]:
    """The sessions of one file: a results object, a list of them, or a list of simulations alone."""
    found = json_document(path)
    if isinstance(found, dict):
        yield from _results(Row(str(path), "", found), path, agent)
        return
    if not isinstance(found, list):
        raise BadFile(str(path), "", "expected a JSON object with `simulations`, or an array")
    for index, fields in enumerate(found):
        if not isinstance(fields, dict):
            raise BadFile(str(path), f"[{index}]", "expected an object: a simulation, or results")
        row = Row(str(path), f"[{index}]", fields)
        if "simulations" in row.fields:
            yield from _results(row, path, agent)
        else:
            yield _session(row, Setting(agent or stem(path), None, None, {}))


def _results(row: Row, path: Path, agent: str | None) -> Iterator[ImportedSession]:
    info = row.maybe("info")
    environment = info.maybe("environment_info")
    setting = Setting(
        agent=agent or _agent(info.maybe("agent_info")) or stem(path),
        domain=environment.text("domain_name"),
        policy=environment.string("policy"),
        tasks={task.needed_text("id"): task for task in row.each("tasks", needed=False)},
    )
    for simulation in row.each("simulations"):
        yield _session(simulation, setting)


def _agent(info: Row) -> str | None:
    """The model; another way of using it than the usual one is another agent."""
    model, way = info.text("llm"), info.text("implementation")
    return f"{model} ({way})" if model and way not in (None, "llm_agent") else model or way


def _session(row: Row, setting: Setting) -> ImportedSession:
    task_id = row.needed_text("task_id")
    end_reason = row.needed_text("termination_reason")
    messages = _messages(row)
    found = Found(row, end_reason)
    task = setting.tasks.get(task_id)
    policy = row.string("policy") or setting.policy
    tokens = _tokens(row)
    return ImportedSession(
        place=row.place,
        task_id=task_id,
        agent=setting.agent,
        success=None,
        satisfaction=None,
        judge_flip=None,
        prompt_tokens=tokens[0],
        completion_tokens=tokens[1],
        total_tokens=None if tokens[0] is None or tokens[1] is None else tokens[0] + tokens[1],
        source_json=as_json(told(goal=_goal(task), policy=policy)),
        trial=_trial(row),
        category=setting.domain,
        task_fingerprint=None if task is None else fingerprint(setting.domain, *_what_counts(task)),
        transcript_json=as_json(messages),
        end_reason=end_reason,
        reward=found.reward,
        checks_json=as_json(found.checks) if found.checks else None,
        label_source=found.label_source,
        fault=_FAULTS.get(end_reason),
        error=found.error,
        is_odd=found.is_odd,
    )


def _what_counts(task: Row) -> list[Any]:
    return [task.fields.get(name) for name in _CRITERIA]


def _goal(task: Row | None) -> str | None:
    """What the customer was told, as a judge may read it; of a task without a customer, its ticket."""
    if task is None:
        return None
    scenario = task.maybe("user_scenario")
    if not isinstance(scenario.fields.get("instructions"), dict):
        return scenario.string("instructions") or task.string("ticket")
    instructions = scenario.inner("instructions")
    parts = [instructions.string(name) for name in ("reason_for_call", "known_info", "task_instructions")]
    return "\n\n".join(part.strip() for part in parts if part and part.strip()) or task.string("ticket")


def _trial(row: Row) -> int:
    if "trial" not in row.fields:
        raise row.wrong("trial", "is missing")
    return row.count("trial") or 0


def _messages(row: Row) -> list[dict[str, Any]]:
    chat = Chat()
    # Null where a voice run recorded ticks instead.
    if "messages" not in row.fields:
        raise row.wrong("messages", "is missing")
    for message in row.each("messages", needed=False):
        # Several results may come as one message.
        grouped = message.fields.get("tool_messages") is not None
        for one in message.each("tool_messages") if grouped else (message,):
            _add(chat, one)
    return chat.messages


def _add(chat: Chat, message: Row) -> None:
    role = needed_role(message)
    if role == "tool":
        chat.result(message.text("id") or "", text_of(message))
        return
    calls = [
        (call.text("id") or "", call.needed_text("name"), arguments_in(call))
        for call in message.each("tool_calls", needed=False)
    ]
    chat.say(role, text_of(message), calls)


def _tokens(row: Row) -> tuple[int | None, int | None]:
    """What the agent's calls took; unknown where one of them does not say. A canned greeting is no call."""
    sums = [0, 0]
    counted = False
    for index, message in enumerate(row.each("messages", needed=False)):
        if message.fields.get("role") != "assistant":
            continue
        usage = message.maybe("usage")
        found = [usage.count(name) for name in ("prompt_tokens", "completion_tokens")]
        if found[0] is None or found[1] is None:
            if index == 0:
                continue
            return None, None
        sums = [sums[0] + found[0], sums[1] + found[1]]
        counted = True
    return (sums[0], sums[1]) if counted else (None, None)


class Found:
    """What the verifier recorded of one simulation."""

    def __init__(self, row: Row, end_reason: str) -> None:
        if "reward_info" not in row.fields:
            raise row.wrong("reward_info", "is missing")
        info = row.maybe("reward_info")
        if info.fields and "reward" not in info.fields:
            raise info.wrong("reward", "is missing")
        self.reward = None if end_reason in _BROKEN else info.number("reward")
        self.basis = _names(info, "reward_basis")
        self.checks = _checks(info, self.basis)
        self.error: str | None = None
        self.is_odd = False
        parts = info.maybe("reward_breakdown")
        breakdown = {name: parts.number(name) for name in parts.fields}
        # What a language model found is no verifier's finding.
        self.label_source = "llm" if breakdown.get("NL_ASSERTION") is not None else "external"
        counted = {
            name: value
            for name, value in breakdown.items()
            if value is not None and (not self.basis or name in self.basis)
        }
        product = math.prod(counted.values())
        if counted and self.reward is not None and abs(product - self.reward) > TOLERANCE:
            self.is_odd = True
            listed = ", ".join(f"{name} {value:g}" for name, value in counted.items())
            self.error = f"reward {self.reward:g} is not {product:g}, the product of its parts: {listed}"


def _names(info: Row, field: str) -> list[str]:
    if info.fields.get(field) is None:
        return []
    names = info.items(field)
    if not all(isinstance(name, str) for name in names):
        raise info.wrong(field, "expected an array of names")
    return names


def _checks(info: Row, basis: list[str]) -> list[dict[str, Any]]:
    checks = []
    database = info.maybe("db_check")
    if database.fields:
        checks.append(check("database", "DB", database.flag("db_match"), required="DB" in basis))
    for field, inside, name, found, part in _CHECKS:
        for index, item in enumerate(info.each(field, needed=False), 1):
            named = item.maybe(inside) if inside else item
            is_short = inside is not None
            title = f"{field} {index}" + (f": {named.text(name)}" if is_short else "")
            evidence = (
                ""
                if is_short
                else ": ".join(word for word in (item.string(name), item.string("justification")) if word)
            )
            passed = item.flag(found)
            checks.append(check(title, part, passed, required=part in basis, evidence=evidence))
    return checks
