"""The judge stage by a provider's batch API: the same rows as a live judge's, each once, whatever happens."""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from batch_server import BatchServer, question
from live_rows import final_rows, rows, synthetic_profile
from server import ChatServer, Say, refusing
from sessions_made import tau2_results, tau2_run

from audit.offline.serve import serve

PAIRS_OF_SMALL = 9  # three agents on three tasks
KEY = "sk-batch-0123456789abcdef"


def served(body: dict[str, Any]) -> Say:
    return Say(body=serve(body))


class Unsteady:
    """The synthetic judge, some of whose answers fail or cannot be read, by what is asked and how often."""

    def __init__(self, failing: dict[int, list[Say]]) -> None:
        self.failing = failing
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> Say:
        key = question(body)
        with self.lock:
            self.asked[key] += 1
            said = self.failing.get(int(key, 16) % 11, [])
            return said[self.asked[key] - 1] if len(said) >= self.asked[key] else served(body)


@pytest.fixture
def provider(gateway: Callable[..., ChatServer]) -> Callable[..., BatchServer]:
    """Starts a provider with a batch API, whose models answer as they are told."""
    return lambda answer=served: gateway(answer, BatchServer)


@pytest.fixture
def one_pair(tmp_path: Path, here: Any) -> Callable[..., Any]:
    """Judges one recorded pair and its two sessions, behind a server, with a key."""
    files = []
    for agent, reward in (("v-1", 1.0), ("v-2", 0.0)):
        path = tmp_path / f"{agent}.json"
        path.write_text(json.dumps(tau2_results(agent, tau2_run("t", reward))), encoding="utf-8")
        files.append(path)
    assert here("import", "tau2", *files).code == 0

    def judge(server: ChatServer, *arguments: str, command: tuple[str, ...] = ("judge",), **more: Any) -> Any:
        profile = {"name": "j", "model": "judge-80", "role": "llm_judge", "base_url": server.base_url}
        profile |= {"api_key_env": "BATCH_KEY", "timeout_s": 5} | more
        config = {"profiles": [profile], "judges": "j"}
        (tmp_path / "judges.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        (tmp_path / "key.env").write_text(f"BATCH_KEY={KEY}\n", encoding="utf-8")
        fixed = ("--run", "latest", "-c", tmp_path / "judges.yaml", "--env-file", tmp_path / "key.env")
        return here(*command, *fixed, *arguments)

    return judge


def verdicts_of(server: BatchServer) -> int:
    """How many lines were submitted, over all batches."""
    return sum(server.submitted.values())


def test_run_when_judged_by_batch_then_every_row_is_what_a_live_judge_gives(
    here: Any, small: Callable[..., Path], provider: Callable[..., BatchServer], tmp_path: Path
) -> None:
    server = provider()
    done = here("run", "-c", small(server), "--batch")
    assert done.code == 0, done.stderr
    asked_live = here("run", "-c", small(server), db=f"sqlite:///{tmp_path / 'live.db'}")
    assert asked_live.code == 0, asked_live.stderr
    assert final_rows(tmp_path / "audit.db") == final_rows(tmp_path / "live.db")
    assert server.submitted.total() == len(server.submitted) == 3 * PAIRS_OF_SMALL
    again = here("--json", "run", "-c", tmp_path / "audit.yaml", "--resume", "latest", "--batch")
    assert (again.code, json.loads(again.stdout)["calls"]) == (0, 0)


CONTESTED = {"members": ["first", "second", "third"], "escalate": "contested", "contested_below": 2.0}


def test_panel_when_answers_cannot_be_read_or_decide_who_is_asked_then_rounds_end_where_a_live_judge_does(
    here: Any, small: Callable[..., Path], provider: Callable[..., BatchServer], tmp_path: Path
) -> None:
    vague, refused = Say(text="I cannot tell."), refusing("not that")
    failing = {
        0: [vague],
        1: [vague, vague, vague],
        2: [refused],
        3: [vague, refused],
        4: [Say(text=None, finish="length", message={"reasoning_content": "The first wins."})],
        5: [
            Say(text='half of an emoji \ud83d, a \x00, ␀ and {"winner": "first"', finish="length", usage=None)
        ],
    }
    embedded = yaml.safe_load(small().read_text(encoding="utf-8"))["profiles"]
    own = [profile for profile in embedded if profile["role"] != "llm_judge"]
    for name, model in zip(CONTESTED["members"], ("judge-60", "judge-coin", "judge-40-pos50"), strict=True):
        own.append({"name": name, "role": "llm_judge", "base_url": "offline://x", "model": model, "seed": 0})

    def failing_as_a_judge() -> Callable[[dict[str, Any]], Say]:
        unsteady = Unsteady(failing)
        return lambda body: unsteady(body) if "response_format" in body else served(body)

    found = {}
    for name in ("batch", "live"):
        server = provider(failing_as_a_judge())
        config = small(server, profiles=own, judges=[CONTESTED], max_error_rate=1.0)
        arguments = ["--batch"] if name == "batch" else []
        done = here("run", "-c", config, *arguments, db=f"sqlite:///{tmp_path / f'{name}.db'}")
        assert done.code == 0, done.stderr
        found[name] = final_rows(tmp_path / f"{name}.db")
    # Rows that name the address differ in nothing else, and it is in none of these.
    assert found["batch"] == found["live"]
    statuses = Counter(call[12] for call in found["batch"]["calls"])
    assert min(statuses[name] for name in ("unreadable", "error", "truncated", "ok")) > 0
    asked = Counter(call[1] for call in found["batch"]["calls"] if call[0] == "judge")
    assert 0 < max(asked["second"], asked["third"]) < asked["first"]
    assert rows(tmp_path / "batch.db", "select count(*) from batch_lines where state <> 'stored'") == [(0,)]


def test_batch_when_it_expires_then_what_is_missing_is_asked_in_a_next_one(
    here: Any, small: Callable[..., Path], provider: Callable[..., BatchServer], tmp_path: Path
) -> None:
    server = provider()
    server.fates = ["expired"]
    done = here("run", "-c", small(server), "--batch")
    assert done.code == 0, done.stderr
    assert [batch["status"] for batch in server.batches.values()] == ["expired", "completed"]
    sizes = [batch["request_counts"]["total"] for batch in server.batches.values()]
    assert sizes == [27, 14]
    file = tmp_path / "audit.db"
    assert rows(file, "select state, count(*) from batch_lines group by 1 order by 1") == [
        ("failed", 14),
        ("stored", 27),
    ]
    assert rows(file, "select count(*), count(judged_at) from audit_pairs") == [(9, 9)]
    counts = "select status, provider_status, count_lines, count_stored, count_failed from provider_batches"
    assert rows(file, f"{counts} order by created_at, count_lines desc") == [
        ("done", "expired", 27, 13, 14),
        ("done", "completed", 14, 14, 0),
    ]
    assert re.search(r"^batch in_progress: 0/27, ", done.stderr, re.MULTILINE)
    assert "batch answers: 27/27" in done.stderr


def test_lines_when_they_fail_every_time_then_the_run_ends_with_4_and_they_are_asked_again_on_request(
    one_pair: Callable[..., Any], provider: Callable[..., BatchServer], tmp_path: Path
) -> None:
    is_down = True
    server = provider(lambda body: refusing("overloaded", 503) if is_down else served(body))
    done = one_pair(server, "--batch", attempts=2)
    assert done.code == 4
    assert "more calls failed than max_error_rate allows" in done.stderr
    file = tmp_path / "audit.db"
    logged = "select role, attempt, parse_status, error from judge_logs order by 1, 2"
    down = ("error", "HTTP 503: overloaded")
    assert rows(file, logged) == [("judge", 1, *down)] * 2 + [("satisfaction", 1, *down)] * 2
    assert set(server.submitted.values()) == {1}
    assert verdicts_of(server) == 8
    assert one_pair(server, "--batch", attempts=2).code == 4
    assert verdicts_of(server) == 8
    is_down = False
    mended = one_pair(server, "--batch", "--retry-errors", attempts=2)
    assert mended.code == 0, mended.stderr
    assert verdicts_of(server) == 12
    answered = "select role, attempt from judge_logs where parse_status <> 'error' order by 1, 2"
    assert rows(file, answered) == [("judge", 2)] * 2 + [("satisfaction", 1)] * 2
    assert rows(file, "select outcome from audit_pairs") != [("incomplete",)]


@pytest.mark.parametrize(
    ("fate", "why"), [("failed", "failed (enqueued too much)"), ("cancelled", "was canc")]
)
def test_batch_when_the_provider_gives_it_up_then_nothing_is_written_off_and_the_same_command_goes_on(
    one_pair: Callable[..., Any], provider: Callable[..., BatchServer], tmp_path: Path, fate: str, why: str
) -> None:
    server = provider()
    server.fates = [fate]
    done = one_pair(server, "--batch")
    assert (done.code, f"incomplete: the provider's batch batch_0 {why}" in done.stderr) == (4, True)
    assert rows(tmp_path / "audit.db", "select count(*) from judge_logs where error is not null") == [(0,)]
    assert one_pair(server, "--batch").code == 0
    assert rows(tmp_path / "audit.db", "select count(*) from judge_logs") == [(4,)]


def test_parameter_when_the_gateway_refuses_it_in_a_line_then_the_next_batch_is_without(
    one_pair: Callable[..., Any], provider: Callable[..., BatchServer], tmp_path: Path
) -> None:
    def answer(body: dict[str, Any]) -> Say:
        return refusing("Unsupported parameter: 'temperature'") if "temperature" in body else served(body)

    done = one_pair(provider(answer), "--batch", temperature=0.5)
    assert done.code == 0, done.stderr
    stored = rows(tmp_path / "audit.db", "select request_json, error from judge_logs")
    assert len(stored) == 4
    assert not any("temperature" in json.loads(request) or error for request, error in stored)


def test_submission_when_its_answer_is_lost_then_the_batch_is_found_and_not_begun_again(
    one_pair: Callable[..., Any], provider: Callable[..., BatchServer]
) -> None:
    server = provider()
    lost = [Say(drop=True), refusing("try later", 500)]
    server.after.append(lambda method, path: lost.pop() if (method, path) == BEGIN and lost else None)
    server.listed_with_metadata = False  # so it is known by its file
    done = one_pair(server, "--batch")
    assert (done.code, lost) == (0, [Say(drop=True)]), done.stderr
    assert set(server.submitted.values()) == {1}
    assert len(server.batches) == 1


BEGIN = ("POST", "/v1/batches")


def test_provider_when_it_is_silent_for_a_while_then_it_is_waited_for(
    one_pair: Callable[..., Any], provider: Callable[..., BatchServer]
) -> None:
    server = provider()
    silent = [refusing("bad gateway", 502)] * 3 + [Say(drop=True)]
    places = ("/v1/batches/batch_0", "/v1/files/file-1/content")
    server.hooks.append(lambda _, path: silent.pop() if path in places and silent else None)
    done = one_pair(server, "--batch", attempts=1)
    assert (done.code, silent) == (0, []), done.stderr
    assert set(server.submitted.values()) == {1}


def test_gateway_when_it_has_no_batch_api_then_one_line_says_so_before_anything_is_spent(
    here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], one_pair: Callable[..., Any]
) -> None:
    asked: list[Any] = []

    def nowhere(body: dict[str, Any]) -> Say:
        asked.append(body)
        return served(body)

    server = gateway(nowhere, NoBatches)
    done = here("run", "-c", small(server), "--batch")
    url = server.base_url
    assert (done.code, asked) == (1, [])
    assert done.stderr.splitlines()[-1] == (
        f"error: profile 'judge': {url} has no batch API (GET /batches: HTTP 404: nothing here): judge "
        "without --batch, or carry the lines to one by `reward-audit batch export`"
    )
    offline = here("run", "-c", small(), "--batch")
    assert offline.code == 1
    assert offline.stderr.splitlines()[-1] == (
        "error: profile 'judge' is a synthetic model and has no batch API: leave --batch out"
    )


