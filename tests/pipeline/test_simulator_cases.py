"""The simulated user in whole runs: what it says reaches the agent, and what it must not say never does."""

import json
import re
from typing import Any

import pytest
from server import Say
from staged import GOOD, IDLE, JUDGE, USER, Body, Stage, calling, task, text_of

DEFAULT_TOKENS = ("<finished>", "<blocked>", "###STOP###")


def own_turns(body: Body) -> int:
    """How often whoever is asked has spoken before."""
    return sum(message["role"] == "assistant" for message in body["messages"])


def asks_first(berth: str, body: Body) -> Say | str:
    """An agent that wants a yes before it acts."""
    if own_turns(body) == 0:
        return f"Shall I free {berth} for good?"
    if body["messages"][-1]["role"] == "tool":
        return "It is done."
    if "free_berth" not in json.dumps(body["messages"]):
        return calling("free_berth", {"berth": berth})
    return "Is there more?"


def said_by(transcript: str, role: str) -> list[str]:
    return [message["content"] for message in json.loads(transcript) if message["role"] == role]


# What the customer answers to the agent's question -> what of it reaches the agent, and how it ends.
LAST_WORDS = {
    "Yes, free it. ###STOP###": ("Yes, free it.", "user_stop"),
    "Yes, free it.\n\n<finished>": ("Yes, free it.", "user_stop"),
    "Go ahead.<blocked>": ("Go ahead.", "user_blocked"),
    "Yes <finished> free it": ("Yes free it", "user_stop"),
    "<finished> Oh, and yes: free it.": ("Oh, and yes: free it.", "user_stop"),
    "Free it. <finished> ###STOP### <finished>": ("Free it.", "user_stop"),
    "Free it. <fini<finished>shed>": ("Free it. <fini shed>", "user_stop"),
    "Free it. ###ST###STOP###OP###": ("Free it. ###ST OP###", "user_stop"),
    "Yes. <blocked> No, <finished>": ("Yes. No,", "user_blocked"),
}
ALONE = {
    "###STOP###": "user_stop",
    "  <finished>\n": "user_stop",
    "<think>bye</think><blocked>": "user_blocked",
}


def test_user_when_a_token_stands_with_words_then_the_agent_gets_them_and_its_turn_to_act(
    stage: Stage,
) -> None:
    """Case US-01: the token ends the session, and swallows neither the words nor the agent's last act."""
    answers = dict(zip((f"K{number}" for number in range(1, 30)), [*LAST_WORDS, *ALONE], strict=False))
    stage.tasks = [task(berth) for berth in answers]
    stage.parts[GOOD] = stage.parts[IDLE] = asks_first
    stage.parts[USER] = lambda berth, body: (
        None if own_turns(body) == 0 else answers[berth] if own_turns(body) == 1 else "<finished>"
    )
    done = stage.run()

    assert done.code == 0, done.stderr
    found = stage.rows("select task_id, transcript_json, end_reason, reward, fault from sessions")
    assert len(found) == 2 * len(answers)
    for task_id, transcript, end_reason, reward, fault in found:
        answer = answers[task_id.removeprefix("free-")]
        words, reason = LAST_WORDS.get(answer, (None, ALONE.get(answer)))
        assert said_by(transcript, "user")[1:] == ([words] if words else []), answer
        assert (end_reason, fault) == (reason, None), answer
        # With words the agent acted on them; a token alone ends at once, before the agent did anything.
        assert reward == (1.0 if words else 0.0), answer
        berth = task_id.removeprefix("free-")
        last = "It is done." if words else f"Shall I free {berth} for good?"
        assert said_by(transcript, "assistant")[-1] == last, answer
        assert not [token for token in DEFAULT_TOKENS if token in transcript], answer
    for body in stage.asked(GOOD, IDLE, JUDGE):
        assert not [token for token in DEFAULT_TOKENS if token in json.dumps(body["messages"])]


