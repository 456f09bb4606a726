"""Migrations are proved from blank, with rows in every table, both ways, and after a failure."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, insert, inspect, text

from audit.doors import db, shipped
from audit.words.errors import BadDatabase
from audit.words.schema import metadata

T = "2026-03-05T17:15:00.000Z"
AFTER_HEAD = f"{int(db.HEAD) + 1:04}"
# One row for each table, the parents first.
ROWS: dict[str, dict[str, Any]] = {
    "audit_runs": {
        "run_id": "r1", "name": "nightly", "kind": "live", "config_json": "{}", "config_hash": "c1",
        "swap_rule": "both_agree", "gap_source": "session", "gap_scope": "run", "bucket_set": "gauge",
        "status": "complete", "created_at": T,
    },
    "gap_buckets": {"bucket_set": "gauge", "label": "[0,..)", "lower": 0.0, "closed": "left", "is_near": 0},
    "prompts": {"prompt_hash": "p1", "role": "judge", "name": "mt_bench", "version": "1", "text": "Which?"},
    "sessions": {
        "session_id": "s1", "run_id": "r1", "agent": "a1", "trial": 0, "reward": 0.1, "created_at": T,
    },
    "audit_pairs": {
        "pair_id": "x1", "run_id": "r1", "gate": "g1", "task_id": "t1", "trial": 0, "session_a": "s1",
        "reward_a": 0.1, "misselected": 1, "created_at": T,
    },
    "judge_logs": {
        "run_id": "r1", "pair_id": "x1", "session_id": "s1", "role": "judge", "attempt": 1,
        "raw_output": "[[A]]", "parse_status": "ok", "created_at": T,
    },
    "provider_batches": {
        "batch_id": "b1", "run_id": "r1", "profile": "judge", "status": "accepted", "count_lines": 1,
        "count_stored": 0, "count_failed": 0, "created_at": T, "updated_at": T,
    },
    "batch_lines": {
        "custom_id": "b1-1", "batch_id": "b1", "pair_id": "x1", "role": "judge", "profile": "judge",
        "presented_order": "AB", "attempt": 1, "prompt_hash": "p1", "state": "open", "request_json": "{}",
    },
    "review_items": {
        "review_id": "v1", "run_id": "r1", "pair_id": "x1", "reason": "near_tie", "weight": 2.5,
        "shown_first": "B", "created_at": T,
    },
    "human_labels": {"pair_id": "x1", "annotator": "me", "kind": "preference", "value": "A", "created_at": T},
}  # fmt: skip


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """A database at the newest revision, with a row in every table."""
    engine = db.open_database(database_url, create=True)
    with db.writing(engine) as connection:
        for table, row in ROWS.items():
            connection.execute(insert(metadata.tables[table]), row)
    yield engine
    engine.dispose()


@pytest.fixture
def scripts(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder of migrations: the shipped ones, then more of them with the given bodies."""

    def make(*bodies: tuple[str, str]) -> Path:
        folder = tmp_path / "migrations"
        shutil.copytree(shipped.shipped("migrations"), folder, ignore=shutil.ignore_patterns("__pycache__"))
        before = db.HEAD
        for upgrade, downgrade in bodies:
            revision = f"{int(before) + 1:04}"
            (folder / "versions" / f"{revision}_next.py").write_text(
                "import sqlalchemy as sa\nfrom alembic import op\n"
                f"revision, down_revision = {revision!r}, {before!r}\n"
                f"def upgrade():\n{_indented(upgrade)}\ndef downgrade():\n{_indented(downgrade)}\n"
            )
            before = revision
        return folder

    return make


def _indented(body: str) -> str:
    return "\n".join(f"    {line.strip()}" for line in body.strip().splitlines())


def everything(engine: Engine) -> dict[str, Any]:
    """All rows of all tables and the columns of all views: what a migration must not lose."""
    inspector = inspect(engine)
    with db.reading(engine) as connection:
        rows = {
            name: sorted(map(tuple, connection.execute(text(f"select * from {name}"))), key=repr)
            for name in inspector.get_table_names()
        }
    views = {name: [c["name"] for c in inspector.get_columns(name)] for name in inspector.get_view_names()}
    return {"rows": rows, "views": views}


