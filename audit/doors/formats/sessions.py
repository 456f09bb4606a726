"""Our own format `sessions`: one session a line, as JSON Lines, in documented columns.

task_id        required; kept as text
messages       required; the session as chat messages in the form of OpenAI's API, tools' results included
agent          whose session; required unless the command names one for the file
reward         verified, any finite number; null or absent: unknown
success        what the verifier found: true/false; follows from the reward where it is not given, and is
               the reward where none is given
trial          default 0; a second session of one agent on one task needs its own
category       e.g. the domain
task           text: what the customer was told to get
policy         text: the rules the agent had
checks         a list of {"name", "passed", optional "evidence"}
task_fingerprint  what tells the task from another of the same id; default: made of `task` and of the names
               of its checks
satisfaction   0..1, from a judge's pointwise question
end_reason, error    text
fault          agent, simulator, verifier or gateway, where one of them broke the session
label_source   rule, external (default), human or llm: where the reward comes from
prompt_tokens, completion_tokens, total_tokens    what the agent's calls took
simulated_at   ISO 8601 with a zone
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from audit.doors.files import Progress, json_lines
from audit.doors.formats.chat import fingerprint, read_chat
from audit.doors.formats.fields import Row, strange_columns
from audit.doors.formats.tau import check, told
from audit.words.records import ImportedSession
from audit.words.text import as_json

COLUMNS = (
    "task_id",
    "messages",
    "agent",
    "reward",
    "success",
    "trial",
    "category",
    "task",
    "policy",
    "checks",
    "task_fingerprint",
    "satisfaction",
    "end_reason",
    "error",
    "fault",
    "label_source",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "simulated_at",
)
_FAULTS = {name: name for name in ("agent", "simulator", "verifier", "gateway")}
_SOURCES = {name: name for name in ("rule", "external", "human", "llm")}


def read(
    path: Path, agent: str | None, progress: Progress | None, passed_over: set[str]
) -> Iterator[ImportedSession]:
    """The sessions of one file; foreign columns are added to `passed_over`."""
    for number, fields in json_lines(path, progress):
        row = Row(str(path), f"line {number}", fields)
        if not passed_over.issuperset(fields.keys() - set(COLUMNS)):
            passed_over |= strange_columns(row, COLUMNS)
        yield _session(row, agent)


def _session(row: Row, agent: str | None) -> ImportedSession:
    task_id = row.needed_text("task_id")
    name = row.text("agent") or agent
    if name is None:
        raise row.wrong("agent", "is missing: name it here, or for the whole file by --agent")
    messages = read_chat(row, "messages")
    checks = _checks(row)
    success = row.flag("success")
    reward = row.number("reward")
    names = sorted(str(item["name"]) for item in checks)
    return ImportedSession(
        place=row.place,
        task_id=task_id,
        agent=name,
        success=success,
        satisfaction=row.number("satisfaction", low=0, high=1),
        judge_flip=None,
        prompt_tokens=row.count("prompt_tokens"),
        completion_tokens=row.count("completion_tokens"),
        total_tokens=row.count("total_tokens"),
        source_json=as_json(told(goal=row.string("task"), policy=row.string("policy"))),
        trial=row.count("trial") or 0,
        category=row.text("category"),
        task_fingerprint=row.text("task_fingerprint") or fingerprint(row.string("task"), names),
        transcript_json=as_json(messages),
        end_reason=row.text("end_reason"),
        reward=float(success) if reward is None and success is not None else reward,
        checks_json=as_json(checks) if checks else None,
        label_source=row.one_of("label_source", _SOURCES) or "external",
        fault=row.one_of("fault", _FAULTS),
        error=row.text("error"),
        simulated_at=row.moment("simulated_at"),
    )


def _checks(row: Row) -> list[dict[str, Any]]:
    return [
        check(
            item.needed_text("name"),
            "recorded",
            item.flag("passed"),
            required=True,
            evidence=item.string("evidence") or "",
        )
        for item in row.each("checks", needed=False)
    ]
