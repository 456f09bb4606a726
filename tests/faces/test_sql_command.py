"""`sql` and `views` print for a person, a spreadsheet and a script."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audit.doors import db
from audit.pipeline.importing import Wish, import_file

# A formula, a negative number and negative text, NULL, bytes, an endless number, a quoted line end.
VALUES = (
    "select '=1+1' as formula, '-2' as text, -2 as number, null as empty, x'00ff' as bytes, "
    "1e999 as endless, 'a,\"b\"' || char(10) || 'c' as quoted"
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with two runs of three pairs each, to be read only."""
    folder = tmp_path_factory.mktemp("asked")
    file = folder / "judged.csv"
    file.write_text(
        "pair_id,agent_a,agent_b,label,pref_ab\np1,a,b,A,A\np2,a,b,B,A\np3,a,b,,A\n", encoding="utf-8"
    )
    engine = db.open_database(f"sqlite:///{folder / 'audit.db'}", create=True)
    for name in ("one", "two"):
        import_file(engine, Wish("csv", (file,), name=name))
    engine.dispose()
    return f"sqlite:///{folder / 'audit.db'}"


def test_sql_when_printed_as_csv_then_formulas_are_escaped_and_nothing_else(
    cli: Callable[..., Any], url: str
) -> None:
    ran = cli("sql", "--csv", VALUES, db=url)

    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == (
        'formula,text,number,empty,bytes,endless,quoted\n\'=1+1,\'-2,-2,,00ff,,"a,""b""\nc"\n'
    )


def test_csv_when_a_field_holds_a_lone_carriage_return_then_no_command_breaks_its_row(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    hostile, reply = "t\r=HYPERLINK(1)", "\r\n=1+1 [[A]]\r"
    row = {"pair_id": "p", "task_id": hostile, "agent_a": "a", "agent_b": "b", "raw_ab": reply}
    (tmp_path / "made.jsonl").write_text(json.dumps(row), encoding="utf-8")
    assert cli("import", "jsonl", tmp_path / "made.jsonl", "--grammar", "mtbench_3way").code == 0
    cli("export", "pairs", "-o", tmp_path / "pairs.csv")
    cli("export", "logs", "-o", tmp_path / "logs.csv")

    def rows(text: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))

    for text in (
        cli("sql", "--csv", "select task_id from audit_pairs").stdout,
        cli("views", "flagged_pairs", "--csv").stdout,
        (tmp_path / "pairs.csv").read_bytes().decode(),
    ):
        # As text, a subprocess's output has its line ends made one.
        assert {found["task_id"].replace("\n", "\r") for found in rows(text)} == {hostile}
    (call,) = rows((tmp_path / "logs.csv").read_bytes().decode())
    assert call["raw_output"] == "'" + reply


def test_sql_when_printed_as_json_then_each_row_is_an_object_with_its_types(
    cli: Callable[..., Any], url: str
) -> None:
    ran = cli("sql", "--json", VALUES, db=url)

    assert json.loads(ran.stdout) == [
        {
            "formula": "=1+1",
            "text": "-2",
            "number": -2,
            "empty": None,
            "bytes": "00ff",
            "endless": None,
            "quoted": 'a,"b"\nc',
        }
    ]
    twice = cli("sql", "--json", "select 1 as a, 2 as a", db=url)
    assert (twice.code, twice.stdout) == (1, "")
    assert twice.stderr == "error: sql: two columns are named 'a', JSON holds one: rename one with `as`\n"
    assert cli("sql", "--csv", "select 1 as a, 2 as a", db=url).stdout == "a,a\n1,2\n"


def test_sql_when_printed_for_a_person_then_a_narrow_answer_is_a_table_and_a_wide_one_is_not_cut(
    cli: Callable[..., Any], url: str
) -> None:
    narrow = cli(
        "sql",
        "select source_pair_id as id, outcome, null as n, 0.00001 as x from audit_pairs limit 2",
        db=url,
    )
    wide = cli("sql", f"select 1 as n, '{'word ' * 30}' as text union all select 2, null order by 1", db=url)

    assert narrow.stdout.splitlines() == [
        "id  outcome      n      x",
        "p1  correct      -  1e-05",
        "p2  misselected  -  1e-05",
        "(2 rows)",
    ]
    assert wide.stdout.splitlines() == [
        "n     1", f"text  {'word ' * 30}", "", "n     2", "text  -", "", "(2 rows)",
    ]  # fmt: skip


def test_sql_when_there_are_many_rows_then_a_table_stops_at_a_thousand_and_says_so(
    cli: Callable[..., Any], url: str
) -> None:
    many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1500) select i from n"
    table, some, whole = (
        cli("sql", many, db=url), cli("sql", many, "--limit", "3", db=url), cli("sql", "--csv", many, db=url),
    )  # fmt: skip

    assert table.stdout.splitlines()[-1] == "(1,000 rows)"
    assert table.stderr == "only the first 1,000 rows are shown: --limit, --csv or --json give more\n"
    assert (some.stdout.split(), some.stderr) == (["i", "1", "2", "3", "(3", "rows)"], "")
    assert (len(whole.stdout.splitlines()), whole.stderr) == (1501, "")


def test_views_when_listed_then_each_says_its_grain_and_when_shown_only_the_wanted_run(
    cli: Callable[..., Any], url: str
) -> None:
    listed = cli("views", "--json", db=url)
    text = cli("views", db=url)
    rows = json.loads(cli("views", "misselection_by_judge", "--json", db=url).stdout)
    latest = json.loads(cli("views", "misselection_by_judge", "--run", "latest", "--json", db=url).stdout)
    unknown = cli("views", "misselection_by_judge", "--run", "x' or 1=1 --", db=url)

    files = {path.stem for path in (Path(__file__).parents[2] / "sql").glob("*.sql")}
    assert json.loads(listed.stdout).keys() == files
    for name, grain in json.loads(listed.stdout).items():
        assert grain.startswith("One row per ")
        assert name in text.stdout
        assert grain in " ".join(text.stdout.split())
    assert len(rows) == 2
    newest = json.loads(cli("runs", "--json", db=url).stdout)[0]
    assert newest["name"] == "two"
    assert latest == [row for row in rows if row["run_id"] == newest["run_id"]]
    assert (unknown.code, unknown.stderr) == (
        1, "error: there is no run \"x' or 1=1 --\": `reward-audit runs` lists them\n",
    )  # fmt: skip


def test_sql_when_a_number_is_huge_then_it_is_told_in_a_few_digits(cli: Callable[..., Any], url: str) -> None:
    shown = cli("sql", "select 1.8e300 as a, -2.5e15 as b, 123456789.25 as c", db=url).stdout

    assert shown.splitlines()[1].split() == ["1.8e+300", "-2.5e+15", "123456789.25"]
