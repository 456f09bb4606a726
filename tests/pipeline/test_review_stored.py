"""People's labels on both databases: what is stored, what the report makes of it, old anchors."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from audit.doors import ask, ask_dpo, ask_review, db
from audit.faces.report_people import people as shown_people
from audit.pipeline.calibrating import calibrate
from audit.pipeline.importing import Wish, import_file
from audit.pipeline.report_review import NOT_HEARD, NOT_REVIEWED
from audit.pipeline.reporting import report
from audit.pipeline.review_export import Exported, export_review
from audit.pipeline.reviewing import Stored, said_by, shown, store_said
from audit.words.errors import BadFile, BadRequest
from audit.words.review import Said

PAIRS = 24


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = db.open_database(database_url, create=True)
    yield engine
    engine.dispose()


def judged(name: str, folder: Path, says: Callable[[int], str], **changes: Any) -> Path:
    """A file of judged pairs: side A answers right where the number is even; what the judge says of each."""
    file = folder / f"{name}.jsonl"
    lines = [
        {
            "pair_id": f"p{number:02}", "task_id": f"t{number % 8}", "trial": number // 8,
            "agent_a": "heron-7", "agent_b": "crane-2", "judge": name,
            "reward_a": 1 - number % 2, "reward_b": number % 2,
            "pref_ab": says(number), "pref_ba": says(number), "prompt": "A number?",
            "response_a": f"{number}, says heron-7", "response_b": f"-{number}", **changes,
        }
        for number in range(PAIRS)
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return file


def truth(number: int) -> str:
    return "B" if number % 2 else "A"


def three_wrong(number: int) -> str:
    return truth(number + (number < 3))


@pytest.fixture
def export(engine: Engine, tmp_path: Path) -> Callable[..., Exported]:
    def of(run_id: str = "latest", n: int = PAIRS, name: str = "look.jsonl") -> Exported:
        return export_review(engine, run_id, tmp_path / name, n, gate=None, seed=0, form=None, again=False)

    return of


def said_of(engine: Engine, run_id: str, who: str, says: Callable[[int], str]) -> Stored:
    """Somebody says of every exported pair what `says` says of its number."""
    with db.reading(engine) as connection:
        found = ask.rows(
            connection,
            "select review_id, shown_first, source_pair_id from review_items "
            "inner join audit_pairs on audit_pairs.pair_id = review_items.pair_id "
            "where review_items.run_id = :run_id order by review_id",
            run_id=run_id,
        )
    words = []
    for row in found:
        side = says(int(row["source_pair_id"][1:]))
        position = side if side not in ("A", "B") else "first" if side == row["shown_first"] else "second"
        words.append(Said(row["review_id"], who, position, None, None))  # type: ignore[arg-type]
    return store_said(engine, words)


def test_labels_when_stored_then_by_side_and_told_back_by_position(
    engine: Engine, tmp_path: Path, export: Callable[..., Exported]
) -> None:
    run_id = import_file(engine, Wish("jsonl", (judged("judge", tmp_path, truth),))).run_id
    assert sum(export().picked.values()) == PAIRS
    with db.reading(engine) as connection:
        run = ask.run_named(connection, run_id)
        items = ask_review.items(connection, run_id)
        seen = list(shown(connection, run, items))
    assert [one.review_id for one in seen] == [item.review_id for item in items]
    for item, one in zip(items, seen, strict=True):
        assert "heron" not in one.first + (one.second or "")
        assert ("says [name]" in one.first) == (item.shown_first == "A")
        assert ("says [name]" in (one.second or "")) == (item.shown_first == "B")
    first, second = items[:2]
    words = [
        Said(first.review_id, "ann", "first", "done", "not done", "a\x00b"),
        Said(second.review_id, "ann", "cannot tell", None, "cannot tell"),
    ]
    assert store_said(engine, words) == Stored(5, 0)
    assert store_said(engine, words) == Stored(0, 5)
    with db.reading(engine) as connection:
        found = said_by(connection, run_id, items, "ann")
        stored = {label.value for label in ask_review.newest_labels(connection, run_id)}
        assert said_by(connection, run_id, items, "bo") == {}
    assert stored == {first.shown_first, "1", "0", "cannot tell"}
    assert [found[one.review_id]._replace(said_at=None) for one in words] == [
        words[0]._replace(note="a␀b"), words[1],
    ]  # fmt: skip


def test_labels_when_one_of_many_is_of_no_item_then_none_is_stored(
    engine: Engine, tmp_path: Path, export: Callable[..., Exported]
) -> None:
    run_id = import_file(engine, Wish("jsonl", (judged("judge", tmp_path, truth),))).run_id
    export()
    with db.reading(engine) as connection:
        item = ask_review.items(connection, run_id)[0]
    words = [Said(item.review_id, "ann", "tie", None, None), Said("v0", "ann", "tie", None, None)]
    with pytest.raises(BadFile, match=r"the labels: review_id 'v0' was never exported"):
        store_said(engine, words)
    with db.reading(engine) as connection:
        assert ask_review.newest_labels(connection, run_id) == []


def test_report_when_people_find_errors_of_the_verifier_then_the_rate_moves_by_their_weight(
    engine: Engine, tmp_path: Path, export: Callable[..., Exported]
) -> None:
    """All 24 labelled: the corrected rate is what people say, 3 of 24 where the verifier had 0."""
    run_id = import_file(engine, Wish("jsonl", (judged("judge", tmp_path, truth),))).run_id
    assert report(engine, run_id)["why"]["review"] == NOT_REVIEWED
    export()
    assert report(engine, run_id)["why"]["review"] == NOT_HEARD
    said_of(engine, run_id, "ann", three_wrong)
    found = report(engine, run_id)["review"]
    assert found["misselected"]["uncorrected"] == 0
    assert found["misselected"]["ppi"]["value"] == pytest.approx(3 / 24)
    assert found["misselected"]["disagree"] == 3
    # The verifier called none misselected, so it knows of no true one: sensitivity 0, specificity 1.
    assert (
        "sensitivity 0.000 + specificity 1.000 is not above 1" in found["misselected"]["why"]["rogan_gladen"]
    )
    assert found["kappa"]["judge_people"]["agreed"] == 21
    assert found["satisfied_failed"]["labels"] == 0

    # Two more people, who are sure: the majority counts.
    said_of(engine, run_id, "bo", truth)
    said_of(engine, run_id, "cy", truth)
    found = report(engine, run_id)["review"]
    assert (found["misselected"]["disagree"], found["conflicts"]) == (0, 3)


def test_report_when_all_errors_are_of_one_task_then_the_same_rate_is_less_sure(
    engine: Engine, tmp_path: Path, export: Callable[..., Exported], capsys: pytest.CaptureFixture[str]
) -> None:
    """8 tasks of 3 pairs; people deny 3 of the 24, one in each of three tasks or all three of one."""
    run_id = import_file(engine, Wish("jsonl", (judged("judge", tmp_path, truth),))).run_id
    export()
    widths = []
    for says in (three_wrong, lambda number: truth(number + (number % 8 == 0))):
        said_of(engine, run_id, "ann", says)
        found = report(engine, run_id)["review"]
        rate, judge = found["misselected"], found["kappa"]["judge_people"]
        assert (rate["clusters"], rate["labels"], judge["clusters"]) == (8, PAIRS, 8)
        assert rate["ppi"]["value"] == pytest.approx(3 / 24)
        assert judge["agreed"] == 21
        widths.append((rate["ppi"]["high"] - rate["ppi"]["low"], judge["high"] - judge["low"]))
    shown_people(report(engine, run_id))
    told = " ".join(capsys.readouterr().out.split())
    assert "only 8 tasks with labels: how much tasks differ is hardly known" in told
    assert widths[1][0] > 1.2 * widths[0][0]
    assert widths[1][1] > 1.2 * widths[0][1]


def test_report_when_no_reward_is_known_then_people_alone_tell_the_rate(
    engine: Engine, tmp_path: Path, export: Callable[..., Exported]
) -> None:
    file = judged("judge", tmp_path, truth, reward_a=None, reward_b=None)
    run_id = import_file(engine, Wish("jsonl", (file,))).run_id
    export()
    said_of(engine, run_id, "ann", three_wrong)
    found = report(engine, run_id)["review"]
    assert (found["of"], found["misselected"]["rows"]) == ("sided", PAIRS)
    assert found["misselected"]["ppi"]["value"] == pytest.approx(3 / 24)
    assert found["misselected"]["rogan_gladen"] is None


def test_calibrate_when_a_judge_changed_then_it_is_measured_on_the_old_anchors(
    engine: Engine, tmp_path: Path, export: Callable[..., Exported]
) -> None:
    old = import_file(engine, Wish("jsonl", (judged("old", tmp_path, three_wrong),))).run_id
    with pytest.raises(BadRequest, match="no person has compared a pair"):
        calibrate(engine, [])
    export(old)
    said_of(engine, old, "ann", truth)
    new = import_file(engine, Wish("jsonl", (judged("new", tmp_path, truth),))).run_id
    found = calibrate(engine, [])
    assert (found["anchors"], found["common"]) == (PAIRS, PAIRS)
    assert [(one["run_id"], one["gate"]) for one in found["judges"]] == [(old, "old"), (new, "new")]
    before, after = found["judges"]
    assert (before["agree"]["k"], after["agree"]["k"]) == (PAIRS - 3, PAIRS)
    assert (before["misselected"]["k"], after["misselected"]["k"]) == (3, 0)
    assert after["kappa"]["value"] == 1
    assert after["against_first"] == {"lost": 0, "won": 3, "mcnemar_p": pytest.approx(0.25)}


def test_calibrate_when_sides_are_turned_or_sessions_went_another_way_then_only_the_same_count(
    engine: Engine, tmp_path: Path, export: Callable[..., Exported]
) -> None:
    old = import_file(engine, Wish("jsonl", (judged("old", tmp_path, truth),))).run_id
    export(old)
    said_of(engine, old, "ann", truth)
    turned = tmp_path / "turned.jsonl"
    lines = []
    for line in (tmp_path / "old.jsonl").read_text(encoding="utf-8").splitlines():
        pair = json.loads(line)
        swapped = {
            **pair, "judge": "turned",
            **{f"{name}_a": pair[f"{name}_b"] for name in ("agent", "reward", "response")},
            **{f"{name}_b": pair[f"{name}_a"] for name in ("agent", "reward", "response")},
            **{name: {"A": "B", "B": "A"}[pair[name]] for name in ("pref_ab", "pref_ba")},
        }  # fmt: skip
        if pair["pair_id"] < "p04":
            swapped["response_a"] += " and more"
        lines.append(json.dumps(swapped))
    turned.write_text("\n".join(lines) + "\n", encoding="utf-8")
    run_id = import_file(engine, Wish("jsonl", (turned,))).run_id
    (judge,) = calibrate(engine, [run_id])["judges"]
    assert (judge["anchors"], judge["changed"], judge["agree"]["k"]) == (PAIRS - 4, 4, PAIRS - 4)


def test_calibrate_when_a_run_has_none_of_the_anchors_then_it_says_so(
    engine: Engine, tmp_path: Path, export: Callable[..., Exported]
) -> None:
    old = import_file(engine, Wish("jsonl", (judged("old", tmp_path, truth),))).run_id
    export(old)
    said_of(engine, old, "ann", truth)
    lines = (tmp_path / "old.jsonl").read_text(encoding="utf-8").splitlines()
    others = {
        "elsewhere": [{**pair, "response_a": "another", "judge": "x"} for pair in map(json.loads, lines)],
        "strange": [{"pair_id": "s1", "label": "A", "pref_ab": "A"}],
    }
    without = []
    for name, pairs in others.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, pairs)) + "\n", encoding="utf-8")
        run_id = import_file(engine, Wish("jsonl", (tmp_path / f"{name}.jsonl",))).run_id
        without.append({"run_id": run_id, "name": name, "changed": PAIRS if name == "elsewhere" else 0})
    found = calibrate(engine, [])
    assert [one["run_id"] for one in found["judges"]] == [old]
    assert found["without"] == without


def test_export_when_the_run_has_sessions_alone_then_single_ones_go_out(
    engine: Engine, tmp_path: Path, export: Callable[..., Exported]
) -> None:
    file = tmp_path / "sessions.jsonl"
    lines = [
        {
            "task_id": f"t{number}", "agent": "heron-7", "success": number % 3 != 0, "satisfaction": 0.9,
            "messages": [
                {"role": "user", "content": "Hi"}, {"role": "assistant", "content": f"Hello {number}"},
            ],
        }
        for number in range(30)
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    run_id = import_file(engine, Wish("sessions", (file,))).run_id
    found = export(run_id, 30, "look.json")
    assert (found.gate, sum(found.picked.values())) == (None, 30)
    config = (tmp_path / "look.json.config.xml").read_text(encoding="utf-8")
    assert "Pairwise" not in config
    assert "second" not in config
    with db.reading(engine) as connection:
        items = ask_review.items(connection, run_id)
        sessions = ask_review.sessions_of(connection, [item.review_id for item in items])
        wrong = connection.execute(
            text("select min(session_id) from sessions where success = 1")
        ).scalar_one()
        found_successes = ask.rows(connection, "select session_id, success from sessions")
        success = {row["session_id"]: row["success"] for row in found_successes}
    assert store_said(
        engine,
        [
            Said(item.review_id, "ann", None, "done" if success[name] and name != wrong else "not done", None)
            for item in items
            for name in sessions[item.review_id][:1]
        ],
    ) == Stored(30, 0)
    told = report(engine, run_id)["review"]
    assert (told["rule_disagrees"], told["overruled"]) == (0, 1)
    rate = told["satisfied_failed"]
    assert (rate["rows"], rate["labels"], rate["disagree"]) == (30, 30, 1)
    assert rate["uncorrected"] == pytest.approx(10 / 30)
    assert rate["ppi"]["value"] == pytest.approx(11 / 30)
    with db.writing(engine) as connection:
        connection.execute(text("update sessions set label_source = 'rule'"))
    told = report(engine, run_id)["review"]
    assert (told["rule_disagrees"], told["overruled"]) == (1, 0)
    with pytest.raises(BadFile, match="is one session: there is nothing to prefer it to"):
        store_said(engine, [Said(items[0].review_id, "ann", "first", None, None)])


def test_export_when_no_transcript_is_stored_then_it_says_so(
    engine: Engine, tmp_path: Path, export: Callable[..., Exported]
) -> None:
    file = judged("judge", tmp_path, truth, response_a=None, response_b=None)
    run_id = import_file(engine, Wish("jsonl", (file,))).run_id
    with pytest.raises(BadRequest, match=f"run {run_id} stores no transcripts"):
        export()
    assert not (tmp_path / "look.jsonl").exists()


def test_set_for_dpo_when_people_cannot_tell_then_they_say_nothing_of_its_rows(
    engine: Engine, tmp_path: Path, export: Callable[..., Exported]
) -> None:
    run_id = import_file(engine, Wish("jsonl", (judged("judge", tmp_path, truth),))).run_id
    export()
    said_of(engine, run_id, "ann", lambda number: "B" if number == 5 else "cannot tell")
    with db.reading(engine) as connection:
        found = ask_dpo.said_of_pairs(connection, run_id, "judge")
    assert list(found.values()) == ["B"]


def test_report_when_another_judge_of_the_run_is_asked_for_then_the_same_people_count(
    engine: Engine, tmp_path: Path, export: Callable[..., Exported]
) -> None:
    """Two judges saw the same sessions; what went out went out under the first."""
    run_id = import_file(engine, Wish("jsonl", (judged("judge", tmp_path, truth),))).run_id
    with db.writing(engine) as connection:
        columns = (
            "run_id, task_id, trial, agent_a, agent_b, session_a, session_b, reward_a, reward_b, gap_bucket"
        )
        connection.execute(
            text(
                f"insert into audit_pairs (pair_id, source_pair_id, gate, judge_pref, outcome, misselected, "
                f"created_at, {columns}) select pair_id || 'x', source_pair_id, 'other', "
                "case judge_pref when 'A' then 'B' else 'A' end, 'misselected', 1, created_at, "
                f"{columns} from audit_pairs"
            )
        )
    export()
    said_of(engine, run_id, "ann", truth)
    for gate, wrong in (("judge", 0), ("other", PAIRS)):
        found = report(engine, run_id, gate)["review"]
        assert (found["misselected"]["labels"], found["misselected"]["uncorrected"]) == (PAIRS, wrong / PAIRS)
        assert found["misselected"]["ppi"]["value"] == pytest.approx(wrong / PAIRS)
