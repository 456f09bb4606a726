"""The lease on a run: one at a time, on both databases, and nothing held by who is gone."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from audit.doors.db import open_database
from audit.doors.lease import leased
from audit.words.errors import BadRequest

RUN = "20261130-000000000-abcdefgh"


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_database(database_url, create=True)
    yield engine
    engine.dispose()


def test_lease_when_a_run_is_held_then_nobody_else_gets_it_and_another_run_is_free(engine: Engine) -> None:
    with leased(engine, RUN):
        with pytest.raises(BadRequest, match="another process is at work on run"), leased(engine, RUN):
            raise AssertionError("held twice")
        with leased(engine, "20261130-000000000-ijklmnop"):
            pass
    with leased(engine, RUN):
        pass


def test_lease_when_its_holder_fails_then_it_is_free_again(engine: Engine) -> None:
    with pytest.raises(ZeroDivisionError), leased(engine, RUN):
        raise ZeroDivisionError
    with leased(engine, RUN):
        pass


def test_lease_when_its_holder_is_killed_then_it_is_free_and_no_file_stays(
    sqlite_url: str, tmp_path: Path
) -> None:
    engine = open_database(sqlite_url, create=True)
    program = (
        "import sys, time\n"
        "from audit.doors.db import open_database\n"
        "from audit.doors.lease import leased\n"
        f"with leased(open_database({sqlite_url!r}, create=False), {RUN!r}):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(BadRequest), leased(engine, RUN):
        raise AssertionError("held twice")
    holder.kill()
    holder.communicate()
    with leased(engine, RUN):
        pass
    engine.dispose()
    assert not list(tmp_path.glob("*-run-*"))
