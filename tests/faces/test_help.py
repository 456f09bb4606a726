"""`--help` teaches, and costs nothing: it loads no library that a question to the database needs."""

import json
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from audit.faces.cli import COMMANDS, cli

HEAVY = (
    "pandas",
    "openai",
    "sqlalchemy",
    "alembic",
    "scipy",
    "rich",
    "orjson",
    "numpy",
    "pyarrow",
    "matplotlib",
    "jinja2",
    "datasette",
    "starlette",
    "uvicorn",
)


def commands(group: click.Group = cli, *before: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield (*before, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)


ALL = dict(commands())


def test_commands_when_listed_then_the_ones_of_this_version_are_there() -> None:
    assert [" ".join(path) for path in ALL] == [
        "init",
        "doctor",
        "run",
        "simulate",
        "judge",
        "batch",
        "batch drop",
        "batch export",
        "batch ingest",
        "batch status",
        "verify",
        "import",
        "score",
        "report",
        "compare",
        "gate",
        "plan",
        "runs",
        "show",
        "sql",
        "views",
        "browse",
        "export",
        "review",
        "review anchors",
        "review calibrate",
        "review export",
        "review import",
        "review serve",
        "review status",
        "prompts",
        "prune",
        "reproduce",
        "db",
        "db backup",
        "db check",
        "db copy",
        "db upgrade",
    ]


@pytest.mark.parametrize("path", [(), *ALL], ids=" ".join)
def test_help_when_asked_of_a_command_then_it_teaches_its_arguments_and_options(
    path: tuple[str, ...],
) -> None:
    command = ALL.get(path, cli)
    ran = CliRunner().invoke(cli, [*path, "--help"])

    assert ran.exit_code == 0
    assert ran.output == CliRunner().invoke(cli, [*path, "-h"]).output
    first_sentence = " ".join((command.help or "no help").split("\n\n")[0].split())
    assert first_sentence in " ".join(ran.output.split())
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path} {parameter.name} says nothing of itself"
            assert parameter.opts[-1] in ran.output
    for shared in ("--db", "--json", "--verbose"):
        assert shared in ran.output
    assert "..." not in ran.output.partition("\nCommands:")[2]
    assert max(len(line) for line in ran.output.splitlines()) <= 100


def test_help_lines_when_listed_without_loading_the_commands_then_they_are_the_commands_own() -> None:
    context = click.Context(cli)
    own = {}
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        own[name] = (command.help or "").strip().split("\n")[0]

    assert own == {name: line for name, (_, line) in COMMANDS.items()}


@pytest.mark.parametrize(
    "args", [["--help"], ["import", "--help"], ["--version"], ["sql", "--help"]], ids=" ".join
)
def test_help_when_shown_then_no_heavy_library_is_loaded(args: list[str]) -> None:
    code = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
        "from audit.__main__ import main\n"
        f"sys.argv = ['reward-audit', *{args!r}]\n"
        "main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)

    assert ran.returncode == 0
    loaded = {module.partition(".")[0] for module in json.loads(ran.stderr)}
    assert "click" in loaded
    assert loaded.isdisjoint(HEAVY), sorted(loaded & set(HEAVY))