class NoBatches(BatchServer):
    """A gateway that knows chat completions alone."""

    def route(self, method: str, target: str, headers: dict[str, str], content: bytes) -> Say:
        if self.serves(target):
            return refusing("nothing here", 404)
        return super().route(method, target, headers, content)


ECHOES = {
    "nowhere": [],
    "in an error of the provider": [("GET", "/v1/batches/batch_0")],
    "where files go": [("POST", "/v1/files")],
    "where batches are begun": [BEGIN],
}


@pytest.mark.parametrize("places", ECHOES.values(), ids=ECHOES.keys())
def test_key_when_the_provider_echoes_it_then_it_is_sent_and_kept_nowhere(
    one_pair: Callable[..., Any],
    provider: Callable[..., BatchServer],
    tmp_path: Path,
    places: list[tuple[str, str]],
) -> None:
    def answer(body: dict[str, Any]) -> Say:
        first = body["messages"][-1]["content"].find("FIRST") > 0
        return Say(text=f"By {KEY} I cannot tell.") if first else refusing(f"bad key {KEY}", 401)

    server = provider(answer)
    server.hooks.append(lambda *place: refusing(f"not with {KEY}", 401) if place in places else None)
    done = one_pair(server, "--batch", extra={"headers": {"x-key": KEY}, "note": "n"})
    assert done.code == (1 if places else 4), done.stderr
    assert set(server.auth) == {f"Bearer {KEY}"}
    assert "[key]" in done.stderr
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("audit.db*"))
    assert KEY.encode() not in kept + (done.stdout + done.stderr).encode()
    sent = [json.loads(line)["body"] for line in server.files.get("file-0", b"").splitlines()]
    assert all(body["headers"] == {"x-key": KEY} for body in sent)


