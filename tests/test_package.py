"""The built wheel works away from the checkout: migrations, views and the example are inside it."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as a release is; where the build tool is installed, without downloading it once more."""
    folder = tmp_path_factory.mktemp("wheel")
    isolation = ["--no-isolation"] if find_spec("hatchling") else []
    ran = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", *isolation, "--outdir", folder, CHECKOUT],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_when_opened_then_what_the_program_needs_is_inside_and_no_test(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    needed = {
        f"audit/shipped/{folder}/{path.relative_to(CHECKOUT / folder).as_posix()}"
        for folder in ("migrations", "sql", "data")
        for path in (CHECKOUT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"audit/shipped/migrations/env.py", "audit/shipped/data/judged_pairs.jsonl"} < needed
    assert needed <= names
    # Prompts too, and templates, scripts and styles of the pages.
    held = {
        path.relative_to(CHECKOUT).as_posix()
        for path in (CHECKOUT / "audit").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {
        "audit/faces/page.py",
        "audit/faces/page_templates/page.html.jinja",
        "audit/faces/browse_files/browse.yaml",
        "audit/faces/browse_files/static/browse.css",
        "audit/faces/browse_files/templates/row.html",
        "audit/faces/review_files/static/review.js",
        "audit/faces/review_files/templates/item.html.jinja",
    } < held
    assert held <= names
    assert {name.split("/")[0] for name in names} == {"audit", "reward_audit-0.1.0.dist-info"}


def test_wheel_when_installed_elsewhere_then_it_imports_and_reports_without_the_checkout(
    wheel: Path, tmp_path: Path
) -> None:
    # Its own environment; the libraries come from the one that runs the tests, so that nothing is downloaded.
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=False)
    scripts = environment / "bin"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    ours = tmp_path / "ours"
    ours.mkdir()
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        # Without what makes the checkout importable.
        if "reward_audit" not in installed.name and not installed.name.endswith(".pth"):
            (ours / installed.name).symlink_to(installed)
    (site / "libraries.pth").write_text(f"{ours}\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def run(*args: str | Path) -> str:
        inherited = {
            name: value for name, value in os.environ.items() if name.startswith(("PATH", "LANG", "LC_"))
        }
        ran = subprocess.run(
            [scripts / "python", *args],
            cwd=elsewhere,
            env=inherited,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, ""), ran
        return ran.stdout

    where = run("-c", "import audit, sys; print(audit.__file__); print(*sys.path, sep='\\n')").splitlines()
    assert where[0] == str(site / "audit" / "__init__.py")
    assert not [path for path in where[1:] if Path(path) == CHECKOUT]

    example = site / "audit" / "shipped" / "data" / "judged_pairs.jsonl"
    entry = "import sys; from audit.__main__ import main; sys.exit(main())"
    run("-c", entry, "import", "jsonl", example)
    report = json.loads(run("-m", "audit", "report", "--json"))

    assert report["pairs"]["total"] == 540
    assert report["near_vs_wide"]["near"]["misselected"] > 0
    run("-m", "audit", "report", "--html", "page.html")
    assert "<svg" in (elsewhere / "page.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in elsewhere.iterdir()) == ["page.html", "reward_audit.db"]


def test_package_when_described_then_the_command_of_the_readme_is_its_entry_point(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        entry = archive.read("reward_audit-0.1.0.dist-info/entry_points.txt").decode()
        metadata = archive.read("reward_audit-0.1.0.dist-info/METADATA").decode()

    assert entry == "[console_scripts]\nreward-audit = audit.__main__:main\n"
    assert "Requires-Python: >=3.11\n" in metadata
    assert "License-Expression: Apache-2.0\n" in metadata
    # What only the tests or an extra need is not installed with the tool.
    required = [
        line
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist: ") and "extra ==" not in line
    ]
    assert sorted(line.removeprefix("Requires-Dist: ").split(">")[0] for line in required) == [
        "aiolimiter", "alembic", "click", "jinja2", "json-repair", "jsonschema", "openai[aiohttp]", "orjson",
        "pydantic", "python-dotenv", "pyyaml", "rich", "scipy", "sqlalchemy",
    ]  # fmt: skip
