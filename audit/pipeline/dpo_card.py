"""The dataset card: a README.md with the Hugging Face hub's YAML header, the finding, and the filter."""

import json
from pathlib import Path
from typing import Any

from audit.words.errors import BadFile

_MARK = "- reward-audit"
_LOADERS = {".jsonl": "json", ".parquet": "parquet"}
# By the number of rows, as the hub has them.
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def may_write(path: Path) -> None:
    """Raises BadFile where `path` is a README that is no card of ours: it would be lost."""
    if path.exists() and _MARK not in path.read_text(encoding="utf-8", errors="replace")[:500]:
        raise BadFile(str(path), "", "is there already and is no card of ours: export into another folder")


def card(manifest: dict[str, Any], headline: str) -> str:
    """The card of a set, from its manifest; `headline`: what the audit found of the judge."""
    counts, run = manifest["counts"], manifest["run"]
    options = manifest["options"]
    chosen = "the judge's preference" if options["prefer"] == "judge" else "the verified order"
    lines = [
        *_header(manifest),
        "",
        f"# {run['name']}",
        "",
        f"{counts['exported']:,} preference pairs{_as_rows(manifest)} of run `{run['run_id']}`, gate "
        f"`{run['gate']}`; chosen is {chosen}.",
        "",
        "## What the audit found of the judge",
        "",
        headline,
        "",
        "## How the rows were filtered",
        "",
        f"Of {counts['candidates']:,} judged pairs {counts['dropped']:,} were dropped, each with every "
        f"reason in `{_name(manifest, 'dropped')}`. A pair may have several:",
        "",
        "| reason | pairs |",
        "|---|---|",
        *(f"| {flag} | {count:,} |" for flag, count in manifest["reasons"].items()),
        "",
        *(
            f"- {flag} (told only): {told['exported']:,} of the exported pairs"
            for flag, told in manifest["told"].items()
            if told["exported"]
        ),
        "",
        f"Prompt and completions were cut by `{options['cut']}`. Stop tokens, thinking blocks and empty "
        "turns are gone; every token of a completion is trained on, those of customers and tools too.",
        "",
        "## What is left of the noise",
        "",
        f"{backed(manifest)} {_of_noise(manifest['label_noise'])}",
        "",
        *_for_training(manifest),
    ]
    return "\n".join(lines) + "\n"


def backed(manifest: dict[str, Any]) -> str:
    """What stands behind the labels of the rows."""
    noise = manifest["label_noise"]
    parts = [f"A verified reward vouches for {noise['vouched_by_verifier']:,} rows"]
    if noise["vouched_by_verifier"] and "why" in manifest["verifier_error"]:
        parts[0] += " (taken to be right, as no person has looked at any)"
    if noise["confirmed_by_people"]:
        parts.append(f"people confirm {noise['confirmed_by_people']:,}")
    if noise["denied"]:
        parts.append(f"a reward or people deny {noise['denied']:,}")
    return ", ".join([*parts, f"nobody but the judge stands behind {noise['by_judge_alone']:,}."])


def _as_rows(manifest: dict[str, Any]) -> str:
    return ", each as a desirable and an undesirable row," if manifest["options"]["format"] == "kto" else ""


def _for_training(manifest: dict[str, Any]) -> list[str]:
    """How the noise goes into the trainer's settings."""
    trl = manifest["trl"]
    if manifest["options"]["format"] == "kto":
        return ["KTO's loss has no setting for it; `weight` is there to choose rows by."]
    settings = f"DPOConfig(loss_type={trl['loss_type']!r}, label_smoothing={trl['label_smoothing']!r})"
    return ["```python", settings, "```"]


def _of_noise(noise: dict[str, Any]) -> str:
    if noise["value"] is None:
        return f"The share of flipped labels is unknown: {noise['why']}."
    return f"Flipped labels: {noise['value']:.1%} of the rows, at most {noise['upper']:.1%}."


def _header(manifest: dict[str, Any]) -> list[str]:
    rows = [file for file in manifest["files"] if file["holds"] == "rows"]
    total = sum(file["rows"] for file in rows)
    size = next((name for most, name in _SIZES if total < most), "n>1M")
    lines = [
        "---",
        f"pretty_name: {json.dumps(manifest['run']['name'])}",
        "tags:",
        "- kto" if manifest["options"]["format"] == "kto" else "- dpo",
        "- preference",
        _MARK,
    ]
    lines += ["size_categories:", f"- {size}", "configs:", "- config_name: default", "  data_files:"]
    for file in rows:
        lines += [f"  - split: {file.get('split', 'train')}", f"    path: {json.dumps(file['file'])}"]
    return [*lines, "---"]


def _name(manifest: dict[str, Any], holds: str) -> str:
    return str(next(file["file"] for file in manifest["files"] if file["holds"] == holds))
