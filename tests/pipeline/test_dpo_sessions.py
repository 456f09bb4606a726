"""Sessions of an export: every pair finds its two, however much is forgotten in between."""

import json
from typing import Any

from audit.doors.ask_dpo import Candidate, Told
from audit.pipeline.dpo_sessions import Sessions


def pair(number: int, a: str | None, b: str | None) -> Candidate:
    blank: dict[str, Any] = dict.fromkeys(Candidate._fields)
    return Candidate(**blank | {"pair_id": f"p{number}", "session_a": a, "session_b": b})


def told(session_id: str, size: int = 10) -> Told:
    said = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": session_id * size}]
    return Told(session_id, json.dumps(said), json.dumps({"goal": f"of {session_id}"}))


def test_sessions_when_pairs_share_some_then_each_is_read_once_while_it_is_held() -> None:
    sessions = Sessions(())
    assert sessions.missing([pair(1, "s1", "s2"), pair(2, "s2", "s3"), pair(3, "s1", None)]) == [
        "s1",
        "s2",
        "s3",
    ]
    sessions.take(map(told, ("s1", "s2", "s3")))
    assert sessions.missing([pair(4, "s3", "s4")]) == ["s4"]
    found = sessions.get("s1")
    assert found
    assert (found.task, found.messages[1]["content"]) == ("of s1", "s1" * 10)


def test_sessions_when_more_is_read_than_is_held_then_the_pairs_at_hand_lose_none() -> None:
    sessions = Sessions(())
    read = 0
    # Each session is in the pairs of two rounds: the one in which it comes, and the next.
    for number in range(200):
        pairs = [pair(number, f"s{number}", f"s{number + 1}"), pair(-number, f"s{number + 1}", "all")]
        missing = sessions.missing(pairs)
        read += len(missing)
        sessions.take(told(one, 3000) for one in missing)
        for side in (f"s{number}", f"s{number + 1}", "all"):
            found = sessions.get(side)
            assert found
            assert found.messages[-1]["content"] == side * 3000
    assert read == 202
    assert sessions.get("s1") is None, "two hundred sessions are too many to be held"


def test_sessions_when_nothing_is_known_of_one_then_it_is_none_and_not_asked_for_again() -> None:
    sessions = Sessions(())
    sessions.take([Told("s1", None, None)])
    assert sessions.missing([pair(1, "s1", None)]) == []
    assert sessions.get("s1") is None
    assert sessions.get(None) is None
