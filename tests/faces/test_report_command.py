"""The report: keys that scripts hang on, counts that add up, and a terminal that no name can drive."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from audit.doors import db
from audit.faces.report_text import print_report
from audit.pipeline.importing import Wish, import_file
from audit.pipeline.reporting import headline, report
from audit.statistics.intervals import wilson
from audit.verbs.gaps import buckets_from_text
from audit.words.errors import BadRequest

RATE = {"k", "n", "value", "low", "high", "method", "clusters"}
COUNTS = ("correct", "misselected", "judge_tie", "inconsistent", "unreadable", "incomplete")
EXAMPLE = Path(__file__).parents[2] / "data" / "judged_pairs.jsonl"
# Markup, colour, a new title for the window, a cleared screen, lines of its own, text that runs backwards.
HOSTILE = {
    "agent": "[red]x[/red]",
    "other": "\x1b[31mred\x1b[0m",
    "category": "\x1b[2J\x1b]0;owned\x07line\nbreak\r\u202eltr",
    "judge": "[bold]j[/bold]\u2066\u200f" + "長い名前" * 30,
    "raw": "\x1b[31m[red]A is better[/red]\n\u202e[[A]]\x07",
}


def found_in(path: Path, wish: Wish) -> dict[str, Any]:
    engine = db.open_database(f"sqlite:///{path}", create=True)
    try:
        return report(engine, import_file(engine, wish).run_id)
    finally:
        engine.dispose()


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report on the shipped example: many agents, each task in many pairs."""
    return found_in(tmp_path_factory.mktemp("example") / "audit.db", Wish("jsonl", (EXAMPLE,)))


@pytest.fixture
def single(tmp_path: Path) -> dict[str, Any]:
    """The report on pairs of one task each, one for every outcome; buckets of which some are empty."""
    lines = (
        "pair_id,reward_a,reward_b,pref_ab,pref_ba,raw_ab,grammar,gap",
        "correct,1,0,A,A,,,0.05",
        "misselected,1,0,B,B,,,0.05",
        "judge_tie,1,0,tie,tie,,,0.05",
        "inconsistent,1,0,A,B,,,2",
        "unreadable,1,0,unreadable,A,,,2",
        "incomplete,1,0,A,,,,2",
        "failed,1,0,A,failed,,,2",
        "reward_tie,1,1,A,A,,,",
        "unverified,1,,A,A,,,",
    )
    file = tmp_path / "judged.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    wish = Wish("csv", (file,), buckets=buckets_from_text("[0,.1] (.1,1] (1,..)", None))
    return found_in(tmp_path / "audit.db", wish)