def structure(engine: Engine) -> dict[str, Any]:
    """Everything that the database says of its tables, constraints and indexes by name."""
    inspector = inspect(engine)
    return {
        name: {
            "columns": [
                (c["name"], str(c["type"]), c["nullable"], c["default"]) for c in inspector.get_columns(name)
            ],
            "primary key": inspector.get_pk_constraint(name),
            "foreign keys": _by_name(inspector.get_foreign_keys(name)),
            "unique": _by_name(inspector.get_unique_constraints(name)),
            "checks": _by_name(inspector.get_check_constraints(name)),
            "indexes": _by_name(inspector.get_indexes(name)),
        }
        for name in inspector.get_table_names()
        if name != "alembic_version"
    }


def _by_name(found: list[Any]) -> list[str]:
    # A partial index keeps its condition as an object without equality: compare what it prints.
    return sorted(
        str({k: {n: str(o) for n, o in v.items()} if k == "dialect_options" else v for k, v in one.items()})
        for one in found
    )


def version_of(engine: Engine) -> str | None:
    with db.reading(engine) as connection:
        return connection.execute(text("select version_num from alembic_version")).scalar()


def test_head_when_compared_with_the_newest_revision_then_is_the_same() -> None:
    assert ScriptDirectory(shipped.shipped("migrations")).get_current_head() == db.HEAD


def test_rows_when_compared_with_the_tables_then_cover_all_of_them() -> None:
    assert set(ROWS) == set(metadata.tables) - {"view_digest"}


def test_migrated_tables_when_compared_with_the_metadata_then_show_no_difference(engine: Engine) -> None:
    with db.reading(engine) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_migrated_tables_when_made_from_the_metadata_instead_then_have_the_same_constraints_and_indexes(
    engine: Engine,
) -> None:
    migrated = structure(engine)
    db.migrate(engine, "base", down=True)
    with db.writing(engine) as connection:
        metadata.create_all(connection)
    made = structure(engine)

    assert migrated == made
    # The database must have told the names, or the comparison above compares nothing.
    assert "ck_human_labels_one_subject" in str(made["human_labels"]["checks"])
    assert "fk_audit_pairs_session_b_sessions" in str(made["audit_pairs"]["foreign keys"])
    assert "kind = 'import'" in made["audit_runs"]["indexes"][0]


def test_downgrade_when_every_table_has_rows_then_leaves_nothing_and_can_be_upgraded_again(
    engine: Engine,
) -> None:
    before = everything(engine)

    db.migrate(engine, "base", down=True)
    assert everything(engine) == {"rows": {"alembic_version": []}, "views": {}}

    db.migrate(engine)
    after = everything(engine)
    assert after["views"] == before["views"]
    assert set(after["views"]) == set(shipped.view_texts())
    assert {name: rows for name, rows in after["rows"].items() if name in ROWS} == {name: [] for name in ROWS}
    assert after["rows"]["alembic_version"] == [(db.HEAD,)]


def test_next_revision_when_every_table_has_rows_then_keeps_them_up_and_down(
    engine: Engine, scripts: Callable[..., Path]
) -> None:
    before = everything(engine)
    tables = [name for name in ROWS if name != "prompts"]
    folder = scripts(
        (
            "\n".join(f"op.add_column({name!r}, sa.Column('added', sa.Text))" for name in tables),
            "\n".join(f"op.drop_column({name!r}, 'added')" for name in tables),
        )
    )

    db.migrate(engine, scripts=folder)
    up = everything(engine)
    assert version_of(engine) == AFTER_HEAD
    assert up["views"] == before["views"]
    assert up["rows"]["judge_logs"] == [(*row, None) for row in before["rows"]["judge_logs"]]

    db.migrate(engine, db.HEAD, down=True, scripts=folder)
    assert everything(engine) == before


def test_batches_when_they_are_taken_away_and_come_again_then_all_older_rows_stay(engine: Engine) -> None:
    """And so with what people were asked to look at, which came later."""
    before, whole = everything(engine), structure(engine)
    db.migrate(engine, "0001", down=True)
    down = everything(engine)
    later = {"provider_batches", "batch_lines", "review_items"}
    assert before["rows"].keys() - down["rows"].keys() == later
    assert down["rows"]["human_labels"] == before["rows"]["human_labels"] != []
    db.migrate(engine)
    after = everything(engine)
    assert [after["rows"].pop(name) for name in sorted(later)] == [[], [], []]
    for name in later:
        del before["rows"][name]
    assert after == before
    assert structure(engine) == whole


