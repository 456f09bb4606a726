"""A user's own functions get a limited time: in the open, as a tool, and as a check."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from audit.doors.limited import Overrun, give_up, take_up, within
from audit.doors.world import FinalWorld, World
from audit.verbs.verify import verify
from audit.words.tasks import Check, Domain, Task, Tool

RELEASE = threading.Event()


def hang(*_: object) -> bool:
    return RELEASE.wait(30)


def leave(*_: object) -> None:
    raise SystemExit(3)


def late(*_: object) -> None:
    raise TimeoutError("the shop's own time limit")


def task(tool: str = "test_limited:hang") -> Task:
    tools = (Tool("wait", "Waits.", {"type": "object", "properties": {}}, function=tool),)
    domain = Domain("d", "", "create table t (x); insert into t values (1);", tools)
    return Task("t", "query", domain, "goal", (), ())


def test_within_when_a_function_is_quick_then_gives_its_value_or_its_error() -> None:
    assert within(5, "f", max, 1, 2) == 2
    with pytest.raises(ZeroDivisionError):
        within(5, "f", divmod, 1, 0)
    with pytest.raises(TimeoutError, match="own time limit") as caught:
        within(5, "f", late)
    assert not isinstance(caught.value, Overrun)


def test_within_when_a_function_exits_then_only_the_function_ends() -> None:
    with pytest.raises(RuntimeError, match="m:leave wanted to exit: 3"):
        within(5, "m:leave", leave)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, BaseException])
def test_within_when_a_function_raises_what_ends_programs_then_it_is_an_error_of_its_own(
    kind: type[BaseException],
) -> None:
    def work() -> None:
        raise kind("now")

    with pytest.raises(RuntimeError, match=rf"^m:work raised {kind.__name__}: now$"):
        within(5, "m:work", work)


def test_within_when_a_function_never_ends_then_the_caller_goes_on() -> None:
    began = time.monotonic()
    with pytest.raises(Overrun, match=r"m:hang took longer than 0\.1 s"):
        within(0.1, "m:hang", hang)
    assert time.monotonic() - began < 5


def test_give_up_when_a_function_is_at_work_then_its_caller_goes_on_at_once_and_its_value_is_dropped(
    request: pytest.FixtureRequest,
) -> None:
    request.addfinalizer(take_up)
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        release.wait(30)
        ended.set()
        return "late"

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(within, 30, "m:slow", slow)
        assert begun.wait(10)
        give_up()
        with pytest.raises(Overrun, match="the program ends"):
            waiting.result(timeout=5)
    release.set()
    assert ended.wait(10)
    with pytest.raises(Overrun, match="the program ends"):
        within(5, "f", max, 1, 2)
    take_up()
    assert within(5, "f", max, 1, 2) == 2


def test_tool_when_its_function_never_ends_then_the_session_is_told_so() -> None:
    with World(task(), function_seconds=0.1) as world, pytest.raises(Overrun, match="test_limited:hang"):
        world.call("wait", "{}")


def test_tool_when_its_function_exits_then_the_agent_gets_an_error() -> None:
    with World(task("test_limited:leave")) as world:
        assert "wanted to exit" in world.call("wait", "{}")


def test_check_when_its_function_never_ends_then_the_session_is_unknown_not_failed() -> None:
    check = Check("python", "c", {"python": "test_limited:hang"})
    with World(task()) as world:
        state = world.snapshot()
    with FinalWorld(task(), state, function_seconds=0.1) as evidence:
        found = verify([check], evidence)
    assert (found.reward, found.success, found.fault) == (None, None, "verifier")
    assert "took longer than 0.1 s" in found.checks[0].evidence