def test_budget_when_it_is_small_then_rounds_are_small_too_and_the_same_command_goes_on(
    here: Any, small: Callable[..., Path], provider: Callable[..., BatchServer], tmp_path: Path
) -> None:
    server = provider()
    assert here("simulate", "-c", small(server)).code == 0
    file = tmp_path / "audit.db"
    spent = "select sum(total_tokens) from judge_logs"
    most = rows(file, spent)[0][0] + 9000
    done = here("judge", "-c", small(server), "--batch", "--max-tokens", str(most))
    assert done.code == 4
    assert f"incomplete: the budget of {most:,} tokens is used up" in done.stderr
    assert most <= rows(file, spent)[0][0] < most + 3000
    assert len(server.batches) > 1
    assert 0 < verdicts_of(server) < 27
    assert here("judge", "-c", small(server), "--batch").code == 0
    assert verdicts_of(server) == len(server.submitted) == 27
    assert set(server.questions.values()) == {1}


def test_limit_when_given_then_at_most_so_many_pairs_and_sessions_are_asked(
    here: Any, small: Callable[..., Path], provider: Callable[..., BatchServer], tmp_path: Path
) -> None:
    server = provider()
    assert here("simulate", "-c", small(server)).code == 0
    assert here("judge", "-c", small(server), "--batch", "--limit", "2").code == 4
    asked = "select count(distinct pair_id), count(distinct session_id) from batch_lines"
    assert rows(tmp_path / "audit.db", asked) == [(2, 2)]