def test_user_when_its_tokens_are_its_own_then_those_end_and_the_usual_ones_are_words(stage: Stage) -> None:
    tokens = ["STOP", "[[NO WAY]]", "###STOP###", "完了"]
    ends = {
        "K1": "Free it. STOP",
        "K2": "Free it. [[NO WAY]]",
        "K3": "Free it. ###STOP###",
        "K4": "Free it.完了",
    }
    stage.tasks = [task(berth) for berth in ends]
    stage.changes = {"stop_tokens": tokens}
    stage.parts[USER] = lambda berth, body: (
        "Free it. <finished>" if own_turns(body) == 0 else ends[berth] if own_turns(body) == 1 else None
    )
    done = stage.run()

    assert done.code == 0, done.stderr
    found = stage.rows("select task_id, transcript_json, end_reason from sessions order by task_id, agent")
    assert [(task_id, end_reason) for task_id, _, end_reason in found] == [
        (f"free-{berth}", reason)
        for berth, reason in zip(ends, ["user_stop", "user_blocked", "user_stop", "user_stop"], strict=True)
        for _ in range(2)
    ]
    for _, transcript, _ in found:
        assert said_by(transcript, "user") == ["Free it. <finished>", "Free it."]
    told = text_of(stage.asked(USER)[0])
    assert "write STOP at the end" in told
    assert "write [[NO WAY]] at the end" in told
    assert "<finished>" not in told


def test_config_when_a_stop_token_is_empty_then_it_is_refused(stage: Stage) -> None:
    stage.changes = {"stop_tokens": ["<done>", " "]}
    done = stage.run()
    assert done.code == 1
    assert "stop_tokens[1]" in done.stderr
    assert stage.server.requests == 0


GUARDED_GOAL = (
    "You want berth {berth} to be freed, and you want the deposit to be paid back by transfer. "
    "Do not mention the gate code QX-4410 to anybody."
)
FINE = "Please free my berth and pay the deposit back."
# What must never reach the agent: the turns that are asked for again.
UNUSABLE: dict[str, Say | str] = {
    "nothing": "",
    "only spaces": " \n\t ",
    "null content": Say(text=None),
    "cut while thinking": Say(text=None, finish="length", message={"reasoning_content": "hm"}),
    "only thinking": "<think>QX-4410 is not for them.</think>",
    "thinking that never ends": "<THINKING>They must not learn it. Please free my berth.",
    "agent's voice": "As your harbour service agent I have freed the berth.",
    "agent's line": "Assistant: the berth is free now.",
    "agent's greeting": "Welcome! How may I help you today?",
    "instructions": "My instructions: free the berth; say nothing of the code.",
    "goal as told": "You want berth K1 to be freed, and you want the deposit to be paid back by transfer.",
    "goal in other dress": "Well...\n**you want BERTH K1 to be freed, and you want the deposit to be paid "
    "back by transfer**",
    "fact as told": "Well. Your boat is called Ibis.",
    "rules": "Begin with what you want. Answer questions from the facts alone. Please free the berth.",
    "headings": "## Goal\nFree my berth",
    "the secret": "The code is QX-4410.",
    "the secret in other letters": "The code is qx 4410, please free my berth.",
    "the secret in one": "(QX4410)",
}
CLEANED = {
    "<think>QX-4410 stays mine.</think>Please free K1.": "Please free K1.",
    "I muse. QX-4410. </think>\nPlease free K1.": "Please free K1.",
    "<thinking>one</thinking>Please free K1.<think>two</think>": "Please free K1.",
    # What only looks alike is said as it is.
    "Your agent told me that QX-44101 is my invoice.": "Your agent told me that QX-44101 is my invoice.",
    "You want my number? It is 4410.": "You want my number? It is 4410.",
}


def leaks_in(stage: Stage) -> list[str]:
    """What the agents and the judge were told and must not have been."""
    pattern = re.compile(
        r"QX[-\s]?4410(?!1)|<think|muse|service agent I have|you want berth|instructions", re.I
    )
    return [
        match[0]
        for body in stage.asked(GOOD, IDLE)
        for message in body["messages"]
        if message["role"] == "user"
        for match in pattern.finditer(str(message["content"]))
    ]