def rates(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every RATE in the report, by where it stands."""
    if isinstance(value, dict) and "k" in value:
        yield path, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from rates(item, f"{path}.{key}")


def test_report_when_in_json_then_its_keys_are_the_agreed_ones(example: dict[str, Any]) -> None:
    assert example.keys() == {
        "run",
        "pairs",
        "answers",
        "rates",
        "near_vs_wide",
        "gap_buckets",
        "position",
        "categories",
        "judges",
        "cost",
        "agents",
        "imported",
        "agent_pairs",
        "near_minus_wide",
        "has_binary_rewards",
        "error_curve",
        "satisfaction",
        "review",
        "why",
        "notes",
    }
    assert example["why"] == {
        "satisfaction": "no session holds a satisfaction",
        "review": "no person has looked at a row of this run: `reward-audit review export` picks some",
    }
    assert list(example["run"]) == [
        "run_id", "name", "kind", "gate", "swap_rule", "gap_source", "gap_scope", "bucket_set", "config_hash",
        "task_set_hash", "prompt_set_hash", "status", "created_at", "models",
    ]  # fmt: skip
    assert list(example["pairs"]) == ["total", "decidable", *COUNTS, "reward_tie", "unverified"]
    assert list(example["answers"]) == [
        "total", "ok", "repaired", "unreadable", "error", "truncated", "recorded",
    ]  # fmt: skip
    assert list(example["rates"]) == [
        "accuracy", "misselected_of_decidable", "misselected_of_decided", "error_calls",
    ]  # fmt: skip
    assert list(example["near_vs_wide"]) == ["near", "wide"]
    bucket_keys = [
        "label", "lower", "upper", "is_near", "pairs", "decidable", "correct", "misselected", "undecided",
        "misselected_of_decidable", "misselected_of_decided", "consistent",
    ]  # fmt: skip
    for bucket in (*example["gap_buckets"], *example["near_vs_wide"].values()):
        assert list(bucket) == bucket_keys
    assert {
        "consistent", "primacy", "recency", "preference_fairness", "first_share", "mcnemar_p",
    } <= example["position"].keys()  # fmt: skip
    assert list(example["cost"]) == [
        "calls", "unknown_calls", "prompt_tokens", "completion_tokens", "total_tokens", "usd", "run_calls",
        "agents_tokens",
    ]  # fmt: skip


def test_rates_when_in_the_report_then_each_has_all_its_keys_and_is_a_share(
    example: dict[str, Any], single: dict[str, Any]
) -> None:
    for found in (example, single):
        all_rates = dict(rates(found))
        assert len(all_rates) > 30
        for path, rate in all_rates.items():
            assert rate.keys() - {"why"} == RATE, path
            assert 0 <= rate["k"] <= rate["n"], path
            assert rate["value"] == (rate["k"] / rate["n"] if rate["n"] else None), path
            if rate["low"] is not None:
                assert 0 <= rate["low"] <= rate["value"] <= rate["high"] <= 1, path


def test_intervals_when_pairs_share_tasks_then_they_are_of_tasks_and_wider_than_plain_ones(
    example: dict[str, Any], single: dict[str, Any]
) -> None:
    for found in (example, single):
        assert [path for path, rate in rates(found) if rate["n"] and rate["low"] is None] == []
    shared = example["rates"]["misselected_of_decided"]
    assert (shared["method"], shared["clusters"]) == ("cluster_wilson_t", 36)
    plain = wilson(shared["k"], shared["n"])
    assert shared["low"] < plain[0] < plain[1] < shared["high"]
    # Alone in their tasks pairs are independent; two answers of one pair never are.
    assert single["rates"]["accuracy"]["method"] == "wilson"
    assert single["position"]["first_share"]["method"] == "cluster_wilson_t"
    assert single["rates"]["error_calls"]["clusters"] == 9


def test_counts_when_added_up_then_they_are_the_whole(
    example: dict[str, Any], single: dict[str, Any]
) -> None:
    for found in (example, single):
        pairs = found["pairs"]
        assert sum(pairs[outcome] for outcome in COUNTS) == pairs["decidable"]
        assert pairs["decidable"] + pairs["reward_tie"] + pairs["unverified"] == pairs["total"]
        for key in ("pairs", "decidable", "correct", "misselected"):
            whole = pairs["total" if key == "pairs" else key]
            assert sum(bucket[key] for bucket in found["gap_buckets"]) == whole
        for bucket in found["gap_buckets"]:
            assert bucket["correct"] + bucket["misselected"] + bucket["undecided"] == bucket["decidable"]
        assert sum(group["pairs"]["total"] for group in found["categories"]) == pairs["total"]
        answers = dict(found["answers"])
        assert answers.pop("total") == sum(answers.values()) == found["cost"]["calls"]
    assert {outcome: single["pairs"][outcome] for outcome in COUNTS} == dict.fromkeys(COUNTS, 1) | {
        "incomplete": 2
    }


def test_bucket_when_it_is_empty_then_n_is_0_and_the_rate_is_null(single: dict[str, Any]) -> None:
    rows = {bucket["label"]: bucket for bucket in single["gap_buckets"]}
    empty = rows["(.1,1]"]

    assert list(rows) == ["[0,.1]", "(.1,1]", "(1,..)", "unknown"]
    assert (empty["pairs"], empty["misselected_of_decidable"]) == (
        0,
        {"k": 0, "n": 0, "value": None, "low": None, "high": None, "method": None, "clusters": 0},
    )
    assert (rows["unknown"]["pairs"], rows["unknown"]["is_near"], rows["unknown"]["lower"]) == (2, None, None)
    assert single["near_vs_wide"]["wide"]["pairs"] == 4


def test_report_when_run_as_a_command_then_json_is_the_same_and_text_fits_80_columns(
    cli: Callable[..., Any],
) -> None:
    assert cli("import", "jsonl", EXAMPLE).code == 0
    in_json = cli("report", "--json")
    text = cli("report", env={"COLUMNS": "200"})
    piped_json = json.loads(in_json.stdout)

    assert (in_json.code, text.code, in_json.stderr, text.stderr) == (0, 0, "", "")
    assert piped_json["pairs"]["total"] == 540
    assert max(map(columns_of, text.stdout.splitlines())) <= 80
    assert "\x1b" not in text.stdout
    whole = cli("report", "-v")
    assert (whole.code, max(map(columns_of, whole.stdout.splitlines())) <= 80) == (0, True)
    assert len(whole.stdout) > len(text.stdout) + 500
    assert "All agent pairs" in whole.stdout
    for shown in ("42/534 7.9%", "42/402 10.4%", "25/88 28.4%", "17/314 5.4%", "406/531 76.5%"):
        assert shown in text.stdout
    assert headline(piped_json) in " ".join(text.stdout.split())
    assert "(95%: cluster_wilson_t over 36 tasks; of error_calls wilson_on_clusters)" in text.stdout


def test_report_when_counts_are_in_the_millions_then_no_figure_is_cut(
    single: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    print_report(_in_millions(single))
    text = capsys.readouterr().out

    assert max(map(columns_of, text.splitlines())) <= 80
    assert "…" not in text
    # A cell may take two lines, a number may not.
    for number in ("1,000,001", "7,000,001"):
        assert number in text


def _in_millions(value: Any) -> Any:
    """The same report of a run with a million times as many pairs; labels, edges and rates stay."""
    if isinstance(value, dict):
        return {key: item if key == "is_near" else _in_millions(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_millions(item) for item in value]
    return value * 1_000_000 + 1 if isinstance(value, int) and value else value


def columns_of(line: str) -> int:
    """How many columns a terminal gives the line: an ideograph takes two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)


