"""Small results of tau-bench and tau2-bench, written for the tests; with them what must not be kept."""

from typing import Any

SECRET = "sk-not-to-be-kept"  # noqa: S105 - what must not be found in any table


def tau_run(task_id: int = 0, trial: int = 0, reward: float | None = 1.0, **changes: Any) -> dict[str, Any]:
    """One run of tau-bench: a policy, a question, a call with its result, an answer."""
    call = {"id": "call_Zx9", "type": "function", "function": {"name": "find", "arguments": '{"order": 17}'}}
    return {
        "task_id": task_id,
        "reward": reward,
        "info": {
            "task": {
                "user_id": "u1",
                "instruction": f"Ask for order {task_id}.",
                "actions": [],
                "outputs": [],
            },
            "source": "user",
            "user_cost": 0.1,
            "reward_info": {
                "reward": reward,
                "info": {"r_actions": reward, "gt_data_hash": "ab"},
                "actions": [],
            },
        },
        "traj": [
            {"role": "system", "content": "# Airline Agent Policy\n\nBe kind."},
            {"role": "user", "content": "Where is order 17?"},
            {"role": "assistant", "content": None, "tool_calls": [call], "api_key": SECRET},
            {"role": "tool", "tool_call_id": "call_Zx9", "name": "find", "content": '{"found": true}'},
            {"role": "assistant", "content": "Here it is."},
        ],
        "trial": trial,
    } | changes


def tau2_task(task_id: str, reason: str = "a refund") -> dict[str, Any]:
    return {
        "id": task_id,
        "description": {"purpose": "notes that make no other task"},
        "user_scenario": {"persona": None, "instructions": {"domain": "shop", "reason_for_call": reason}},
        "initial_state": None,
        "evaluation_criteria": {"actions": [], "reward_basis": ["DB", "COMMUNICATE"]},
    }


def tau2_run(task_id: str, reward: float | None = 1.0, **changes: Any) -> dict[str, Any]:
    """One simulation of tau2-bench, in which the agent and the user each call a tool of their own."""
    agents = {"id": "toolu_1", "name": "lookup", "arguments": {"id": 17}, "requestor": "assistant"}
    users = {"id": "toolu_2", "name": "toggle", "arguments": {}, "requestor": "user"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    found = {
        "reward": reward,
        "db_check": {"db_match": reward == 1, "db_reward": reward},
        "nl_assertions": [{"nl_assertion": "is kind", "met": True, "justification": "it was"}],
        "reward_basis": ["DB", "COMMUNICATE"],
        "reward_breakdown": {"DB": reward, "COMMUNICATE": 1.0},
    }
    return {
        "id": "s",
        "task_id": task_id,
        "termination_reason": "user_stop",
        "reward_info": found if reward is not None else None,
        "messages": [
            {"role": "assistant", "content": "Hi!", "usage": None},
            {"role": "user", "content": "My phone is dead.", "usage": usage},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [agents],
                "usage": usage,
                "raw_data": SECRET,
            },
            {"role": "tool", "id": "toolu_1", "content": "line 17", "requestor": "assistant"},
            {"role": "assistant", "content": "Toggle it.", "usage": usage},
            {"role": "user", "content": None, "tool_calls": [users]},
            {"role": "tool", "id": "toolu_2", "content": "on", "requestor": "user"},
        ],
        "trial": 0,
    } | changes


def tau2_results(agent: str, *runs: dict[str, Any], reason: str = "a refund") -> dict[str, Any]:
    """A results object of one agent, with a task for every id that a simulation names."""
    return {
        "info": {
            "agent_info": {"implementation": "llm_agent", "llm": agent, "llm_args": {"api_key": SECRET}},
            "environment_info": {"domain_name": "shop", "policy": "Be fair."},
        },
        "tasks": [tau2_task(name, reason) for name in dict.fromkeys(str(run["task_id"]) for run in runs)],
        "simulations": list(runs),
    }