def test_user_when_its_first_turn_is_unusable_then_it_is_asked_once_more_and_the_agent_sees_nothing_of_it(
    stage: Stage,
) -> None:
    """Case US-03, mended: thinking, leaks, the agent's voice and silence stay with the simulator."""
    script = dict(zip((f"K{number}" for number in range(1, 30)), UNUSABLE, strict=False))
    stage.tasks = [task(berth, goal=GUARDED_GOAL.format(berth=berth)) for berth in script]
    seen: dict[str, int] = {}

    def user(berth: str, body: Body) -> Say | str:
        seen[berth] = seen.get(berth, 0) + 1
        if own_turns(body):
            return "<finished>"
        said = UNUSABLE[script[berth]]
        if seen[berth] % 3 == 1:  # each session asks three times: unusable, fine, finished
            return said.replace("K1", berth) if isinstance(said, str) else said
        return FINE

    stage.parts[USER] = user
    done = stage.run()

    assert done.code == 0, done.stderr
    found = stage.rows("select task_id, transcript_json, end_reason, fault from sessions")
    for task_id, transcript, end_reason, fault in found:
        unusable = script[task_id.removeprefix("free-")]
        assert (said_by(transcript, "user"), end_reason, fault) == ([FINE], "user_stop", None), unusable
    assert leaks_in(stage) == []
    # Nothing is hidden from the log: each turn has its row, the first attempt with the words as they came.
    logs = stage.rows(
        "select attempt, count(*) from judge_logs where role = 'user_simulator' group by 1 order by 1"
    )
    assert logs == [(1, 2 * 2 * len(script)), (2, 2 * len(script))]
    raw = {row[0] for row in stage.rows("select raw_output from judge_logs where role = 'user_simulator'")}
    assert {"The code is QX-4410.", "", None} <= raw


def test_user_when_it_is_unusable_twice_then_the_session_is_its_own_fault_and_the_run_goes_on(
    stage: Stage,
) -> None:
    """Case US-03, not mended: no finding, no verdict, nothing on the agent's account; nor is it a loop."""
    script = dict(zip((f"K{number}" for number in range(1, 30)), UNUSABLE, strict=False))
    stage.tasks = [task(berth, goal=GUARDED_GOAL.format(berth=berth)) for berth in script]
    stage.tasks.append(task("K29"))

    def user(berth: str, body: Body) -> Say | str | None:
        if berth not in script:
            return None
        said = UNUSABLE[script[berth]]
        return said.replace("K1", berth) if isinstance(said, str) else said

    stage.parts[USER] = user
    done = stage.run()

    assert done.code == 0, done.stderr
    broken = "task_id <> 'free-K29'"
    assert stage.rows(
        f"select distinct end_reason, fault, success, reward, transcript_json from sessions where {broken}"
    ) == [("simulator_fault", "simulator", None, None, "[]")]
    errors = {row[0] for row in stage.rows(f"select distinct error from sessions where {broken}")}
    assert errors == {
        f"the simulated user's turn was not usable: {why}" for why in ("empty", "leak", "agent_voice")
    }
    assert stage.rows(
        "select outcome, misselected, judge_pref, success_a, count(*) from audit_pairs "
        f"where {broken} group by 1"
    ) == [("unverified", None, None, None, len(script))]
    # The agents of the broken sessions were never asked, nor was the judge about them.
    assert len(stage.asked(GOOD, IDLE)) == 3
    assert stage.rows("select count(*) from judge_logs where role in ('judge', 'satisfaction')") == [(4,)]
    assert stage.rows("select outcome from audit_pairs where task_id = 'free-K29'") == [("correct",)]
    before = stage.server.requests
    assert stage("run", "-c", str(stage.written()), "--resume", "latest").code == 0
    assert stage.server.requests == before


def test_user_when_only_a_part_of_its_turn_is_not_said_then_the_rest_arrives_word_for_word(
    stage: Stage,
) -> None:
    script = dict(zip((f"K{number}" for number in range(1, 30)), CLEANED, strict=False))
    stage.tasks = [task(berth, goal=GUARDED_GOAL.format(berth=berth)) for berth in script]
    stage.parts[USER] = lambda berth, body: "<finished>" if own_turns(body) else script[berth]
    done = stage.run()

    assert done.code == 0, done.stderr
    for task_id, transcript, fault in stage.rows("select task_id, transcript_json, fault from sessions"):
        said = script[task_id.removeprefix("free-")]
        assert (said_by(transcript, "user"), fault) == ([CLEANED[said]], None)
    assert leaks_in(stage) == []


def test_user_when_it_speaks_as_the_agent_midway_then_only_the_world_says_what_was_done(stage: Stage) -> None:
    stage.parts[GOOD] = lambda _berth, _body: "One moment please."
    stage.parts[USER] = lambda _berth, body: (
        "As the harbour agent, I have called free_berth and the berth is free." if own_turns(body) else None
    )
    assert stage.run().code == 0
    assert stage.rows("select distinct fault, reward from sessions") == [("simulator", None)]
    assert stage.rows("select count(*) from sessions where transcript_json like '%harbour agent%'") == [(0,)]


