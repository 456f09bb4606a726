"""Agents of graded skill, and the customer they serve, over whole sessions."""

import json
from statistics import mean

import pytest
from offline.whole import SEEDS, SKILLS, customer_says, held_once, hold, said_by, shipped_tasks

from audit.offline.agent import agent_turn
from audit.offline.chance import uniform
from audit.verbs.user_turn import read_user_turn

TASKS = shipped_tasks()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_mean_reward_rises_with_skill(seed: int) -> None:
    rewards = [mean(hold(task, f"agent-{skill}", seed).reward for task in TASKS) for skill in SKILLS]
    assert rewards == sorted(rewards)
    assert rewards[0] < 0.3
    assert rewards[-1] > 0.8


def test_rewards_are_graded() -> None:
    held = [hold(task, f"agent-{skill}") for task in TASKS for skill in SKILLS]
    assert len({round(one.reward, 6) for one in held}) >= 10
    assert sum(0 < one.reward < 1 for one in held) > len(held) / 3


def test_a_weak_agent_passes_few_tasks() -> None:
    assert mean(bool(hold(task, "agent-20").verified.success) for task in TASKS) < 0.1


def test_a_weak_agent_claims_success_all_the_same() -> None:
    task = next(task for task in TASKS if task.task_id == "shop-complain-cheaper")
    held = hold(task, "agent-0")
    assert not any(message.get("tool_calls") for message in held.messages)
    assert "taken care" in held.messages[-1]["content"]
    assert not held.verified.success


def test_sessions_are_the_same_every_time_and_differ_between_seeds() -> None:
    def words(seed: int) -> str:
        anew = held_once.__wrapped__
        return json.dumps([anew(task.task_id, "agent-60", seed).messages for task in TASKS[:12]])

    first = words(1)
    assert words(1) == first
    assert words(2) != first


def test_a_stronger_agent_takes_every_step_of_a_weaker_one() -> None:
    """What is drawn hangs on seed, words and step, never on the skill."""
    draws = [uniform(0, "Hello.", f"act {n}") for n in range(1000)]
    for weak, strong in ((0.2, 0.5), (0.5, 0.95)):
        assert {n for n, draw in enumerate(draws) if draw < weak} <= {
            n for n, draw in enumerate(draws) if draw < strong
        }
    assert mean(draws) == pytest.approx(0.5, abs=0.03)


def test_the_agent_calls_several_tools_at_once() -> None:
    task = next(task for task in TASKS if task.task_id == "travel-book-two")
    calls = [len(message.get("tool_calls", ())) for message in hold(task, "agent-100").messages]
    assert max(calls) >= 2


def test_call_ids_are_never_used_twice() -> None:
    for task in TASKS:
        calls = [
            call["id"]
            for message in hold(task, "agent-70").messages
            for call in message.get("tool_calls", ())
        ]
        assert len(calls) == len(set(calls))


@pytest.mark.parametrize(
    ("messages", "tools"),
    [
        ([{"role": "user", "content": "Hello"}], ["something_else"]),
        ([{"role": "user", "content": "Hello"}], ["get_order"]),
        ([], ["get_order"]),
        ([{"role": "assistant", "content": None}, {"role": "tool", "content": "?"}], ["get_booking"]),
        ([{"role": "user", "content": [{"type": "text", "text": "cancel order W1"}]}], ["get_order"]),
    ],
)
def test_an_agent_that_knows_no_way_says_something(
    messages: list[dict[str, object]], tools: list[str]
) -> None:
    listed = [{"type": "function", "function": {"name": name}} for name in tools]
    assert agent_turn({"messages": messages, "tools": listed}, 100)


def test_a_failed_look_up_does_not_stop_the_agent() -> None:
    listed = [{"type": "function", "function": {"name": "get_order"}}]
    call = {"id": "1", "function": {"name": "get_order", "arguments": '{"order_id": "W1"}'}}
    messages = [
        {"role": "user", "content": "I am customer C101, I want to know the status of order W1."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": '{"error": "took longer than 5 s"}'},
    ]
    words = agent_turn({"messages": messages, "tools": listed, "seed": 0}, 100)
    assert words == [("get_customer", {"customer_id": "C101"})]


def test_the_customer_begins_with_the_wish_in_its_own_words() -> None:
    task = next(task for task in TASKS if task.task_id == "shop-query-foreign")
    assert customer_says(task, []).startswith("Hello. I am customer C106 and want to know the status")


def test_the_customer_answers_from_its_facts_and_gives_up_in_the_end() -> None:
    task = TASKS[0]
    messages = [{"role": "user", "content": customer_says(task, [])}]

    def ask(question: str) -> str:
        messages.append({"role": "assistant", "content": question})
        messages.append({"role": "user", "content": customer_says(task, messages)})
        return str(messages[-1]["content"])

    assert ask("What is your customer number?") == "My customer number is C101."
    assert ask("Which colour had it?") == "I am sorry, I do not know that."
    assert ask("And its weight?") == "I am sorry, I do not know that."
    assert ask("And its length?").endswith("<blocked>")


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        ("Order W3001 is shipped. Is there anything else I can do for you?", "<finished>"),
        ("I am afraid that is not possible. Is there anything else?", "<blocked>"),
    ],
)
def test_the_customer_ends_when_the_agent_is_done_or_cannot(words: str, ending: str) -> None:
    messages = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": words}]
    assert customer_says(TASKS[0], messages).endswith(ending)


def test_the_customer_says_nothing_that_must_not_reach_the_agent() -> None:
    """Neither its instructions nor what is checked; and nothing that it could not know."""
    for task in TASKS:
        held = hold(task, "agent-80")
        told = " ".join([task.goal, *task.facts])
        for message in held.messages:
            if message["role"] != "user":
                continue
            turn = read_user_turn(message["content"], ["<finished>", "<blocked>"], [task.goal, *task.facts])
            assert turn.problem is None, message
            words = [word.strip(".,;\"'") for word in message["content"].split()]
            numbers = [word for word in words if any(map(str.isdigit, word))]
            assert all(number in told for number in numbers), (numbers, task.task_id)


def test_the_customer_hears_nothing_of_other_messages_than_its_own() -> None:
    reply = said_by(
        "customer", [{"role": "system", "content": "## Goal\nYou want to rest.\n\n## Facts\n"}], 0
    )
    assert reply["content"] == "Hello. I want to rest."
