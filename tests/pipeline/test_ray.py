"""Runs on a real Ray cluster of two processes: the rows of the local engine, whatever is killed meanwhile."""

import asyncio
import inspect
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from server import ChatServer, Say

from audit.doors.cluster import Cluster
from audit.doors.config import load_config
from audit.offline.serve import serve
from audit.pipeline.budget import UsedUp
from audit.pipeline.ray_limits import Limits, SharedBudget, held_limits
from audit.pipeline.workplace import endpoint_of
from audit.verbs.spending import Spent

pytest.importorskip("ray", reason="needs the extra ray")

KEY = "kept-secret-Zq83Lm20Xw"
ON_RAY = ("--engine", "ray", "--workers", "2")
QUERIES = {
    "sessions": "select task_id, agent, trial, transcript_json, end_reason, reward, success, checks_json, "
    "satisfaction, fault, prompt_tokens, total_tokens, final_state_json from sessions order by 1, 2, 3",
    "pairs": "select task_id, agent_a, agent_b, trial, reward_a, reward_b, pref_ab, pref_ba, judge_score_a, "
    "judge_score_b, reward_gap, gap_bucket, outcome, misselected, total_tokens from audit_pairs "
    "order by 1, 2, 3, 4",
    "calls": "select role, profile, model, presented_order, attempt, prompt_hash, request_json, raw_output, "
    "parsed_json, choice, preference, parse_status, total_tokens, seed from judge_logs "
    "order by 1, 2, 4, 5, 7, 8",
}