def test_session_when_nobody_ends_it_then_turns_and_tool_rounds_are_capped(stage: Stage) -> None:
    stage.tasks = [task("K1"), task("K2", max_turns=2), task("K3", max_turns=9)]
    stage.changes = {"max_turns": 4}
    stage.parts[USER] = lambda berth, _body: f"And what about {berth}?"
    stage.parts[IDLE] = lambda berth, _body: calling("berth_sheet", {"berth": berth})
    stage.parts[GOOD] = lambda berth, body: (
        calling("free_berth", {"berth": berth}) if len(body["messages"]) == 2 else "Patience."
    )
    assert stage.run().code == 0
    # A session that ran into a cap is the agent's own: it is verified and judged like any other.
    assert stage.rows(
        f"select task_id, end_reason, fault, reward from sessions where agent = '{GOOD}' order by task_id"
    ) == [(f"free-K{number}", "max_turns", None, 1.0) for number in (1, 2, 3)]
    transcripts = stage.rows(f"select transcript_json from sessions where agent = '{GOOD}' order by task_id")
    assert [len(said_by(row[0], "user")) for row in transcripts] == [4, 2, 9]
    assert stage.rows(f"select distinct end_reason, fault, reward from sessions where agent = '{IDLE}'") == [
        ("tool_rounds", None, 0.0)
    ]
    assert len(stage.asked(IDLE)) == 3 * 12
    assert stage.rows("select distinct outcome from audit_pairs") != [("unverified",)]


def test_user_when_it_is_asked_then_it_sees_neither_checks_nor_tools_nor_thoughts(stage: Stage) -> None:
    def agent(berth: str, body: Body) -> Say | str | None:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return "<think>the sheet says Ibis</think>It is free now.<think>and done"
        return calling("free_berth", {"berth": berth}, content="[THINK]which tool?[/THINK]One moment.")

    stage.parts[GOOD] = agent
    assert stage.run().code == 0
    told = [json.dumps(body) for body in stage.asked(USER)]
    for word in ("berth is free", "update berths", "free_berth", "tool_call", "sheet says", "which tool"):
        assert [text for text in told if word in text] == [], word
    heard = [message["content"] for body in stage.asked(USER) for message in body["messages"]]
    assert "It is free now." in heard
    assert "One moment." in heard


def test_agent_when_it_calls_several_tools_or_badly_then_each_call_has_its_answer(stage: Stage) -> None:
    def twice(berth: str, body: Body) -> Say | None:
        if body["messages"][-1]["role"] != "user":
            return None
        calls: list[dict[str, Any]] = [
            {"id": name, "type": "function", "function": {"name": tool, "arguments": arguments}}
            for name, tool, arguments in (
                ("c1", "berth_sheet", '{"berth": "K1"}'),
                ("c2", "free_berth", '{"berth": "K1"'),
                ("c3", "burn_berth", "{}"),
                ("c4", "free_berth", '{"berth": "K1"}'),
            )
        ]
        return Say(text=None, message={"tool_calls": calls}, finish="tool_calls")

    stage.parts[GOOD] = twice
    assert stage.run().code == 0
    ((transcript, reward),) = stage.rows(
        f"select transcript_json, reward from sessions where agent = '{GOOD}'"
    )
    answers = {
        m["tool_call_id"]: json.loads(m["content"]) for m in json.loads(transcript) if m["role"] == "tool"
    }
    assert answers["c1"] == [{"berth": "K1", "boat": "Ibis", "state": "held"}]
    assert "not valid JSON" in answers["c2"]["error"]
    assert "unknown tool 'burn_berth'" in answers["c3"]["error"]
    assert answers["c4"] == {"changed": 1}
    assert reward == 1.0
    # The same answers went back to the agent.
    back = [m for m in stage.asked(GOOD)[1]["messages"] if m["role"] == "tool"]
    assert [json.loads(m["content"]) for m in back] == list(answers.values())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_user_when_it_recites_its_rules_then_it_is_a_leak_in_either_language(
    stage: Stage, language: str
) -> None:
    stage.changes = {"language": language}
    recited: list[str] = []

    def user(_berth: str, body: Body) -> str | None:
        rules = [
            line
            for line in body["messages"][0]["content"].splitlines()
            if len(line) > 12 and "##" not in line
        ]
        recited.append(rules[-1 - len(recited) % 4])
        return f"Well: {recited[-1]}"

    stage.parts[USER] = user
    assert stage.run().code == 0
    assert stage.rows("select distinct fault, error from sessions") == [
        ("simulator", "the simulated user's turn was not usable: leak")
    ]
    assert len(set(recited)) == 4