def test_live_judge_when_lines_are_under_way_then_refuses_until_they_are_dropped(
    one_pair: Callable[..., Any], provider: Callable[..., BatchServer], here: Any, tmp_path: Path
) -> None:
    server = provider()
    server.hooks.append(lambda method, path: refusing("broken", 400) if "batch_0" in path else None)
    assert one_pair(server, "--batch").code == 1
    run_id = rows(tmp_path / "audit.db", "select run_id from audit_runs")[0][0]
    live = one_pair(server)
    assert live.code == 1
    assert live.stderr.splitlines()[-1] == (
        f"error: run {run_id} waits for 4 answers of a batch: go on with `judge --batch`, bring them by "
        "`batch ingest`, or give them up by `batch drop`"
    )
    listed = json.loads(here("--json", "batch", "status").stdout)
    assert [(one["status"], one["provider_batch_id"], one["count_lines"]) for one in listed] == [
        ("accepted", "batch_0", 4)
    ]
    assert "batch_0" in here("batch", "status").stdout
    assert here("batch", "drop").stdout == f"gave up 4 lines of run {run_id}\n"
    assert one_pair(server).code == 0
    assert rows(tmp_path / "audit.db", "select count(*) from judge_logs") == [(4,)]


def test_batch_when_the_provider_has_lost_it_then_says_how_to_give_it_up(
    one_pair: Callable[..., Any], provider: Callable[..., BatchServer]
) -> None:
    server = provider()
    server.hooks.append(lambda _, path: refusing("no such batch", 404) if "batch_0" in path else None)
    done = one_pair(server, "--batch")
    assert (done.code, done.stderr.splitlines()[-1]) == (
        1,
        f"error: profile 'j': GET /batches/batch_0 at {server.base_url}: HTTP 404: no such batch: "
        "`reward-audit batch drop` gives it up",
    )


