"""The whole round with people, through files: a run, what they should look at, what they say, the report.

Their labels are made from the verified truth, with some errors; Label Studio's file is made by hand as its
documentation has it (labelstud.io/guide/task_format).
"""

import csv
import json
import random
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from page_read import Page, check, check_inert

EMBEDDED = Path(__file__).parents[2] / "data" / "embedded.yaml"
N = 40


@pytest.fixture(scope="module")
def run_once(
    tmp_path_factory: pytest.TempPathFactory, command_in: Callable[[Path], Callable[..., Any]]
) -> Path:
    """The database of an embedded run: eight agents on three tasks, 84 pairs."""
    folder = tmp_path_factory.mktemp("run")
    shop = EMBEDDED.parent / "tasks" / "shop"
    few = folder / "few"
    few.mkdir()
    for name in ("domain.yaml", "world.sql"):
        shutil.copy(shop / name, few / name)
    tasks = yaml.safe_load((shop / "tasks.yaml").read_text(encoding="utf-8"))
    chosen = [task for task in tasks if task["category"] != "query"][:3]
    (few / "tasks.yaml").write_text(yaml.safe_dump(chosen, allow_unicode=True), encoding="utf-8")
    config = yaml.safe_load(EMBEDDED.read_text(encoding="utf-8")) | {"tasks": [str(few)]}
    (folder / "audit.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    done = command_in(folder)("run", "-c", folder / "audit.yaml")
    assert done.code == 0, done.stderr
    return folder / "audit.db"


@pytest.fixture
def review(here: Callable[..., Any], run_once: Path, tmp_path: Path) -> Callable[..., Any]:
    """`review ...` on a copy of that database; must succeed."""
    shutil.copy(run_once, tmp_path / "audit.db")

    def ask(*args: str | Path) -> str:
        done = here("review", *args)
        assert (done.code, done.stderr) == (0, ""), done
        said: str = done.stdout
        return said

    return ask


def rows(tmp_path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(tmp_path / "audit.db")) as connection:
        return list(connection.execute(query))


def truths(tmp_path: Path, seed: int = 1, wrong: float = 0.15) -> Iterator[tuple[str, str, str, str]]:
    """(review_id, preference, first done, second done), by position: the truth, but for some errors."""
    chance = random.Random(seed)
    query = (
        "select review_id, shown_first, reward_a, reward_b, success_a, success_b, session_a, session_b "
        "from review_items inner join audit_pairs using (pair_id) order by review_id"
    )
    for review_id, shown_first, reward_a, reward_b, *sessions in rows(tmp_path, query):
        side = "tie" if reward_a == reward_b else "A" if reward_a > reward_b else "B"
        if chance.random() < wrong:
            side = chance.choice(["A", "B", "tie"])
        # The same of a session wherever it is shown.
        missed = [random.Random(f"{seed} {name[8:]}").random() < wrong for name in sessions[2:]]
        done = [
            "done" if bool(success) != is_missed else "not done"
            for success, is_missed in zip(sessions[:2], missed, strict=True)
        ]
        position = side if side == "tie" else "first" if side == shown_first else "second"
        yield review_id, position, *(done if shown_first == "A" else reversed(done))


def label_studio(said: list[tuple[str, str, str, str]], who: Any = 7) -> list[dict[str, Any]]:
    """Label Studio's JSON export of these labels."""

    def result(name: str, to: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
        return {"id": "Dx_aB91ISN", "from_name": name, "to_name": to, "type": kind, "value": value}

    def answers(preference: str, first: str, second: str) -> list[dict[str, Any]]:
        if preference == "tie":
            verdict = result("verdict", "first", "choices", {"choices": ["tie"]})
        else:
            side = {"first": "left", "second": "right"}[preference]
            verdict = result("better", "first,second", "pairwise", {"selected": side})
        return [
            verdict,
            result("first_done", "first", "choices", {"choices": [first]}),
            result("second_done", "second", "choices", {"choices": [second]}),
            result("note", "first", "textarea", {"text": ["seen"]}),
        ]

    return [
        {
            "id": number,
            "data": {"review_id": review_id, "goal": "...", "first": "...", "second": "..."},
            "annotations": [
                {
                    "id": 1000 + number,
                    "completed_by": who,
                    "result": answers(*said_of),
                    "was_cancelled": False,
                    "ground_truth": False,
                    "created_at": "2026-03-09T22:16:08.728353Z",
                    "updated_at": "2026-03-09T22:16:09.728378Z",
                    "lead_time": 4.288,
                },
                {"id": 5000 + number, "completed_by": 8, "result": [], "was_cancelled": True},
            ],
            "predictions": [],
        }
        for number, (review_id, *said_of) in enumerate(said)
    ]


def as_csv(path: Path, said: list[tuple[str, str, str, str]], who: str) -> Path:
    """The same as a spreadsheet saves it: a byte order mark, columns in another order, one of its own."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["note", "second_done", "row", "annotator", "preference", "review_id", "first_done"])
        for number, (review_id, preference, first, second) in enumerate(said):
            writer.writerow(["seen", second, number, who, preference.upper(), review_id, first])
    return path


def test_round_when_forty_pairs_went_through_label_studio_then_the_report_is_corrected(
    review: Callable[..., str], here: Callable[..., Any], tmp_path: Path
) -> None:
    told = json.loads(review("export", "-o", "tasks.json", "--n", str(N), "--json"))
    assert (told["items"], told["files"]) == (N, ["tasks.json", "tasks.json.config.xml"])
    tasks = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
    assert [set(task) for task in tasks] == [{"data"}] * N
    assert [set(task["data"]) for task in tasks] == [{"review_id", "goal", "policy", "first", "second"}] * N
    config = ET.fromstring((tmp_path / "tasks.json.config.xml").read_text(encoding="utf-8"))  # noqa: S314
    assert [(tag.get("name"), tag.get("toName")) for tag in config.iter("Pairwise")] == [
        ("better", "first,second")
    ]
    shown = {(tag.get("value") or "")[1:] for tag in config.iter("Text")}
    assert shown == set(tasks[0]["data"]) - {"review_id"}

    said = list(truths(tmp_path))
    (tmp_path / "back.json").write_text(json.dumps(label_studio(said)), encoding="utf-8")
    stored = json.loads(review("import", "back.json", "--json"))
    assert stored["stored"] + stored["known"] == 3 * N
    (run,) = stored["runs"]
    assert (run["exported"], run["labelled"], run["conflicts"]) == (N, N, [])
    assert rows(tmp_path, "select distinct annotator, created_at from human_labels") == [
        ("7", "2026-03-09T22:16:09.728Z")
    ]

    done = here("report", "--json")
    found = json.loads(done.stdout)["review"]
    assert (found["labelled"], found["of"]) == (N, "decided")
    check_misselected(tmp_path, found["misselected"])
    for rate in (found["misselected"], found["satisfied_failed"]):
        assert rate["labels"] > 5
        assert rate["disagree"] < rate["labels"]
    kappas = found["kappa"]
    assert kappas["judge_people"]["value"] < kappas["verifier_people"]["value"] < 1
    text = here("report").stdout
    assert "Misselected, by people (of decided pairs)" in text
    assert "kappa of judge and people on which side:" in text
    assert 1 < found["misselected"]["clusters"] < found["misselected"]["labels"]
    words = " ".join(text.split())
    assert f"{found['misselected']['clusters']} tasks with labels" in words
    for rate in ("misselected", "satisfied_failed"):
        assert any(b[rate]["ppi"] and b[rate]["ppi"]["low"] is None for b in found["gap_buckets"] if b[rate])
    assert words.count("under 10 labels PPI++ has no 95%, and its value says little") == 2
    assert here("report", "--html", "page.html").code == 0
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    seen = check(page, json.loads(done.stdout))
    check_inert(page)
    assert {"review.labelled", "review.misselected.ppi.value", "review.kappa.judge_people.value"} <= seen


def check_misselected(tmp_path: Path, rate: dict[str, Any]) -> None:
    """The corrected rate by arithmetic of our own: a weighted difference added to the judge's rate."""
    query = (
        "select review_items.weight, value = 'A' and judge_pref = 'B' or value = 'B' and judge_pref = 'A', "
        "misselected from review_items inner join audit_pairs using (pair_id) "
        "inner join human_labels using (pair_id) where outcome in ('correct', 'misselected')"
    )
    found = rows(tmp_path, query)
    ((n, flagged),) = rows(
        tmp_path,
        "select count(*), sum(outcome = 'misselected') from audit_pairs "
        "where outcome in ('correct', 'misselected')",
    )
    assert (rate["rows"], rate["labels"]) == (n, len(found))
    assert rate["uncorrected"] == pytest.approx(flagged / n)
    assert rate["disagree"] == sum(label != said for _, label, said in found)
    whole, trust = sum(weight for weight, *_ in found), rate["ppi"]["lambda"]
    rest = sum(weight * (label - trust * said) for weight, label, said in found) / whole
    assert rate["ppi"]["value"] == pytest.approx(min(max(trust * flagged / n + rest, 0), 1))
    if rate["ppi"]["low"] is not None:
        assert 0 <= rate["ppi"]["low"] <= rate["ppi"]["value"] <= rate["ppi"]["high"] <= 1


def test_round_when_it_goes_through_csv_with_a_mark_and_moved_columns_then_the_labels_are_the_same(
    review: Callable[..., str], here: Callable[..., Any], tmp_path: Path
) -> None:
    review("export", "-o", "look.csv", "--n", str(N))
    said = list(truths(tmp_path))
    (tmp_path / "back.json").write_text(
        json.dumps(label_studio(said, {"email": "ann@x.org"})), encoding="utf-8"
    )
    review("import", "back.json")
    labels = "select pair_id, session_id, kind, value, note from human_labels order by 1, 2, 3"
    by_label_studio = rows(tmp_path, labels)

    again = review("import", as_csv(tmp_path / "back.csv", said, "ann@x.org"))
    assert again.startswith(f"stored 0 labels of {tmp_path / 'back.csv'}; {3 * N} said nothing new\n")
    with closing(sqlite3.connect(tmp_path / "audit.db")) as connection:
        connection.execute("delete from human_labels")
        connection.commit()
    review("import", tmp_path / "back.csv")
    assert rows(tmp_path, labels) == by_label_studio
    assert json.loads(here("report", "--json").stdout)["review"]["labelled"] == N


def test_report_when_nobody_spoke_of_a_kind_then_it_says_what_is_told_from_the_others_alone(
    review: Callable[..., str], here: Callable[..., Any], tmp_path: Path
) -> None:
    review("export", "-o", "look.csv", "--n", str(N))
    reasons = dict(rows(tmp_path, "select review_id, reason from review_items"))
    said = list(truths(tmp_path))
    left_out = "inconsistent"
    ((size,),) = rows(tmp_path, f"select count(*) from review_queue where reason = '{left_out}'")
    assert size > 1

    def told() -> tuple[dict[str, Any], str, str]:
        found = json.loads(here("report", "--json", "--html", "page.html").stdout)["review"]["unheard"]
        page = " ".join((tmp_path / "page.html").read_text(encoding="utf-8").split())
        (tmp_path / "page.html").unlink()
        return found, " ".join(here("report").stdout.split()), page

    review("import", as_csv(tmp_path / "most.csv", [o for o in said if reasons[o[0]] != left_out], "ann"))
    unheard, text, page = told()
    assert unheard["misselected"] == {left_out: size}
    assert f"no label is of the kinds {left_out}: their {size} pairs are taken to be like the others" in text
    assert f"No label is of the kinds {left_out}: their pairs are taken to be like the others." in page

    review("import", as_csv(tmp_path / "rest.csv", [o for o in said if reasons[o[0]] == left_out], "ann"))
    unheard, text, page = told()
    assert unheard == {"misselected": {}, "satisfied_failed": {}}
    assert "of the kinds" not in text + page


def test_round_when_two_people_label_then_conflicts_and_their_kappa_are_told(
    review: Callable[..., str], here: Callable[..., Any], tmp_path: Path
) -> None:
    review("export", "-o", "look.csv", "--n", str(N))
    review("import", as_csv(tmp_path / "ann.csv", list(truths(tmp_path, 1)), "ann"))
    review("import", as_csv(tmp_path / "bo.csv", list(truths(tmp_path, 2)), "bo"))
    status = json.loads(review("status", "--json"))
    assert [one["annotator"] for one in status["annotators"]] == ["ann", "bo"]
    contradicting = rows(
        tmp_path,
        "select one.kind, coalesce(one.pair_id, one.session_id) from human_labels as one "
        "inner join human_labels as other on one.kind = other.kind "
        "and coalesce(one.pair_id, one.session_id) = coalesce(other.pair_id, other.session_id) "
        "where one.annotator = 'ann' and other.annotator = 'bo' and one.value <> other.value",
    )
    assert {(one["kind"], one["subject"]) for one in status["conflicts"]} <= set(contradicting)
    assert len(status["conflicts"]) > 3
    told = review("status")
    assert f"{len(status['conflicts'])} conflicts" in told
    assert "conflict: preference of " in told

    between = json.loads(here("report", "--json").stdout)["review"]["kappa"]["between_people"]
    assert [(one["kind"], one["annotators"]) for one in between] == [
        ("preference", ["ann", "bo"]),
        ("success", ["ann", "bo"]),
    ]
    assert between[0]["n"] == N
    assert 0.4 < between[0]["value"] < 1


def test_export_when_written_then_nothing_in_it_tells_who_is_who_or_what_the_judge_said(
    review: Callable[..., str], tmp_path: Path
) -> None:
    review("export", "-o", "look.jsonl", "--n", "84")
    text = (tmp_path / "look.jsonl").read_text(encoding="utf-8")
    for (agent,) in rows(tmp_path, "select distinct agent from sessions"):
        assert agent not in text
    for word in ("near_tie", "satisfied_failed", "inconsistent", "judge", "reward", "session_id", "pair_id"):
        assert f'"{word}"' not in text
    for ids in rows(tmp_path, "select pair_id, session_a, session_b from audit_pairs"):
        assert not any(name in text for name in ids)
    items = [json.loads(line) for line in text.splitlines()]
    assert {item["preference"] for item in items} == {""}
    assert all("agent: " in item["first"] and "customer: " in item["second"] for item in items)
    # Which side comes first is a coin's word, and the text is that side's.
    sides = dict(rows(tmp_path, "select review_id, shown_first from review_items"))
    assert 25 < Counter(sides.values())["A"] < 59
    order = [item["review_id"] for item in items]
    assert order == sorted(order)


def test_weights_when_several_exports_were_made_then_they_add_up_to_all_pairs_of_each_reason(
    review: Callable[..., str], tmp_path: Path
) -> None:
    sizes = dict(rows(tmp_path, "select reason, count(*) from review_queue group by reason"))
    for number, n in enumerate((20, 15, 30)):
        review("export", "-o", f"look-{number}.csv", "--n", str(n), "--seed", str(number))
        weights = dict(rows(tmp_path, "select reason, sum(weight) from review_items group by reason"))
        assert weights == pytest.approx(sizes)
        each = rows(tmp_path, "select count(distinct weight) from review_items group by reason")
        assert set(each) == {(1,)}
    assert rows(tmp_path, "select count(*) from review_items") == [(65,)]
    assert "there are no more" in review("export", "-o", "rest.csv", "--n", "84")
    assert rows(tmp_path, "select count(*), min(weight), max(weight) from review_items") == [(84, 1.0, 1.0)]


def test_export_when_all_went_out_then_only_again_writes_them_once_more_and_alike(
    review: Callable[..., str], here: Callable[..., Any], tmp_path: Path
) -> None:
    review("export", "-o", "all.jsonl", "--n", "84")
    done = here("review", "export", "-o", "more.csv")
    run_id = rows(tmp_path, "select run_id from audit_runs")[0][0]
    assert (done.code, done.stderr) == (
        1,
        f"error: all of run {run_id} was exported before: --again writes it once more\n",
    )
    review("export", "-o", "again.jsonl", "--n", "84", "--seed", "9", "--again")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()
    assert rows(tmp_path, "select count(*) from review_items") == [(84,)]


@pytest.mark.parametrize("name", ["look.csv", "tasks.json", "tasks.json.config.xml"])
def test_export_when_a_file_is_there_already_then_it_stays_and_nothing_is_stored(
    review: Callable[..., str], here: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("people's labels", encoding="utf-8")
    done = here("review", "export", "-o", name.removesuffix(".config.xml"))
    assert done.code == 1
    assert (
        done.stderr == f"error: {name}: exists already: name another, or move it away; nothing was written\n"
    )
    assert (tmp_path / name).read_text(encoding="utf-8") == "people's labels"
    assert rows(tmp_path, "select count(*) from review_items") == [(0,)]
    assert [path.name for path in tmp_path.iterdir() if "tasks" in path.name or "look" in path.name] == [name]


# What is wrong with a file -> what is said of it; {v} stands for an item's id.
BROKEN: dict[str, tuple[str, str, str]] = {
    "an item that never went out": (
        "back.csv",
        "review_id,preference,annotator\n{v},first,ann\nv1,first,ann\n",
        "line 3: review_id 'v1' was never exported from this database; nothing was stored",
    ),
    "a word that is none": (
        "back.csv",
        "review_id,preference,annotator\n{v},first,ann\n{v},better,ann\n",
        "line 3: preference: expected one of first, second, tie, cannot tell, found 'better'",
    ),
    "nobody's word": (
        "back.csv",
        "review_id,preference,annotator\n{v},first,ann\n{v},second,\n",
        "line 3: no annotator: fill in that column, or name one with --annotator",
    ),
    "done what": (
        "back.jsonl",
        '{{"review_id": "{v}", "first_done": "perhaps", "annotator": "ann"}}\n',
        "line 1: first_done: expected one of done, not done, cannot tell, found 'perhaps'",
    ),
    "a note alone": (
        "back.jsonl",
        '{{"review_id": "{v}", "note": "hm", "annotator": "ann"}}\n',
        "line 1: a note alone: say first, second, tie or cannot tell as well, or done or not done",
    ),
    "no item": (
        "back.jsonl",
        '{{"preference": "tie", "annotator": "ann"}}\n',
        "line 1: no review_id: keep that column as it was exported",
    ),
    "a time without a zone": (
        "back.jsonl",
        '{{"review_id": "{v}", "preference": "tie", "annotator": "ann", "labelled_at": "2026-03-05"}}\n',
        "line 1: labelled_at: 2026-03-05T00:00:00 has no time zone: write it with an offset or a Z",
    ),
    "no tasks": ("back.json", '[{{"id": 1}}]',
                 "[0]: expected a task with data and annotations: export it as JSON, not as JSON-MIN"),
    "Label Studio's other exports": (
        "back.csv",
        "review_id,better,first_done,annotator\n{v},left,done,1\n",
        "line 2: column 'better' is Label Studio's: export from there as JSON",
    ),
    "a slip of a column": (
        "back.csv",
        "review_id,Prefernce,first_done,annotator,shelf\n{v},first,done,ann,\n",
        "line 2: 'Prefernce' is not a known column; did you mean preference?",
    ),
    "a slip in a later line": (
        "back.jsonl",
        '{{"review_id": "{v}", "preference": "tie", "annotator": "ann"}}\n'
        '{{"review_id": "{v}", "first done": "done", "annotator": "ann"}}\n',
        "line 2: 'first done' is not a known column; did you mean first_done?",
    ),
    "a time that is still to come": (
        "back.csv",
        "review_id,preference,annotator,labelled_at\n{v},first,ann,2999-01-01T00:00:00Z\n",
        "line 2: labelled_at: 2999-01-01T00:00:00Z is still to come",
    ),
    "semicolons": (
        "back.csv",
        "review_id;preference;annotator\n{v};first;ann\n",
        "line 1: the columns are separated by ';': save it as CSV with commas",
    ),
    "a side and a tie": (
        "back.json",
        '[{{"data": {{"review_id": "{v}"}}, "annotations": [{{"completed_by": 1, "result": ['
        '{{"from_name": "better", "value": {{"selected": "left"}}}}, '
        '{{"from_name": "verdict", "value": {{"choices": ["tie"]}}}}]}}]}}]',
        "[0].annotations[0]: names a side and says tie or cannot tell as well: keep one of them",
    ),
    "another ending": ("back.txt", "", "its ending says no format: use .json (Label Studio), .csv or .jsonl"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "problem"), BROKEN.values(), ids=BROKEN.keys())
def test_import_when_a_file_is_broken_then_its_place_is_told_and_nothing_is_stored(
    review: Callable[..., str], here: Callable[..., Any], tmp_path: Path, name: str, text: str, problem: str
) -> None:
    review("export", "-o", "look.csv", "--n", "5")
    ((item,),) = rows(tmp_path, "select min(review_id) from review_items")
    (tmp_path / name).write_text(text.format(v=item), encoding="utf-8")
    done = here("review", "import", name)
    separator = ": " if name == "back.txt" else ", "
    assert (done.code, done.stderr) == (1, f"error: {name}{separator}{problem}\n")
    assert rows(tmp_path, "select count(*) from human_labels") == [(0,)]


def test_import_when_people_correct_themselves_then_rows_are_added_and_the_newest_counts(
    review: Callable[..., str], tmp_path: Path
) -> None:
    review("export", "-o", "look.csv", "--n", "1")
    ((item, side),) = rows(tmp_path, "select review_id, shown_first from review_items")
    other = {"A": "B", "B": "A"}[side]

    def told(*lines: str) -> list[tuple[Any, ...]]:
        (tmp_path / "back.csv").write_text(
            "\n".join(["review_id,preference,annotator,labelled_at", *lines]) + "\n", encoding="utf-8"
        )
        review("import", "back.csv")
        return rows(tmp_path, "select value from human_labels order by created_at, label_id")

    first = f"{item},first,ann,2026-03-05T10:00:00Z"
    assert told(first) == [(side,)]
    assert told(first) == [(side,)]
    assert told(f"{item},B,ann,2026-03-06T10:00:00Z") == [(side,), (other,)]
    # The older file once more is no correction of the correction, nor is an empty row.
    assert told(first, f"{item},,,") == [(side,), (other,)]
    assert told(f"{item},tie,ann,2026-03-05T12:00:00+01:00") == [(side,), ("tie",), (other,)]
    assert told(f"{item},cannot tell,ann,") == [(side,), ("tie",), (other,), ("cannot tell",)]


def test_import_when_one_person_contradicts_themselves_in_a_file_then_the_last_word_counts(
    review: Callable[..., str], tmp_path: Path
) -> None:
    """A session stands in several pairs: it may be called done in one row and not in another."""
    review("export", "-o", "look.csv", "--n", "84")
    ((session,),) = rows(
        tmp_path, "select session_a from audit_pairs group by session_a having count(*) > 1 limit 1"
    )
    items = rows(
        tmp_path,
        "select review_id, shown_first from review_items inner join audit_pairs using (pair_id) "
        f"where session_a = '{session}' order by review_id limit 2",
    )
    lines = ["review_id,annotator,first_done,second_done"]
    for (item, side), word in zip(items, ("done", "not done"), strict=True):
        lines.append(f"{item},ann,{word}," if side == "A" else f"{item},ann,,{word}")
    (tmp_path / "back.csv").write_text("\n".join(lines), encoding="utf-8")
    for _ in range(2):
        review("import", "back.csv")
        assert rows(tmp_path, "select session_id, value from human_labels") == [(session, "0")]


def test_import_when_nobody_is_named_then_the_one_named_on_the_command_line_counts(
    review: Callable[..., str], here: Callable[..., Any], tmp_path: Path
) -> None:
    """And a name that would drive a terminal is shown, not obeyed."""
    review("export", "-o", "look.csv", "--n", "2")
    items = [item for (item,) in rows(tmp_path, "select review_id from review_items")]
    (tmp_path / "back.csv").write_text(f"review_id,preference\n{items[0]},tie\n", encoding="utf-8")
    assert "no annotator" in here("review", "import", "back.csv").stderr
    told = review("import", "back.csv", "--annotator", "ann\x1b[2J")
    assert "\x1b" not in told
    assert "ann\\x1b[2J" in told
    # nor does the line end in a cell begin a line of its own
    (tmp_path / "back.csv").write_text(
        f'review_id,preference,annotator\n{items[0]},first,"bob\nerror: forged"\n', encoding="utf-8"
    )
    assert "conflict: " in (told := review("import", "back.csv"))
    assert "\nerror" not in told
    assert rows(tmp_path, "select annotator from human_labels")[1:] == [("bob error: forged",)]


def test_import_when_nobody_filled_in_anything_then_it_says_so(review: Callable[..., str]) -> None:
    review("export", "-o", "look.csv", "--n", "3")
    told = review("import", "look.csv")
    assert told.startswith("nobody filled in anything in look.csv: ")
    assert told.endswith("empty in all its rows\n")


def test_status_when_there_are_many_conflicts_then_some_are_shown_and_all_where_asked_for(
    review: Callable[..., str], here: Callable[..., Any], tmp_path: Path
) -> None:
    review("export", "-o", "look.csv", "--n", "30")
    items = [item for (item,) in rows(tmp_path, "select review_id from review_items")]
    lines = ["review_id,preference,annotator"]
    for item in items:
        lines += [f"{item},tie,1", f"{item},cannot tell,2", f"{item},first,3"]
    (tmp_path / "back.csv").write_text("\n".join(lines), encoding="utf-8")
    ((run_id,),) = rows(tmp_path, "select distinct run_id from review_items")
    told = review("import", "back.csv")
    assert told.startswith("stored 90 labels of back.csv; 0 said nothing new\n")
    assert len(re.findall(r"^conflict: preference of \S+: 1: tie, 3: [AB]$", told, re.MULTILINE)) == 20
    assert told.endswith(f"\n10 conflicts more: review status {run_id} -v\n")
    assert review("status", "-v").count("conflict: ") == 30
    # a newer run, of which nothing went out
    (tmp_path / "new.csv").write_text("pair_id,label,pref_ab\np1,A,A\n", encoding="utf-8")
    assert here("import", "csv", "new.csv").code == 0
    assert f"the newest run with items is {run_id}: name it" in review("status")
    ran = here("review", "serve", "--no-open", "--port", "0")
    assert ran.stderr.endswith(f"; --run {run_id} is the newest that has\n")


@pytest.mark.parametrize("gate", ["judge", "a-judge-whose-name-is-longer-than-a-run-id"])
def test_calibrate_when_told_on_a_narrow_screen_then_ids_are_whole_and_nothing_is_cut(
    here: Callable[..., Any], review: Callable[..., str], tmp_path: Path, gate: str
) -> None:
    pairs = [
        {
            "pair_id": f"p{n}", "task_id": f"t{n}", "agent_a": "x1", "agent_b": "y2", "pref_ab": "A",
            "success_a": n % 2 == 0, "success_b": True, "prompt": "q",
            "response_a": "r", "response_b": f"s{n}",
        }
        for n in range(9)
    ]  # fmt: skip
    runs = []
    for judge in (gate, "other"):
        lines = [json.dumps({**pair, "judge": judge}) for pair in pairs]
        (tmp_path / "judged.jsonl").write_text("\n".join(lines), encoding="utf-8")
        assert here("import", "jsonl", "judged.jsonl").code == 0
        runs += [run for (run,) in rows(tmp_path, "select max(run_id) from audit_runs")]
    review("export", "-o", "more.csv", "--n", "9")
    items = [item for (item,) in rows(tmp_path, "select review_id from review_items")]
    words = "\n".join(f"{item},tie,ann" for item in items)
    (tmp_path / "back.csv").write_text(f"review_id,preference,annotator\n{words}\n", encoding="utf-8")
    review("import", "back.csv")
    told = review("calibrate", *runs)
    assert max(map(len, told.splitlines())) <= 80
    assert [told.count(run) for run in runs] == [2, 2]
    assert {"anchors", "as people", "95%", "kappa", "other side", "lost", "won", "p"} <= set(
        re.split(r"  +|\n", told)
    )


def test_import_when_the_pairwise_tag_has_another_name_then_its_answer_is_not_lost(
    review: Callable[..., str], tmp_path: Path
) -> None:
    """Label Studio's own template calls it `pw`."""
    review("export", "-o", "look.csv", "--n", "1")
    ((item, side),) = rows(tmp_path, "select review_id, shown_first from review_items")
    chosen = {"from_name": "pw", "to_name": "first,second", "type": "pairwise", "value": {"selected": "left"}}
    task = {"data": {"review_id": item}, "annotations": [{"completed_by": 1, "result": [chosen]}]}
    (tmp_path / "back.json").write_text(json.dumps([task]), encoding="utf-8")
    review("import", "back.json")
    assert rows(tmp_path, "select kind, value from human_labels") == [("preference", side)]


def test_csv_when_a_session_says_what_a_spreadsheet_would_run_then_it_is_no_formula(
    review: Callable[..., str], tmp_path: Path
) -> None:
    """What was said begins a line of ours, but the task's wish stands as it is."""
    with closing(sqlite3.connect(tmp_path / "audit.db")) as connection:
        source = json.dumps({"goal": '=HYPERLINK("http://x")', "policy": "@SUM(1)"})
        connection.execute("update sessions set source_json = ?", (source,))
        connection.commit()
    review("export", "-o", "look.csv", "--n", "3")
    with (tmp_path / "look.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            assert row["goal"] == '\'=HYPERLINK("http://x")'
            assert row["policy"] == "'@SUM(1)"
            assert row["first"].startswith("customer: ")


def test_csv_when_it_holds_more_than_ascii_then_excel_is_told_that_it_is_utf8(
    review: Callable[..., str], tmp_path: Path
) -> None:
    review("export", "-o", "plain.csv", "--n", "2")
    assert (tmp_path / "plain.csv").read_bytes().startswith(b"review_id,")
    with closing(sqlite3.connect(tmp_path / "audit.db")) as connection:
        connection.execute("update sessions set source_json = ?", (json.dumps({"goal": "退货"}),))
        connection.commit()
    review("export", "-o", "look.csv", "--n", "2")
    text = (tmp_path / "look.csv").read_bytes().decode()
    assert text.startswith("\ufeffreview_id,goal,")
    filled = text.replace(",,,,,", ",tie,,,,ann")
    assert filled != text
    (tmp_path / "look.csv").write_text(filled, encoding="utf-8", newline="")
    assert review("import", "look.csv").startswith("stored 2 labels of look.csv;")