def rows(file: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def all_rows(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Everything but ids and times."""
    return {name: rows(file, query) for name, query in QUERIES.items()}


def synthetic(body: dict[str, Any]) -> Say:
    return Say(body=serve(body), delay=0.02)


@pytest.fixture
def ray_folder() -> Iterator[Path]:
    """Where Ray's own files are; its sockets' names must stay short."""
    folder = Path(tempfile.mkdtemp(prefix="ra", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


class Command:
    """The real command in a process of its own, with a key in its environment."""

    def __init__(self, folder: Path, ray_folder: Path) -> None:
        self.folder = folder
        self.ray_folder = ray_folder
        self.started: list[subprocess.Popen[str]] = []
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("REWARD_AUDIT")}
        self.env |= {
            "GATEWAY_KEY": KEY,
            "RAY_TMPDIR": str(ray_folder),
            "MARK": str(ray_folder),
            "HOME": str(ray_folder),
        }

    def start(self, *args: str | Path, db: str = "audit.db") -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "audit", "--db", f"sqlite:///{self.folder / db}", *map(str, args)]
        process = subprocess.Popen(
            command,
            env=self.env,
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def run(self, *args: str | Path, db: str = "audit.db") -> "subprocess.CompletedProcess[str]":
        process = self.start(*args, db=db)
        out, err = process.communicate(timeout=180)
        return subprocess.CompletedProcess(args, process.returncode, out, err)

    def workers(self, title: bytes = b"ray::Worker") -> list[int]:
        """The processes of this test's cluster that hold a worker, or what else has this title."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                is_ours = f"MARK={self.ray_folder}".encode() in (folder / "environ").read_bytes()
                if is_ours and (folder / "cmdline").read_bytes().startswith(title):
                    found.append(int(folder.name))
            except OSError:  # it ended, or is not ours to look at
                continue
        return found


@pytest.fixture
def command(tmp_path: Path, ray_folder: Path) -> Iterator[Command]:
    started = Command(tmp_path, ray_folder)
    yield started
    for process in started.started:
        process.kill()
        process.communicate()


@pytest.fixture
def keyed(small: Callable[..., Path]) -> Callable[..., Path]:
    """Writes the small config, its models behind the server, with a key each and what else is given."""

    def write(server: ChatServer, profile: dict[str, Any] | None = None, **changes: Any) -> Path:
        path = small(server, **changes)
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        more = {"api_key_env": "GATEWAY_KEY"} | (profile or {})
        config["profiles"] = [one | more for one in config["profiles"]]
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path

    return write


def wait_for(is_so: Callable[[], bool], seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends, "it did not come to that"
        time.sleep(0.01)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def stored_calls(folder: Path) -> int:
    """How many calls the run under way has stored."""
    try:
        return int(rows(folder / "audit.db", "select count(*) from judge_logs")[0][0])
    except sqlite3.OperationalError:  # not there yet
        return 0


def files_with(folder: Path, text: bytes) -> list[Path]:
    """The files in the folder, and in those below it, that hold the text."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in files if text in path.read_bytes()]


def test_ray_when_two_workers_run_all_stages_then_the_rows_are_those_of_the_local_engine(
    command: Command,
    keyed: Callable[..., Path],
    gateway: Callable[..., ChatServer],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    server = gateway(synthetic)
    config = keyed(server, profile={"extra": {"top_p": 0.5}})
    # In no environment but that of the workers, and in a file that is not theirs.
    env_file = tmp_path_factory.mktemp("elsewhere") / ".env"
    env_file.write_text(f"GATEWAY_KEY={command.env.pop('GATEWAY_KEY')}\n", encoding="utf-8")
    local = command.run("--json", "run", "-c", config, "--env-file", env_file, "-j", "8", db="local.db")
    assert local.returncode == 0, local.stderr
    asked = server.requests

    done = command.run("--json", "run", "-c", config, "--env-file", env_file, "-j", "8", *ON_RAY)

    assert done.returncode == 0, done.stderr
    assert all_rows(tmp_path / "audit.db") == all_rows(tmp_path / "local.db")
    assert server.requests == 2 * asked
    known = ("calls", "errors", "tokens", "calls_with_unknown_tokens", "run_tokens", "problems", "status")
    told, expected = json.loads(done.stdout), json.loads(local.stdout)
    assert {name: told[name] for name in known} == {name: expected[name] for name in known}
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    # The key came with the environment of the workers, and stands in no file of Ray's or ours.
    assert list(command.ray_folder.rglob("gcs_server.out"))
    assert files_with(command.ray_folder, KEY.encode()) == []
    assert files_with(tmp_path, KEY.encode()) == []
    assert KEY not in done.stdout + done.stderr
    assert command.workers() == []

    again = command.run("--json", "run", "-c", config, "--env-file", env_file, "--resume", "latest", *ON_RAY)
    assert json.loads(again.stdout)["calls"] == 0
    assert server.requests == 2 * asked


def test_ray_when_workers_and_driver_are_killed_then_only_what_was_under_way_is_asked_again(
    command: Command, keyed: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    server = gateway(synthetic)
    config = keyed(server)
    local = command.run("run", "-c", config, "-j", "8", db="local.db")
    assert local.returncode == 0, local.stderr
    whole = server.requests
    jobs = 6

    process = command.start("run", "-c", config, "-j", jobs, *ON_RAY)
    wait_for(lambda: stored_calls(tmp_path) > 0 and len(command.workers()) == 2)
    os.kill(command.workers()[0], signal.SIGKILL)
    wait_for(lambda: stored_calls(tmp_path) > whole / 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_for(lambda: command.workers() == [])
    stored = stored_calls(tmp_path)
    assert stored < whole
    before = server.requests

    done = command.run("--json", "run", "-c", config, "-j", jobs, *ON_RAY)

    assert done.returncode == 0, done.stderr
    assert all_rows(tmp_path / "audit.db") == all_rows(tmp_path / "local.db")
    # What the first driver had stored is not asked again by the second.
    assert server.requests - before == whole - stored
    # Lost were at most the units under way, twice: at the worker's end and at the driver's.
    units = "select count(*) from judge_logs group by coalesce(session_id, pair_id), session_id is null"
    longest = max(count for (count,) in rows(tmp_path / "audit.db", units))
    assert before - whole - stored <= 2 * jobs * longest


def test_ray_when_a_worker_is_lost_then_the_run_ends_well_and_says_so(
    command: Command, keyed: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    server = gateway(synthetic)
    # Of those that a lost worker had under way, most were waiting for their turn.
    config = keyed(server, profile={"concurrency": 1})
    local = command.run("run", "-c", config, "-j", "8", db="local.db")
    assert local.returncode == 0, local.stderr
    process = command.start("run", "-c", config, "-j", "8", *ON_RAY)
    wait_for(lambda: command.workers() != [])
    os.kill(command.workers()[0], signal.SIGKILL)  # as it starts
    wait_for(lambda: stored_calls(tmp_path) > 0 and len(command.workers()) == 2)
    os.kill(command.workers()[0], signal.SIGKILL)
    _, said = process.communicate(timeout=120)

    assert process.returncode == 0, said
    assert len(re.findall("note: worker [1-3] was lost, and what it was at is asked again", said)) == 2
    assert all_rows(tmp_path / "audit.db") == all_rows(tmp_path / "local.db")


def test_ray_when_interrupted_then_what_was_done_is_stored_and_no_process_is_left(
    command: Command, keyed: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    server = gateway(synthetic)
    config = keyed(server)
    for sent in (signal.SIGINT, signal.SIGTERM):
        before = stored_calls(tmp_path)
        process = command.start("run", "-c", config, "-j", "4", *ON_RAY)
        wait_for(lambda before=before: stored_calls(tmp_path) > before)  # type: ignore[misc]
        if sent == signal.SIGINT:  # as a terminal sends it: to all that the command started too
            os.killpg(process.pid, sent)
        else:
            process.send_signal(sent)
        _, said = process.communicate(timeout=60)

        assert process.returncode == 130, said
        assert said.endswith("stopped: what was done is stored; the same command goes on from there\n")
        assert "Traceback" not in said
        wait_for(lambda: command.workers() == [])
        assert rows(tmp_path / "audit.db", "select status from audit_runs") == [("stopped",)]


def test_ray_when_rates_and_a_budget_are_given_then_they_hold_over_both_workers(
    command: Command, keyed: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    server = gateway(lambda body: Say(body=serve(body), delay=0.05))
    a_minute, jobs = 600, 8
    config = keyed(server, profile={"rpm": a_minute}, agents=["agent-95", "agent-80"])
    began = time.monotonic()
    first = command.run("--json", "simulate", "-c", config, "-j", jobs, *ON_RAY)
    assert first.returncode == 0, first.stderr
    assert time.monotonic() - began < 60
    by_model: dict[str, list[float]] = {}
    for body, at in zip(server.bodies, server.times, strict=True):
        by_model.setdefault(body["model"], []).append(at)
    busiest = max(by_model.values(), key=len)
    assert len(busiest) > 15
    # A second's worth may come at once, and then no faster than the rate.
    for start in busiest:
        assert sum(start <= at < start + 1 for at in busiest) <= 2 * a_minute / 60 + 1

    server.max_under_way = 0
    config = keyed(server, profile={"concurrency": 1}, agents=["agent-95", "agent-80"])
    judged = command.run("judge", "-c", config, "-j", jobs, *ON_RAY)
    assert judged.returncode == 0, judged.stderr
    assert server.max_under_way == 1

    used = rows(tmp_path / "audit.db", "select sum(total_tokens) from judge_logs")[0][0]
    largest = rows(tmp_path / "audit.db", "select max(total_tokens) from judge_logs")[0][0]
    config = keyed(server, agents=["agent-95", "agent-80"])
    most = int(used * 0.6)
    stopped = command.run("run", "-c", config, "-j", jobs, "--max-tokens", most, *ON_RAY, db="other.db")
    assert stopped.returncode == 4, stopped.stderr
    assert "the budget of" in stopped.stderr
    spent = rows(tmp_path / "other.db", "select sum(total_tokens) from judge_logs")[0][0]
    assert most * 0.5 < spent <= most + jobs * largest
    finished = command.run("run", "-c", config, "-j", jobs, *ON_RAY, db="other.db")
    assert finished.returncode == 0, finished.stderr


def test_ray_when_tasks_have_functions_of_the_user_then_workers_find_them(
    command: Command, small: Callable[..., Path], few_tasks: str, tmp_path: Path
) -> None:
    """In the tasks' own folder, which is on the path of the driver alone."""
    tasks = Path(few_tasks) / "tasks.yaml"
    (Path(few_tasks) / "mine.py").write_text("def is_fine(evidence):\n    return True\n", encoding="utf-8")
    listed = yaml.safe_load(tasks.read_text(encoding="utf-8"))
    for task in listed:
        task["checks"].append({"name": "mine", "python": "mine:is_fine"})
    tasks.write_text(yaml.safe_dump(listed, allow_unicode=True), encoding="utf-8")
    config = small()
    local = command.run("run", "-c", config, db="local.db")
    assert local.returncode == 0, local.stderr

    done = command.run("run", "-c", config, *ON_RAY)

    assert done.returncode == 0, done.stderr
    assert all_rows(tmp_path / "audit.db") == all_rows(tmp_path / "local.db")
    assert rows(tmp_path / "audit.db", "select count(*) from sessions where checks_json like '%mine%'") != [
        (0,)
    ]


def test_ray_when_a_unit_ends_every_worker_then_the_run_stops_and_names_it(
    command: Command, small: Callable[..., Path], few_tasks: str, tmp_path: Path
) -> None:
    ending = "import os\n\ndef ends(evidence):\n    os._exit(7)\n"
    (tmp_path / "mine.py").write_text(ending, encoding="utf-8")
    tasks = Path(few_tasks) / "tasks.yaml"
    listed = yaml.safe_load(tasks.read_text(encoding="utf-8"))
    listed[1]["checks"].append({"name": "mine", "python": "mine:ends"})
    tasks.write_text(yaml.safe_dump(listed, allow_unicode=True), encoding="utf-8")

    done = command.run("run", "-c", small(agents=["agent-95", "agent-80"]), *ON_RAY)

    assert done.returncode == 1, done.stderr
    assert "3 workers ended one after the other at the same check" in done.stderr
    assert "Traceback" not in done.stderr
    assert rows(tmp_path / "audit.db", "select status from audit_runs") == [("stopped",)]
    assert rows(tmp_path / "audit.db", "select count(*) from audit_pairs where judged_at is null") == [(0,)]


def test_ray_when_the_process_of_the_limits_is_lost_then_the_run_stops_and_can_go_on(
    command: Command, keyed: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    server = gateway(synthetic)
    config = keyed(server, profile={"rpm": 60_000}, agents=["agent-95", "agent-80"])
    process = command.start("run", "-c", config, "-j", "4", *ON_RAY)
    wait_for(lambda: stored_calls(tmp_path) > 0 and len(command.workers(b"ray::Limits")) == 1)
    os.kill(command.workers(b"ray::Limits")[0], signal.SIGKILL)
    _, said = process.communicate(timeout=120)

    assert process.returncode == 1, said
    error = next(line for line in said.splitlines() if line.startswith("error: "))
    assert error.endswith("; the same command goes on")
    assert "Traceback" not in said
    done = command.run("run", "-c", config, "-j", "4", *ON_RAY)
    assert done.returncode == 0, done.stderr


def test_ray_when_a_cluster_runs_already_then_its_nodes_need_the_key_and_it_goes_on_running(
    command: Command, keyed: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    server = gateway(synthetic)
    config = keyed(server, agents=["agent-95", "agent-80"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    ray = [str(Path(sys.executable).with_name("ray"))]
    command.env["RAY_AUTH_MODE"] = "token"
    subprocess.run([*ray, "get-auth-token", "--generate"], env=command.env, check=True, capture_output=True)
    start = [
        *ray,
        "start",
        "--head",
        f"--port={port}",
        "--num-cpus=2",
        "--include-dashboard=false",
        "--block",
    ]
    at = ("--engine", "ray", "--ray-address", f"127.0.0.1:{port}")
    for key, code in (("", 1), (KEY, 0)):
        env = command.env | {"GATEWAY_KEY": key}
        head = subprocess.Popen(start, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: is_open(port))
            if key:
                del command.env["RAY_AUTH_MODE"]
                began = time.monotonic()
                refused = command.run("run", "-c", config, "-j", "4", *at)
                assert refused.returncode == 1
                assert refused.stderr.count("Authentication token is missing") <= 3
                assert "; export RAY_AUTH_MODE=token where the cluster wants its token" in refused.stderr
                assert time.monotonic() - began < 20
                command.env["RAY_AUTH_MODE"] = "token"
            done = command.run("run", "-c", config, "-j", "4", *at)
            assert done.returncode == code, done.stderr
            assert head.poll() is None
        finally:
            head.terminate()
            head.wait()
        if not key:
            assert "GATEWAY_KEY, which is not set" in done.stderr
            assert "before Ray is started there" in done.stderr
            assert server.requests == 0
    assert rows(tmp_path / "audit.db", "select status from audit_runs") == [("complete",)]
    assert files_with(command.ray_folder, KEY.encode()) == []


def test_limits_when_a_worker_is_lost_then_no_slot_stays_with_it(small: Callable[..., Path]) -> None:
    config = load_config(small())[0]
    endpoint = endpoint_of(config.profile("judge").model_copy(update={"concurrency": 1}))

    async def scene() -> None:
        limits = Limits(config, {}, 8)
        lost, other = 1, 2
        await limits.enter(lost, endpoint, 100, is_retry=False)
        waiting = [asyncio.create_task(limits.enter(lost, endpoint, 100, is_retry=False)) for _ in range(3)]
        others = asyncio.create_task(limits.enter(other, endpoint, 100, is_retry=False))
        await asyncio.sleep(0)
        assert not others.done()

        limits.forget(lost)
        await asyncio.wait_for(asyncio.gather(others, *waiting), 5)
        await limits.enter(lost, endpoint, 100, is_retry=False)  # sent before its end, and heard after
        limits.leave(lost, endpoint.name)

        last = asyncio.create_task(limits.enter(other, endpoint, 100, is_retry=False))
        await asyncio.sleep(0.05)
        assert not last.done()
        limits.leave(other, endpoint.name)
        await asyncio.wait_for(last, 5)

    asyncio.run(scene())


def test_limits_when_one_role_has_used_its_budget_then_another_may_still_call(
    small: Callable[..., Path],
) -> None:
    config = load_config(small(budget={"roles": {"agent": {"max_tokens": 100}}}))[0]
    limits = Limits(config, {}, 8)

    class Here:
        """The limits in this process."""

        async def ask(self, method: str, *args: Any) -> Any:
            found = getattr(limits, method)(*args)
            return await found if inspect.isawaitable(found) else found

    async def scene() -> None:
        shared = SharedBudget(Here())  # type: ignore[arg-type]
        await shared.refuse_call("agent")
        await shared.spend("agent", Spent(100))
        for _ in range(2):
            with pytest.raises(UsedUp):
                await shared.refuse_call("agent")
            await shared.refuse_call("simulated_user")
        assert shared.reached == ("agent", "tokens")

    asyncio.run(scene())


def test_limits_when_thousands_wait_for_a_slot_then_who_has_it_can_leave(
    small: Callable[..., Path], ray_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config(small())[0]
    endpoint = endpoint_of(config.profile("judge").model_copy(update={"concurrency": 1}))
    for name in ("RAY_TMPDIR", "HOME"):
        monkeypatch.setenv(name, str(ray_folder))
    many = 1200

    async def scene(cluster: Cluster) -> None:
        limits = held_limits(cluster, config, {}, many)
        held = [asyncio.ensure_future(limits.ask("enter", 1, endpoint, 100, False)) for _ in range(many)]
        await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED)
        for _ in range(2):
            await asyncio.wait_for(limits.ask("leave", 1, endpoint.name), 30)
        limits.end()
        await asyncio.gather(*held, return_exceptions=True)

    with Cluster(None, 1, {}) as cluster:
        asyncio.run(scene(cluster))


@pytest.mark.parametrize(
    ("profile", "args", "says"),
    [
        ({"api_key": KEY, "api_key_env": None}, (), "put it into a variable and name that in api_key_env"),
        ({"extra": {"api_key": KEY}}, (), "has a key in base_url or extra"),
        ({"api_key_env": "NOT_THERE"}, (), "NOT_THERE, which is not set"),
        ({}, ("--ray-address", "127.0.0.1:1"), "no Ray cluster at 127.0.0.1:1"),
    ],
)
def test_ray_when_it_cannot_be_then_one_line_says_so_and_nothing_is_asked(
    command: Command,
    keyed: Callable[..., Path],
    gateway: Callable[..., ChatServer],
    profile: dict[str, Any],
    args: tuple[str, ...],
    says: str,
    tmp_path: Path,
) -> None:
    server = gateway(synthetic)
    done = command.run("run", "-c", keyed(server, profile=profile), *ON_RAY, *args)

    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert says in errors[0]
    assert KEY not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert server.requests == 0
    assert rows(tmp_path / "audit.db", "select * from audit_runs") == []


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--workers", "2"), "need --engine ray"),
        (("--ray-address", "auto"), "need --engine ray"),
        (("--engine", "ray", "--batch"), "leave --engine ray out"),
    ],
)
def test_run_when_options_of_ray_do_not_go_together_then_usage(
    here: Callable[..., Any], args: tuple[str, ...], says: str
) -> None:
    done = here("run", *args)
    assert done.code == 2
    assert says in done.stderr


@pytest.mark.parametrize("address", ["", "10.0.0.1", "ray://10.0.0.1:10001", "me@10.0.0.1:6379", "h:99999"])
def test_run_when_the_address_of_ray_is_none_then_it_says_how_one_is_written(
    here: Callable[..., Any], tmp_path: Path, address: str
) -> None:
    done = here("run", "--engine", "ray", "--ray-address", address)
    assert done.code == 1
    assert done.stderr.splitlines()[-1] == (
        f"error: --ray-address {address!r}: expected auto, or host:port such as 10.0.0.1:6379"
    )
    assert rows(tmp_path / "audit.db", "select * from audit_runs") == []


def test_run_when_ray_is_not_installed_then_it_says_so_before_a_run_begins(
    here: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = here("run", "--engine", "ray")
    assert done.code == 1
    assert done.stderr.endswith(
        "--engine ray needs ray, which is not installed: pip install 'reward-audit[ray]'\n"
    )
    assert rows(tmp_path / "audit.db", "select * from audit_runs") == []
