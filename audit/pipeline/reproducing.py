"""Reproduce: a published table of agents becomes the near/wide table again, from its rewards and rankings."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from audit.doors.files import csv_rows
from audit.doors.formats.fields import Row, strange_columns
from audit.doors.shipped import shipped
from audit.statistics.agents import (
    AgentPair,
    agent_pair,
    independent_se,
    is_near,
    misselection,
    pick_of,
    summary,
)
from audit.statistics.curve import error_curve_of_agents
from audit.words.errors import BadFile
from audit.words.names import TOLERANCE

SOURCE = "GAUGE, arXiv:2609.12191, Table 8"
NEAR_BELOW = 0.10
THRESHOLDS = (0.05, 0.10, 0.15)
# Judge -> what the paper's Table 9 says of it: misselected near and wide. It stands beside our figures and
# enters none of them.
PAPER = {
    "rank_opus48": {"near": 0.310, "wide": 0.009},
    "rank_gpt55": {"near": 0.391, "wide": 0.076},
    "score_proxy": {"near": 0.299, "wide": 0.104},
}
_PLAIN = ("agent", "base_model", "reward", "reward_se")
_NO_ERRORS = "the file gives no reward_se"


class Agent(NamedTuple):
    """One line. `signals`: judge -> what it says of the agent, higher is better; NULL for silence."""

    name: str
    family: str
    reward: Decimal
    se: float | None
    signals: dict[str, Decimal | None]


def reproduce_gauge(path: Path | None = None) -> dict[str, Any]:
    """Everything `reproduce gauge` shows, computed from the file's lines; default: the paper's own table.

    Raises BadFile for a file that is no such table.
    """
    file = path or shipped("data") / "gauge_agents.csv"
    agents = _agents(file)
    family = {agent.name: agent.family for agent in agents}
    judges = {judge: _pairs(agents, judge) for judge in agents[0].signals}
    any_judge = next(iter(judges.values()))
    about = summary(any_judge, NEAR_BELOW, family)
    floor: dict[str, Any] = {half: about[f"noise_floor_{half}"] for half in ("near", "wide")}
    if floor["near"] is None and floor["wide"] is None:
        floor["why"] = _NO_ERRORS
    return {
        "source": SOURCE if path is None else str(path),
        "agents": len(agents),
        "families": len(set(family.values())),
        "near_below": NEAR_BELOW,
        "agent_pairs": len(any_judge),
        "reward_ties": about["reward_ties"],
        "on_the_edge": sum(abs(pair.gap - NEAR_BELOW) <= TOLERANCE for pair in any_judge),
        "noise_floor": floor,
        "judges": [_judge(judge, pairs, family) for judge, pairs in judges.items()],
    }


def _agents(file: Path) -> list[Agent]:
    agents: dict[str, Agent] = {}
    judges: list[str] = []
    for number, fields in csv_rows(file):
        row = Row(str(file), f"line {number}", fields)
        if not agents:
            judges = _judges(row)
        agent = _agent(row, judges)
        if agent.name in agents:
            raise row.wrong("agent", f"{agent.name!r} stands twice in the file")
        agents[agent.name] = agent
    if len(agents) < 2:
        raise BadFile(str(file), "", f"expected two agents or more, found {len(agents)}")
    return list(agents.values())


def _judges(row: Row) -> list[str]:
    """The columns that are judges; a header that lacks a needed one is refused."""
    judges = [column for column in row.fields if column.startswith(("rank_", "score_"))]
    strange_columns(row, (*_PLAIN, *judges))
    for column in ("agent", "reward"):
        if column not in row.fields:
            raise row.wrong(column, "is missing: the header does not name it")
    if not judges:
        raise BadFile(row.file, "line 1", "no judge: expected a column named rank_... or score_...")
    return judges


def _agent(row: Row, judges: Sequence[str]) -> Agent:
    name = row.needed_text("agent")
    reward = _decimal(row, "reward")
    if reward is None:
        raise row.wrong("reward", "is missing")
    signals = {judge: _decimal(row, judge) for judge in judges}
    better = {
        judge: -value if value is not None and judge.startswith("rank_") else value
        for judge, value in signals.items()
    }
    return Agent(name, row.text("base_model") or name, reward, row.number("reward_se", low=0), better)


def _decimal(row: Row, field: str) -> Decimal | None:
    """The number as it is written: 0.3 and 0.30 are equal, and 0.8 - 0.7 is 0.1."""
    return None if row.number(field) is None else Decimal(row.fields[field].strip())


def _pairs(agents: Sequence[Agent], judge: str) -> list[AgentPair]:
    pairs = []
    for a, b in combinations(agents, 2):
        signal_a, signal_b = a.signals[judge], b.signals[judge]
        pick = None if signal_a is None or signal_b is None else pick_of(signal_a, signal_b)
        # All that a table of agents has: luck with tasks that both did is taken as independent.
        se = None if a.se is None or b.se is None else independent_se(a.se, b.se)
        pairs.append(agent_pair(a.name, b.name, a.reward - b.reward, pick, se))
    return pairs


def _judge(judge: str, pairs: Sequence[AgentPair], family: dict[str, str]) -> dict[str, Any]:
    found = summary(pairs, NEAR_BELOW, family)
    known = [pair for pair in pairs if pair.misselected is not None]
    return {
        "judge": judge,
        "near": found["near"],
        "wide": found["wide"],
        "paper": PAPER.get(judge),
        "pick_ties": found["pick_ties"],
        "no_pick": found["no_pick"],
        "regret": found["regret"],
        "thresholds": [
            {
                "below": edge,
                "misselected": misselection([pair for pair in pairs if is_near(pair.gap, edge)], family),
            }
            for edge in THRESHOLDS
        ],
        "error_curve": error_curve_of_agents(
            [pair.gap for pair in known],
            [pair.misselected for pair in known],
            [family[pair.agent_a] for pair in known],
            [family[pair.agent_b] for pair in known],
        ),
    }