def test_review_items_when_they_are_taken_away_then_batches_and_labels_stay(engine: Engine) -> None:
    before = everything(engine)
    db.migrate(engine, "0002", down=True)
    after = everything(engine)
    assert before["rows"].pop("review_items") != []
    del before["rows"]["alembic_version"], after["rows"]["alembic_version"]
    assert after["rows"] == before["rows"]


BROKEN = {
    "an error in the script": "raise RuntimeError('half way')",
    "an error of the database": "op.execute('insert into nowhere (x) values (1)')",
}


@pytest.mark.parametrize("last", BROKEN.values(), ids=BROKEN.keys())
def test_migration_when_it_fails_half_way_then_everything_is_as_before(
    engine: Engine, scripts: Callable[..., Path], last: str
) -> None:
    before, tables = everything(engine), structure(engine)
    folder = scripts(
        ("op.create_table('whole', sa.Column('x', sa.Integer))", "op.drop_table('whole')"),
        (
            f"""op.create_table('half', sa.Column('x', sa.Integer))
            op.execute('insert into half (x) values (1)')
            op.execute('delete from judge_logs')
            op.add_column('sessions', sa.Column('added', sa.Text))
            {last}""",
            "pass",
        ),
    )

    with pytest.raises(Exception, match=r"half way|nowhere"):
        db.migrate(engine, scripts=folder)

    assert everything(engine) == before
    assert structure(engine) == tables
    assert version_of(engine) == db.HEAD


def test_batch_change_of_a_parent_when_children_cascade_then_keeps_the_children(
    engine: Engine, scripts: Callable[..., Path]
) -> None:
    """Case ST-07: with foreign keys on, rebuilding the parent table deletes every child without an error."""
    folder = scripts(
        (
            """op.execute("create table pairs(id integer primary key, note text)")
            op.execute("create table judgments(id integer primary key, pair_id integer not null "
            "references pairs(id) on delete cascade)")
            op.execute("insert into pairs values (1, 'a'), (2, 'b')")
            op.execute("insert into judgments values (1, 1), (2, 1), (3, 2)")""",
            "op.drop_table('judgments')\nop.drop_table('pairs')",
        ),
        (
            "with op.batch_alter_table('pairs') as batch: batch.alter_column('note', new_column_name='n')",
            "with op.batch_alter_table('pairs') as batch: batch.alter_column('n', new_column_name='note')",
        ),
    )

    def counts() -> list[int]:
        with db.reading(engine) as connection:
            return [
                connection.execute(text(f"select count(*) from {name}")).scalar_one()
                for name in ("pairs", "judgments")
            ]

    db.migrate(engine, scripts=folder)
    assert counts() == [2, 3]
    db.migrate(engine, AFTER_HEAD, down=True, scripts=folder)
    assert counts() == [2, 3]
    assert db.state(_address(engine))["faults"] == []
    with db.writing(engine) as connection:  # foreign keys are on again: the cascade works
        connection.execute(text("delete from pairs where id = 1"))
    assert counts() == [1, 1]