def test_names_when_hostile_then_they_are_inert_wherever_they_are_shown(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "judged.jsonl"
    pair = {
        "task_id": "t\x1b[31m",
        "category": HOSTILE["category"],
        "judge": HOSTILE["judge"],
        "agent_a": HOSTILE["agent"],
        "agent_b": HOSTILE["other"],
        "reward_a": 1,
        "reward_b": 0,
        "grammar": "mtbench_3way",
        "raw_ab": HOSTILE["raw"],
        "response_a": HOSTILE["raw"],
        "response_b": [{"role": "[red]\x1b[31m", "content": HOSTILE["raw"]}],
    }
    other = pair | {"judge": "another", "category": "[/red]"}
    lines = [json.dumps(pair | {"pair_id": "=p1"}), json.dumps(other | {"pair_id": "=p2"})]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert cli("import", "jsonl", file, "--name", "[red]\x1b[31mn\nn\u202e").code == 0

    sql = ("sql", 'select agent_a, agent_b as "[red]\x1b[31m", category from audit_pairs')
    shown = {
        args: cli(*args)
        for args in (
            ("report", "--gate", HOSTILE["judge"]),
            ("runs",),
            ("show", "latest"),
            ("show", "=p1"),
            ("show", "1"),
            sql,
            ("views", "misselection_by_judge"),
        )
    }  # fmt: skip

    for args, ran in shown.items():
        assert (ran.code, ran.stderr) == (0, ""), args
        bad = {char for char in ran.stdout if char != "\n" and not char.isprintable()}
        assert bad == set(), args
    for args in (("report", "--gate", HOSTILE["judge"]), ("runs",)):
        assert max(map(columns_of, shown[args].stdout.splitlines())) <= 80
    text = shown["report", "--gate", HOSTILE["judge"]].stdout
    # In the heading, the headline and the table of judges: nowhere read as markup.
    assert text.count("[bold]j[/bold]\\u2066\\u200f") == 3
    assert "\\u200f長い名前長い" in text
    # Folded within its column, but whole and on no line of its own making.
    assert "\\x1b[2J\\x1b]0;owned\\x07" in re.sub(r"\s+", "", text)
    assert "[red]x[/red]" in shown["show", "=p1"].stdout
    assert "[/red]" in shown[sql].stdout
    assert "[red]A is better[/red]" in shown["show", "1"].stdout
    assert "[red]\\x1b[31mn⏎n" in shown["runs",].stdout


def test_report_when_it_is_of_sessions_alone_then_one_empty_line_stands_before_its_notes(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "sessions.csv"
    said = "r1,u,j,{agent},{level},{success},1,1,2,0,t{task}\n"
    columns = "run_id,sim_user_model,judge_model,agent_model,satisfaction,task_success,prompt_tokens,"
    rows = [
        said.format(agent=agent, level=level, success=success, task=task)
        for task in range(4)
        for agent, level, success in (("ash", 0.9, 1), ("elm", 0.9, task % 2))
    ]
    head = columns + "completion_tokens,total_tokens,judge_flip,task_id\n"
    file.write_text(head + "".join(rows), encoding="utf-8")
    assert cli("import", "gauge-csv", file).code == 0
    lines = cli("report").stdout.splitlines()

    notes = [number for number, line in enumerate(lines) if line.startswith("Note: ")]
    assert notes
    assert lines[notes[0] - 1] == ""
    assert "\n\n\n" not in "\n".join(lines)
    assert lines[-1] != ""


def test_report_when_a_gate_is_asked_for_of_sessions_alone_then_it_says_what_to_do(
    sqlite_url: str, tmp_path: Path
) -> None:
    from audit.doors.formats.gauge_csv import COLUMNS

    file = tmp_path / "sessions.csv"
    file.write_text(",".join(COLUMNS) + "\nr1,sim,judge,ash,0.8,1,1,2,3,0\n", encoding="utf-8")
    engine = db.open_database(sqlite_url, create=True)
    try:
        run_id = import_file(engine, Wish("gauge-csv", (file,))).run_id
        with pytest.raises(BadRequest) as caught:
            report(engine, run_id, "judge")
    finally:
        engine.dispose()

    assert str(caught.value) == (
        f"run {run_id} holds no pairs: `reward-audit show {run_id}` says what it holds"
    )


def test_report_when_a_run_has_two_judges_then_each_is_counted_alone(sqlite_url: str, tmp_path: Path) -> None:
    lines = ["pair_id,judge,task_id,reward_a,reward_b,pref_ab,pref_ba"]
    lines += [f"p{i},alone,t{i},1,0,A,A" for i in range(4)]
    lines += [f"p{i},sharing,t1,1,0,B,B" for i in range(2)]
    file = tmp_path / "judged.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    engine = db.open_database(sqlite_url, create=True)
    try:
        run_id = import_file(engine, Wish("csv", (file,))).run_id
        first, second = report(engine, run_id), report(engine, run_id, "sharing")
    finally:
        engine.dispose()

    assert (first["run"]["gate"], first["pairs"]["correct"], first["answers"]["recorded"]) == ("alone", 4, 8)
    assert (second["pairs"]["misselected"], second["answers"]["recorded"]) == (2, 4)
    # Whichever is shown, only the judge whose pairs are one a task has a plain interval.
    for found in (first, second):
        assert [judge["gate"] for judge in found["judges"]] == ["alone", "sharing"]
        assert [judge["accuracy"]["method"] for judge in found["judges"]] == [
            "wilson",
            "wilson_on_clusters",
        ]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            ["1,0,A,A"],
            "Of 1 verdicts for a side, 0 (0%) name the side with the lower verified reward. "
            "No decidable pair has a near gap (with 0/1 rewards and gap_source session none can): "
            "the empty near bucket is no good news.",
        ),
        (
            ["0.5,0.46,B,B", "1,0,A,A", "1,0,B,B"],
            "Of 3 verdicts for a side, 2 (67%) name the side with the lower verified reward; "
            "near ties 1/1 (100%), wide gaps 1/2 (50%).",
        ),
        (
            ["0.5,0.46,A,B", "1,0,A,A"],
            "Of 1 verdicts for a side, 0 (0%) name the side with the lower verified reward; "
            "near ties 0/0 (no verdict), wide gaps 0/1 (0%).",
        ),
        (
            ["1,0,A,B"],
            "No pair has both a verified difference and a verdict for a side: nothing can be said yet.",
        ),
    ],
    ids=["no near gap", "near and wide", "near without a verdict", "no verdict"],
)
def test_headline_when_read_then_it_says_no_more_than_was_counted(
    tmp_path: Path, rows: list[str], sentence: str
) -> None:
    file = tmp_path / "judged.csv"
    lines = ["pair_id,reward_a,reward_b,pref_ab,pref_ba", *(f"p{i},{row}" for i, row in enumerate(rows))]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    assert headline(found_in(tmp_path / "audit.db", Wish("csv", (file,)))) == sentence
