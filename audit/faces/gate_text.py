"""What `gate` found: one line a threshold."""

from typing import Any

from audit.faces.output import tell

_BOUND = {"value": "", "lower": "lower bound ", "upper": "upper bound "}


def print_held(found: dict[str, Any]) -> None:
    """What speaks against the run, then every threshold, then the verdict; a line each."""
    lines = [f"failed   {fault}" for fault in found["faults"]]
    lines += [f"{check['status']:<8} {_line(check)}" for check in found["checks"]]
    bad = len(found["faults"]) + sum(not check["passed"] for check in found["checks"])
    verdict = "passes" if found["passed"] else f"fails: {bad} of {len(lines)} lines above"
    if found["advice"] is not None:
        lines.append(f"advice   {found['advice']['text']}")
    of = (f"gate {found['gate']}, " if found["gate"] else "") + f"limits of {found['limits_of']}"
    for line in lines:
        tell(line, hanging=9)
    tell(f"run {found['run_id']} {verdict} ({of})")


def _line(check: dict[str, Any]) -> str:
    figure = check["figure"]
    limits = " and ".join(f"{kind} {check[kind]:g}" for kind in ("max", "min") if check[kind] is not None)
    of = f" since run {figure['against']}" if "against" in figure else ""
    text = f"{check['name']}: {_shown(figure)}{of}, {_BOUND[check['by']]}against {limits}"
    if check["status"] == "unknown":
        why = figure.get("why") or (
            "nothing to count" if figure["value"] is None else f"too few to tell ({_clusters(figure)})"
        )
        return f"{text}: {why}; on_unknown is {check['on_unknown']}"
    return text


def _clusters(figure: dict[str, Any]) -> str:
    return f"{figure['clusters']:,} clusters, and the interval holds the limit"


def _shown(figure: dict[str, Any]) -> str:
    if figure["value"] is None:
        return "unknown"
    counts = f"{figure['k']:,}/{figure['n']:,} = " if "k" in figure else ""
    ends = ""
    if figure["low"] is not None or figure["high"] is not None:
        low, high = (".." if figure[end] is None else f"{figure[end]:.4g}" for end in ("low", "high"))
        ends = f" (95%: {low} to {high})"
    return f"{counts}{figure['value']:.4g}{ends}"
