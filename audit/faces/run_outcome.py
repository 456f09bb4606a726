"""How a run ended: said on both streams and in the log file, with what follows it, and the exit code."""

from typing import TYPE_CHECKING, Any, NamedTuple

from audit.faces.cli import command_line
from audit.words.errors import EXIT_GATE, EXIT_INCOMPLETE, EXIT_OK

if TYPE_CHECKING:
    from audit.faces.following import Limits, Step
    from audit.faces.log_file import LogFile
    from audit.pipeline.run import Ran

_AFTER = {"simulate": "judge", "judge": "verify", "verify": "score"}


class Told(NamedTuple):
    """To whom a run is told, and what follows it."""

    log: "LogFile"
    steps: "list[Step]"


def tell_outcome(
    engine: Any, ran: "Ran", as_json: bool, stages: tuple[str, ...], told: Told, limits: "Limits"
) -> int:
    """What came of it, on both streams and in the log file; then what follows. The exit code."""
    from audit.faces.output import print_json, tell
    from audit.faces.report_text import print_report
    from audit.pipeline.reporting import report
    from audit.pipeline.troubles import troubles_of

    show_report = stages[-1] == "score"
    meter = ran.meter
    found: dict[str, Any] = {
        "run_id": ran.run.run_id,
        "status": ran.status,
        "calls": meter.calls,
        "errors": meter.errors,
        "tokens": meter.tokens,
        "calls_with_unknown_tokens": meter.unknown_tokens,
        "run_tokens": meter.used.tokens if meter.used else None,
        "run_cost_usd": meter.used.cost if meter.used and not meter.used.unpriced else None,
    }
    found["problems"] = troubles_of(engine, ran.run.run_id)
    for kind, lines in (("note", meter.notes), ("problem", found["problems"])):
        for line in lines:
            tell(f"{kind}: {line}", err=True, hanging=len(kind) + 2)
            told.log.event(kind, text=line)
    told.log.event("done", **{name: value for name, value in found.items() if name != "problems"})
    is_done, passed = ran.status in ("complete", "done"), True
    if not as_json:
        tell(
            f"{ran.status}: {meter.calls:,} calls, {meter.errors:,} failed, {meter.tokens:,} tokens"
            + (f", unknown for {meter.unknown_tokens:,} calls" if meter.unknown_tokens else "")
            + _cost(found["run_cost_usd"]),
            err=True,
        )
        if (show_report or ran.run.kind == "import") and ran.status == "complete":
            print_report(report(engine, ran.run.run_id))
    if is_done and told.steps:
        from audit.faces.following import follow

        found["then"], passed = follow(engine, ran.run.run_id, told.steps, limits, quiet=as_json)
        told.log.event("then", passed=passed, steps=[step.name for step in told.steps])
    if as_json:
        print_json(found)
    if not is_done:
        why = _why_incomplete(engine, ran)
        tell(f"incomplete: {why}", err=True, hanging=12)
        told.log.event("incomplete", why=why)
        return EXIT_INCOMPLETE
    if ran.status == "done" and not as_json:
        tell(f"next: {command_line(_AFTER[stages[-1]])}", err=True)
    return EXIT_OK if passed else EXIT_GATE


def _cost(usd: float | None) -> str:
    return f"; the run has cost {usd:,.2f} USD" if usd else ""


def _why_incomplete(engine: Any, ran: "Ran") -> str:
    from audit.pipeline.troubles import not_found

    meter = ran.meter
    if ran.status == "too_many_errors" or meter.stopped_by is not None:
        lost = not_found(engine, ran.run.run_id)
        if lost:
            why = meter.stopped_by or "more calls failed than max_error_rate allows"
            return f"{why}: {_corrected(lost, is_import=ran.run.kind == 'import')}"
    reason = {
        "too_many_errors": "more calls failed than max_error_rate allows: --retry-errors asks them again",
        "too_many_broken": "more sessions are of no use than max_error_rate allows: --retry-errors holds "
        "or checks them again",
        "stopped": "not all is done: the same command goes on from there",
    }[ran.status]
    if meter.over_budget is not None and ran.status == "stopped":
        return f"{meter.over_budget}: with a higher one the same command goes on, --new begins another run"
    return reason if meter.stopped_by is None else f"{meter.stopped_by}: {reason}"


def _corrected(profiles: list[str], *, is_import: bool) -> str:
    """What to do where a model or an address is not there: one corrected in the config is another config."""
    what = f"if model or base_url of {', '.join(profiles)} is wrong, correct it in the config"
    if is_import:
        return f"{what} and give the same command; if not, --retry-errors asks again"
    return f"{what}, which then begins another run; if not, --retry-errors asks again"