def _address(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def test_migration_when_it_leaves_children_without_a_parent_then_is_rolled_back(
    sqlite_url: str, scripts: Callable[..., Path]
) -> None:
    engine = db.open_database(sqlite_url, create=True)
    with db.writing(engine) as connection:
        for table, row in ROWS.items():
            connection.execute(insert(metadata.tables[table]), row)
    before = everything(engine)
    with pytest.raises(BadDatabase) as caught:
        db.migrate(engine, scripts=scripts(("op.execute('delete from sessions')", "pass")))
    assert str(caught.value) == "migration would break 2 references: rolled back"
    assert everything(engine) == before
    engine.dispose()


def test_migration_when_the_revision_is_unknown_then_says_so(engine: Engine) -> None:
    with pytest.raises(BadDatabase) as caught:
        db.migrate(engine, "7777")
    assert str(caught.value) == f"{db.show_url(engine.url)}: Can't locate revision identified by '7777'"


def test_database_when_newer_than_the_program_then_is_refused_and_left_untouched(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    with db.writing(engine) as connection:
        connection.execute(text("update alembic_version set version_num = '9999'"))
        connection.execute(text("update view_digest set digest = 'newer'"))
    before = everything(engine)
    engine.dispose()
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}

    with pytest.raises(BadDatabase) as caught:
        db.open_database(database_url, create=False)

    assert str(caught.value) == (
        f"{db.show_url(database_url)} was written by a newer reward-audit (its revision 9999, this program "
        f"knows up to {db.HEAD}): upgrade the program; the database was left untouched"
    )
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files
    assert everything(engine) == before


@pytest.fixture
def own_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of view files of an installation that can be changed, as an upgrade of the program does."""
    for folder in ("migrations", "sql"):
        shutil.copytree(shipped.shipped(folder), tmp_path / "installed" / "shipped" / folder)
    monkeypatch.setattr(shipped, "_PACKAGE", tmp_path / "installed")
    return shipped.shipped("sql")


def test_view_when_its_file_changed_then_is_made_anew_without_a_revision(
    own_views: Path, engine: Engine, database_url: str
) -> None:
    before = everything(engine)
    engine.dispose()
    (own_views / "run_progress.sql").write_text(
        "-- One row per run.\nselect run_id, name as title from audit_runs"
    )

    db.open_database(database_url, create=False).dispose()

    after = everything(engine)
    assert after["views"] == {**before["views"], "run_progress": ["run_id", "title"]}
    assert after["rows"]["audit_runs"] == before["rows"]["audit_runs"]
    assert after["rows"]["view_digest"] != before["rows"]["view_digest"]
    assert version_of(engine) == db.HEAD


def test_migrate_when_another_process_did_it_meanwhile_then_does_nothing(engine: Engine) -> None:
    with db.writing(engine) as connection:
        connection.execute(text("drop view run_progress"))
    db.migrate(engine)  # would make the view again if it did anything
    assert "run_progress" not in inspect(engine).get_view_names()


def test_view_when_its_file_is_broken_then_nothing_is_changed(
    own_views: Path, engine: Engine, database_url: str
) -> None:
    before = everything(engine)
    engine.dispose()
    (own_views / "run_progress.sql").write_text("-- One row per run.\nselect from from audit_runs")

    with pytest.raises(BadDatabase, match=r"cannot be opened: .*syntax error"):
        db.open_database(database_url, create=False)

    assert everything(engine) == before


def test_views_of_someone_else_when_ours_are_made_anew_then_are_put_back(
    engine: Engine, database_url: str
) -> None:
    theirs = {
        '"My runs"': "select run_id, ':x' as colon, '5%' as per_cent from audit_runs",
        "nested": 'select "My runs".run_id, run_progress.pairs from "My runs" '
        'inner join run_progress on run_progress.run_id = "My runs".run_id',
    }
    with db.writing(engine) as connection:
        for name, body in theirs.items():
            connection.execute(text(f"create view {name} as {body}".replace(":x", "\\:x")))
        connection.execute(text("update view_digest set digest = 'older'"))
    before = everything(engine)["views"]
    assert {"My runs", "nested"} < set(before)
    engine.dispose()

    db.open_database(database_url, create=False).dispose()

    assert everything(engine)["views"] == before
    with db.reading(engine) as connection:
        assert connection.execute(text('select * from "My runs"')).all() == [("r1", ":x", "5%")]
        assert connection.execute(text("select * from nested")).all() == [("r1", 1)]


def test_view_in_another_schema_when_it_reads_ours_then_the_upgrade_is_refused_and_nothing_lost(
    postgres_url: str,
) -> None:
    engine = db.open_database(postgres_url, create=True)
    with db.writing(engine) as connection:
        connection.execute(text("create schema elsewhere"))
        connection.execute(text("create view elsewhere.theirs as select run_id from run_progress"))
        connection.execute(text("update view_digest set digest = 'older'"))
    before = everything(engine)

    with pytest.raises(BadDatabase) as caught:
        db.open_database(postgres_url, create=False)

    assert str(caught.value) == (
        f"{db.show_url(postgres_url)} cannot be opened: "
        "cannot drop view run_progress because other objects depend on it"
    )
    assert everything(engine) == before
    engine.dispose()
