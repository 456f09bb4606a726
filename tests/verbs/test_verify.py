"""A check says true or false of what it saw, NULL of what it could not see, and touches nothing."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from audit.doors.world import FinalWorld, World
from audit.verbs.same import has_arguments, same_json
from audit.verbs.says import says
from audit.verbs.verify import Answered, CheckResult, Verified, json_steps, verify
from audit.words.tasks import Check, CheckKind, Domain, Task, Tool

Rows = list[tuple[Any, ...]]


def fail(problem: str) -> Any:
    raise RuntimeError(problem)


@dataclass
class Left:
    """Evidence made by hand: what each query gives, by its text."""

    messages: Sequence[Mapping[str, Any]] = ()
    tool_calls: Sequence[Mapping[str, Any]] = ()
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    http: Sequence[Mapping[str, Any]] = ()
    rows: Rows = field(default_factory=list)
    function: Callable[[], Any] = lambda: True

    def query(self, sql: str, /) -> Rows:
        return self.rows

    def initial_query(self, sql: str, /) -> Rows:
        return fail("no initial world")

    def tables(self) -> dict[str, list[str]]:
        return {}

    def run_python(self, function: str, /) -> Any:
        return self.function()


def passed(kind: CheckKind, spec: dict[str, Any], evidence: Any) -> bool | None:
    return verify([Check(kind, "c", spec)], evidence).checks[0].passed


WORLD = "create table orders (id integer, status text);\ninsert into orders values (17, 'open');"
CANCEL = Tool(
    "cancel",
    "cancel an order",
    {"type": "object", "properties": {"id": {"type": "integer"}}},
    ("update orders set status = 'cancelled' where id = :id",),
)


def task(world_sql: str = WORLD, *checks: Check) -> Task:
    return Task("t", "cancel", Domain("shop", "", world_sql, (CANCEL,)), "goal", (), checks)


def test_verify_when_run_twice_then_is_the_same_and_changes_no_byte() -> None:
    """Case VF-01: no gold action is replayed, so a second look finds the order as open as the first."""
    checks = [
        Check("sql", "cancelled", {"sql": "select id, status from orders", "rows": [[17, "cancelled"]]}),
        Check(
            "sql",
            "gold",
            {"sql": "update orders set status='cancelled' where id=17 returning 1", "rows": [[1]]},
        ),
    ]
    actions: list[dict[str, Any]] = []
    with World(task()) as world, FinalWorld(task(), world.snapshot(), (), actions) as final:
        before = hashlib.sha256(final.path.read_bytes()).hexdigest()
        first, second = verify(checks[:1], final), verify(checks[:1], final)
        assert [first.success, second.success] == [False, False]
        assert [first.reward, second.reward] == [0.0, 0.0]
        assert first == second
        gold = [verify(checks, final) for _ in range(2)]
        assert [(one.success, one.fault) for one in gold] == [(None, "verifier"), (None, "verifier")]
        assert gold[0].checks[1].evidence == "cannot run: only reading is allowed here"
        assert final.query("select id, status from orders") == [(17, "open")]
        assert hashlib.sha256(final.path.read_bytes()).hexdigest() == before
        assert actions == []
        world.call("cancel", {"id": 17})
        with FinalWorld(task(), world.snapshot()) as cancelled:
            assert verify(checks[:1], cancelled).success is True


SAYS = [
    # Case VF-03.
    ("10", "Your refund is $100.", False),
    ("10", "Your refund is $10.", True),
    ("10", "You get 1,010 points", False),
    ("1234.5", "Total: $1,234.50", True),
    # Numbers.
    ("100", "1000", False),
    ("100", "100", True),
    ("10", "10.5", False),
    ("10", "10.00", True),
    ("0.5", ".5 litres", True),
    ("5", ".5 litres", False),
    ("10", "10%", True),
    ("10", "(10)", True),
    ("10", "-10", False),
    ("10", "-$10", False),
    ("-10", "balance: −$10.00", True),
    ("10", "A10", False),
    ("17", "ORD-17", False),
    ("ORD-17", "order ord-17.", True),
    ("ORD-17", "ORD-170", False),
    ("17", "2025-03-17", False),
    ("2025-03-17", "on 2025-03-17.", True),
    ("10", "10:30", False),
    ("10:30", "at 10:30, please", True),
    ("17", "#17", True),
    ("17", "17, 18", True),
    ("5", "1,5", False),
    ("50", "1.234,50", False),
    ("1234.5", "CHF 1'234.50", True),
    ("1234.5", "1\u202f234.50 €", True),
    ("7", "007", False),
    ("007", "agent 007", True),
    ("1234567", "1,234,567", True),
    ("$10", "is **$10**", True),
    ("$10", "is €10", False),
    ("refund of 10.00", "A refund of **$10** it is", True),
    ("10", "½ of 10²", False),
    ("100", "退款１００元", True),
    ("100", "退款1000元", False),
    ("10", "١٠", True),
    # Words.
    ("cancelled", "Your order is CANCELLED.", True),
    ("cancel", "Your order is cancelled.", False),
    ("able", "refundable", False),
    ("refundable", "non-refundable", False),
    ("order 17", 'the order "17"', True),
    ("order 17", "order: 17", False),
    ("order 17", "17 order", False),
    ("order 17", "order\n 17", True),
    ("don't", "I don’t know", True),
    ("straße", "STRASSE", True),
    ("café", "cafe\u0301", True),
    ("cafe", "café", False),
    ("हिन", "हिन्दी", False),
    ("退款", "已退款成功", True),
    ("退钱", "已退款成功", False),
    ("a_b", "a_b_c", False),
    ("ok", "", False),
]


@pytest.mark.parametrize(("required", "text", "right"), SAYS, ids=[f"{r} in {t}" for r, t, _ in SAYS])
def test_transcript_when_searched_then_words_are_whole_and_numbers_are_amounts(
    required: str, text: str, right: bool
) -> None:
    evidence = Left(messages=[{"role": "user", "content": required}, {"role": "assistant", "content": text}])
    assert passed("transcript", {"contains": required}, evidence) is right


@given(st.integers(0, 10**9), st.integers(0, 99), st.integers(0, 10**9), st.integers(0, 99))
@example(10, 0, 100, 0)
@example(1, 0, 1, 0)
def test_number_when_in_text_then_is_found_exactly_where_the_amounts_are_equal(
    whole: int, cents: int, other: int, other_cents: int
) -> None:
    is_same = Fraction(whole * 100 + cents) == Fraction(other * 100 + other_cents)
    for text in (f"It is ${other:,}.{other_cents:02}.", f"Total: {other}.{other_cents:02}\n"):
        assert says(text, f"{whole}.{cents:02}") is is_same
    assert says(f"{whole} and {other},", str(whole))


@given(st.text(max_size=30), st.text(max_size=10).filter(str.strip))
def test_text_when_it_holds_the_required_between_spaces_then_it_says_so(text: str, required: str) -> None:
    assert says(f"{text} {required} {text}", required)


def test_transcript_when_nothing_is_required_of_it_then_the_check_could_not_run() -> None:
    result = verify(
        [Check("transcript", "c", {"contains": " "})], Left([{"role": "assistant", "content": ""}])
    )
    assert (result.success, result.fault) == (None, "verifier")
    assert result.checks[0].evidence == "cannot run: nothing is required of the transcript"


def test_transcript_when_asked_of_a_role_then_only_that_one_is_read() -> None:
    parts = [{"type": "text", "text": "Refund: 10"}, {"type": "image_url"}]
    messages = [{"role": "user", "content": "10 please"}, {"role": "assistant", "content": None}]
    assert passed("transcript", {"contains": "10"}, Left(messages)) is False
    assert passed("transcript", {"contains": "10", "role": "user"}, Left(messages)) is True
    assert passed("transcript", {"contains": "10"}, Left([{"role": "assistant", "content": parts}])) is True


def test_transcript_when_a_megabyte_long_then_is_read_to_its_end() -> None:
    text = "a1,$ " * 200_000 + "17"
    assert says(text, "17")
    assert not says(text, "18")


SQL: list[tuple[Rows, list[list[Any]], bool, bool]] = [
    ([(1, "a")], [[1, "a"]], False, True),
    ([(1.0,)], [[1]], False, True),
    ([(0.1 + 0.2,)], [[0.3]], False, True),
    ([(1.00000001,)], [[1]], False, False),
    ([(2**62 + 1,)], [[2**62]], False, False),
    ([("1",)], [[1]], False, False),
    ([("A",)], [["a"]], False, False),
    ([("a ",)], [["a"]], False, False),
    ([(None,)], [[None]], False, True),
    ([(None,)], [[0]], False, False),
    ([(None,)], [[""]], False, False),
    ([(b"a",)], [["a"]], False, False),
    ([], [], False, True),
    ([], [[1]], False, False),
    ([(1,)], [], False, False),
    ([(1,), (2,)], [[2], [1]], False, False),
    ([(1,), (2,)], [[2], [1]], True, True),
    ([(1,), (1,), (2,)], [[2], [1], [2]], True, False),
]


@pytest.mark.parametrize(("found", "wanted", "any_order", "right"), SQL)
def test_rows_when_compared_then_numbers_are_numbers_and_text_is_exact(
    found: Rows, wanted: list[list[Any]], any_order: bool, right: bool
) -> None:
    spec = {"sql": "select", "rows": wanted, "any_order": any_order}
    assert passed("sql", spec, Left(rows=found)) is right


THINGS = "create table a (x);\ninsert into a values (1), (1), (null);\ncreate table b (y);"
UNCHANGED: dict[str, tuple[str, Any, bool, str]] = {
    "nothing done": ("select 1", {"tables": "all"}, True, "as before"),
    "a row more": ("insert into a values (1)", {"tables": "all"}, False, "a: was [], is [(1,)]"),
    "a row less": ("delete from a where rowid = 1", {"tables": ["a"]}, False, "a: was [(1,)], is []"),
    "another table": ("insert into a values (1)", {"tables": ["b"]}, True, "as before"),
    "excepted": ("insert into a values (1)", {"tables": "all", "except": ["a"]}, True, "as before"),
    "text for a number": (
        "update a set x = '1' where rowid = 1",
        {"tables": "all"},
        False,
        "a: was [(1,)], is [('1',)]",
    ),
    "gone": ("drop table b", {"tables": ["a", "b"]}, False, "b is gone"),
    "new": ("create table c (z)", {"tables": "all"}, False, "c is new"),
    "written and put back": ("update a set x = x", {"tables": "all"}, True, "as before"),
}


@pytest.mark.parametrize(("action", "spec", "right", "seen"), UNCHANGED.values(), ids=UNCHANGED)
def test_tables_when_compared_with_the_initial_world_then_every_row_counts(
    action: str, spec: dict[str, Any], right: bool, seen: str
) -> None:
    act = Tool("act", "", {"type": "object"}, (action,))
    this = Task("t", "c", Domain("d", "", THINGS, (act,)), "g", (), (Check("unchanged", "u", spec),))
    with World(this) as world:
        assert "error" not in world.call("act", {})
        with FinalWorld(this, world.snapshot()) as final:
            result = verify(this.checks, final).checks[0]
            assert (result.passed, result.evidence) == (right, seen)


def call(name: str, arguments: Any, result: str = "[]") -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "result": result, "index": 0}


REFUSED = '{"error": "no such order"}'
TOOL_CALLS: dict[str, tuple[list[dict[str, Any]], dict[str, Any], bool, bool]] = {
    # calls, spec, is it called, is it not called
    "called": ([call("cancel", {"id": 17})], {"name": "cancel"}, True, False),
    "with more arguments": (
        [call("cancel", {"id": 17, "why": "x"})],
        {"name": "cancel", "arguments": {"id": 17}},
        True,
        False,
    ),
    "with text": ([call("cancel", {"id": "17"})], {"name": "cancel", "arguments": {"id": 17}}, False, True),
    "with a float": (
        [call("cancel", {"id": 17.0})],
        {"name": "cancel", "arguments": {"id": 17}},
        True,
        False,
    ),
    "with null for absent": (
        [call("cancel", {})],
        {"name": "cancel", "arguments": {"id": None}},
        False,
        True,
    ),
    "another": ([call("get", {"id": 17})], {"name": "cancel"}, False, True),
    "refused by the world": ([call("cancel", {"id": 17}, REFUSED)], {"name": "cancel"}, False, False),
    "twice for once": ([call("cancel", {})] * 2, {"name": "cancel", "times": 1}, False, False),
    "again after a refusal": (
        [call("cancel", {}, REFUSED), call("cancel", {})],
        {"name": "cancel", "times": 1},
        True,
        False,
    ),
    "arguments no object": ([call("cancel", "{")], {"name": "cancel", "arguments": {"id": 1}}, False, True),
}


@pytest.mark.parametrize(("calls", "spec", "called", "not_called"), TOOL_CALLS.values(), ids=TOOL_CALLS)
def test_tool_calls_when_checked_then_a_refused_one_earns_nothing_and_still_happened(
    calls: list[dict[str, Any]], spec: dict[str, Any], called: bool, not_called: bool
) -> None:
    assert passed("tool_called", spec, Left(tool_calls=calls)) is called
    assert passed("tool_not_called", spec, Left(tool_calls=calls)) is not_called


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON), st.data())
def test_arguments_when_a_part_is_wanted_then_they_have_it_until_one_value_differs(
    given: dict[str, Any], data: st.DataObject
) -> None:
    names = data.draw(st.sets(st.sampled_from(sorted(given)))) if given else set()
    wanted = json.loads(json.dumps({name: given[name] for name in names}))
    assert has_arguments(given, wanted)
    absent = "".join(given) + "x"  # longer than every name
    assert not has_arguments(given, wanted | {absent: None})
    for name in names:
        assert not has_arguments(given, wanted | {name: [given[name]]})


@pytest.mark.parametrize(
    ("one", "other", "right"),
    [
        (17, 17.0, True), (17, "17", False), (1, True, False), (0, False, False), (0, None, False),
        ([1, 2], [2, 1], False), ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1], {"0": 1}, False), ({"a": [True]}, {"a": [1]}, False), ("é", "e\u0301", False),
    ],
)  # fmt: skip
def test_json_values_when_compared_then_kind_and_value_count(one: Any, other: Any, right: bool) -> None:
    assert same_json(one, other) is right
    assert same_json(other, one) is right


FILES = {"a.txt": {"sha256": "ab", "text": "paid: 10"}, "b": {"sha256": "cd", "text": None}}
FILE_CHECKS: list[tuple[dict[str, Any], bool]] = [
    ({"path": "a.txt", "exists": True}, True),
    ({"path": "a.txt", "exists": False}, False),
    ({"path": "c", "exists": False}, True),
    ({"path": "c", "contains": "x"}, False),
    ({"path": "a.txt", "contains": "paid"}, True),
    ({"path": "a.txt", "contains": "Paid"}, False),
    ({"path": "b", "contains": "x"}, False),
    ({"path": "b", "exists": True}, True),
    ({"path": "a.txt", "sha256": "ab"}, True),
    ({"path": "b", "sha256": "ab"}, False),
    ({"path": "../../etc/passwd", "exists": True}, False),
    ({"path": "/etc/passwd", "exists": True}, False),
]


@pytest.mark.parametrize(("spec", "right"), FILE_CHECKS)
def test_file_when_checked_then_only_the_sessions_own_are_seen(spec: dict[str, Any], right: bool) -> None:
    assert passed("file", spec, Left(files=FILES)) is right


JSON_LEFT = Left(
    tool_calls=[
        call("get", {}, "[1]"),
        call("get", {}, '[{"id": 17, "tags": ["a", null]}]'),
        call("none", {}, "null"),
    ],
    files={
        "r.json": {"sha256": "", "text": '{"a b": {"c": true}}'},
        "bad": {"sha256": "", "text": "{" * 9999},
    },
    http=[{"status": 202}],
)
JSON_CHECKS: list[tuple[str, str, Any, bool]] = [
    ("$[0].id", "tool:get", 17, True),
    ("$[0].id", "tool:get", "17", False),
    ("$[0].tags[1]", "tool:get", None, True),
    ("$[0].tags[2]", "tool:get", None, False),
    ("$[0].tags.x", "tool:get", None, False),
    ("$", "tool:none", None, True),
    ("$", "tool:absent", None, False),
    ('$["a b"].c', "file:r.json", True, True),
    ('$["a b"].c', "file:r.json", 1, False),
    ("$.c", "file:bad", 1, False),
    ("$.c", "file:absent", None, False),
    ("$.http[0].status", "state", 202, True),
]


@pytest.mark.parametrize(("path", "of", "value", "right"), JSON_CHECKS)
def test_json_when_looked_up_then_the_value_at_the_path_counts(
    path: str, of: str, value: Any, right: bool
) -> None:
    assert passed("json", {"path": path, "of": of, "equals": value}, JSON_LEFT) is right


def test_json_when_asked_of_the_state_then_rows_are_objects() -> None:
    with World(task()) as world, FinalWorld(task(), world.snapshot()) as final:
        spec = {"path": "$.world.orders[0]", "of": "state", "equals": {"id": 17, "status": "open"}}
        assert passed("json", spec, final) is True


def test_json_path_when_it_is_none_then_is_refused() -> None:
    assert list(json_steps('$.a.b[0]["c.d"]')) == ["a", "b", 0, "c.d"]
    with pytest.raises(ValueError, match=r"^'a\.b' is no path: it begins with \$$"):
        list(json_steps("a.b"))
    with pytest.raises(ValueError, match=r"^'\$\.a\[x\]' is no path: cannot read '\[x\]'$"):
        list(json_steps("$.a[x]"))


SENT = {"method": "post", "url": "https://mail.example/send", "status": 202, "body": "queued 17"}
HTTP_CHECKS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"status": 202, "body_contains": "queued"}, True),
    ({"status": 200}, False),
    ({"body_contains": "sent"}, False),
    ({"url": "https://mail.example/"}, False),
    ({"method": "GET"}, False),
]


@pytest.mark.parametrize(("spec", "right"), HTTP_CHECKS)
def test_http_when_checked_then_one_recorded_exchange_must_meet_all(
    spec: dict[str, Any], right: bool
) -> None:
    whole = {"method": "POST", "url": "https://mail.example/send"} | spec
    assert passed("http", whole, Left(http=[{"method": "GET"}, SENT])) is right
    assert passed("http", whole, Left()) is False


def test_python_when_it_says_no_boolean_then_the_check_could_not_run() -> None:
    check = [Check("python", "c", {"python": "m:f"})]
    assert verify(check, Left()) == Verified(
        1.0, True, None, (CheckResult("c", "python", True, 1.0, True, "m:f said true"),)
    )
    assert verify(check, Left(function=lambda: False)).success is False
    assert verify(check, Left(function=lambda: 1)) == Verified(
        None,
        None,
        "verifier",
        (CheckResult("c", "python", None, 1.0, True, "cannot run: m:f said 1, expected true or false"),),
    )
    assert verify(check, Left(function=lambda: fail("x" * 9999))).checks[0].evidence == (
        "cannot run: " + "x" * 285 + "..."
    )


YES, NO, ERROR = {"path": "a", "exists": False}, {"path": "a", "exists": True}, {"sql": "", "rows": 1}


def made(kind: CheckKind, spec: dict[str, Any], weight: float = 1.0, required: bool = True) -> Check:
    return Check(kind, f"{kind} {weight}", spec, weight, required)


LLM = made("llm", {"llm": "Was it kind?"}, 5.0)
VERDICTS: dict[str, tuple[list[Check], bool, dict[str, bool | None], tuple[Any, Any, Any]]] = {
    "all met": ([made("file", YES), made("file", YES, 2)], False, {}, (1.0, True, None)),
    "weights": ([made("file", YES, 3), made("file", NO, 1)], False, {}, (0.75, False, None)),
    "an optional one failed": (
        [made("file", YES, 3), made("file", NO, 1, False)],
        False,
        {},
        (0.75, True, None),
    ),
    "one could not run": ([made("file", YES), made("sql", ERROR)], False, {}, (None, None, "verifier")),
    "one failed, one could not run": (
        [made("file", NO), made("sql", ERROR)],
        False,
        {},
        (None, None, "verifier"),
    ),
    "an optional one could not run": (
        [made("file", YES), made("sql", ERROR, 1, False)],
        False,
        {},
        (None, None, "verifier"),
    ),
    "no criteria": ([], False, {}, (None, None, "verifier")),
    "a model is not asked": ([made("file", YES), LLM], False, {}, (1.0, True, None)),
    "a model's no does not count": ([made("file", YES), LLM], False, {LLM.name: False}, (1.0, True, None)),
    "a model's no counts": ([made("file", YES), LLM], True, {LLM.name: False}, (1 / 6, False, None)),
    "a model's yes counts": ([made("file", YES), LLM], True, {LLM.name: True}, (1.0, True, None)),
    "a model that counts is not asked yet": ([made("file", YES), LLM], True, {}, (None, None, None)),
    "only a model": ([LLM], False, {LLM.name: True}, (None, None, None)),
    "only optional ones count": ([made("file", YES, 1, False), LLM], False, {}, (1.0, None, None)),
}


@pytest.mark.parametrize(("checks", "llm_counts", "answers", "right"), VERDICTS.values(), ids=VERDICTS)
def test_verdict_when_checks_are_weighed_then_what_is_unknown_is_null_and_never_false(
    checks: list[Check], llm_counts: bool, answers: dict[str, bool | None], right: tuple[Any, Any, Any]
) -> None:
    said = {name: Answered(met, "a quote") for name, met in answers.items()}
    result = verify(checks, Left(), llm_counts=llm_counts, llm_answers=said)
    assert (result.reward, result.success, result.fault) == right
    assert [one.passed for one in result.checks if one.kind == "llm"] == [
        answers.get(one.name) for one in checks if one.kind == "llm"
    ]


@given(st.lists(st.tuples(st.booleans(), st.floats(0.001, 1000)), min_size=1))
def test_reward_when_checks_are_weighed_then_is_the_share_met(outcomes: list[tuple[bool, float]]) -> None:
    checks = [made("file", YES if is_met else NO, weight) for is_met, weight in outcomes]
    result = verify(checks, Left())
    share = sum(Fraction(w) for met, w in outcomes if met) / sum(Fraction(w) for _, w in outcomes)
    assert result.reward == pytest.approx(float(share))
    assert result.success is all(met for met, _ in outcomes)
    assert (result.reward == 1.0) is result.success or any(w < 0.01 for _, w in outcomes)


def test_check_when_its_query_never_ends_then_the_session_is_unknown_not_failed() -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    check = Check("sql", "c", {"sql": endless, "rows": [[1]]})
    with World(task()) as world, FinalWorld(task(), world.snapshot(), seconds=0.2) as final:
        result = verify([check], final)
    assert (result.success, result.fault) == (None, "verifier")
    assert result.checks[0].evidence == "cannot run: took longer than 0.2 s"


def test_evidence_when_hostile_then_is_cut_and_never_an_error() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    calls = [call("cancel", {"id": deep}), call("cancel", {"id": "x" * 1_000_000}, "[" * 100_000)]
    evidence = Left(tool_calls=calls, rows=[("y" * 1_000_000,)])
    assert passed("tool_called", {"name": "cancel", "arguments": {"id": 17}}, evidence) is False
    result = verify([Check("sql", "c", {"sql": "", "rows": [["y"]]})], evidence).checks[0]
    assert result.passed is False
    assert len(result.evidence) <= 300