@pytest.mark.parametrize(
    ("newest_first", "is_begun", "pages"), [(True, False, 1), (False, True, 3), (False, False, 3)]
)
def test_submission_when_it_is_unsure_then_a_long_list_is_looked_through_as_far_as_needed(
    one_pair: Callable[..., Any],
    provider: Callable[..., BatchServer],
    newest_first: bool,
    is_begun: bool,
    pages: int,
) -> None:
    server = provider()
    server.newest_first = newest_first
    for number in range(230):  # those of others, one a day until today
        created = int(time.time()) - 86_400 * (229 - number)
        other = {"id": f"other_{number}", "status": "completed", "fate": "completed", "created_at": created}
        server.batches[f"other_{number}"] = other | {"input_file_id": "f", "metadata": {}}
    lost = [Say(drop=True)]
    hooks = server.after if is_begun else server.hooks
    hooks.append(lambda method, path: lost.pop() if (method, path) == BEGIN and lost else None)
    done = one_pair(server, "--batch")
    assert (done.code, lost) == (0, []), done.stderr
    assert len(server.batches) == 231
    assert set(server.submitted.values()) == {1}
    listed = sum(place == ("GET", "/v1/batches") for place in server.seen)
    assert listed == 1 + pages  # one before anything was sent


def test_profiles_when_there_are_several_judges_then_each_has_batches_of_its_own_at_the_same_time(
    here: Any, small: Callable[..., Path], provider: Callable[..., BatchServer], tmp_path: Path
) -> None:
    server = provider()
    server.polls = 2
    embedded = yaml.safe_load(small().read_text(encoding="utf-8"))["profiles"]
    own = [profile for profile in embedded if profile["role"] != "llm_judge"]
    own += [synthetic_profile(name, "llm_judge", name) for name in ("judge-80", "judge-60")]
    done = here("run", "-c", small(server, profiles=own, judges=["judge-80", "judge-60"]), "--batch")
    assert done.code == 0, done.stderr
    begun = [place for place in server.seen if place == BEGIN or "/batch_" in place[1]]
    assert begun[:2] == [BEGIN, BEGIN]
    assert {place[1] for place in begun[2:4]} == {"/v1/batches/batch_0", "/v1/batches/batch_1"}
    shape = "select profile, count_lines, count_stored, status from provider_batches order by 1"
    assert rows(tmp_path / "audit.db", shape) == [("judge-60", 18, 18, "done"), ("judge-80", 27, 27, "done")]
