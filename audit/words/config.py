"""What `audit.yaml` may say. No type is guessed, no unknown key is taken, every fault is told at once."""

import json
import types
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from audit.words.budgets import STRICT, Budget, Price
from audit.words.errors import BadFile
from audit.words.keys import begins_as_key, is_guessable, is_variable, shown
from audit.words.names import SUCCESS_AT, GapScope, GapSource, gate_of
from audit.words.nearest import did_you_mean
from audit.words.roles import KNOWN_ROLES, is_slip, meant_role, named_roles
from audit.words.thresholds import metric_faults

_Name = TypeVar("_Name", str, tuple[str, ...])
MOST_SESSIONS = 10_000_000
Seed = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
Token = Annotated[str, Field(pattern=r"\S")]


class _Strict(BaseModel):
    model_config = STRICT


class Profile(_Strict):
    """One model behind one gateway."""

    name: Annotated[str, Field(min_length=1)]
    base_url: Annotated[str, Field(min_length=1)]
    model: Annotated[str, Field(min_length=1)]
    role: str
    api_key_env: str | None = None
    api_key: SecretStr | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    seed: Seed | None = None
    timeout_s: Annotated[float, Field(gt=0)] = 120.0
    attempts: Annotated[int, Field(ge=1)] = 4
    rpm: Annotated[float, Field(gt=0)] | None = None
    tpm: Annotated[float, Field(gt=0)] | None = None
    concurrency: Annotated[int, Field(ge=1)] | None = None
    extra: dict[str, Any] = {}

    @field_validator("api_key", mode="before")
    @classmethod
    def _hide(cls, value: object) -> object:
        # Wrapped before anything can fail, so that no message shows it.
        return SecretStr(value) if isinstance(value, str) else value

    @field_validator("role")
    @classmethod
    def _one_of_ours(cls, value: str) -> str:
        meant = None if value in KNOWN_ROLES else meant_role(value)
        if meant is not None:
            raise ValueError(f"there is no role {shown(value)} (did you mean {meant}?)")
        return value

    @field_validator("api_key_env")
    @classmethod
    def _variable(cls, value: str | None) -> str | None:
        if value is not None and not is_variable(value):
            raise ValueError("expected the name of a variable such as JUDGE_KEY, not the key itself")
        return value

    @field_validator("model")
    @classmethod
    def _no_key(cls, value: str) -> str:
        if begins_as_key(value):
            raise ValueError("expected the name of a model; this looks like a key, which no config holds")
        return value

    @field_validator("extra")
    @classmethod
    def _sendable(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise ValueError("holds what JSON cannot: a date, an infinite number, or itself") from None
        ours = sorted({"model", "messages", "stream", "tools"} & value.keys())
        if ours:
            raise ValueError(f"has no place for {', '.join(ours)}: every call has its own")
        return value


class Panel(_Strict):
    """Several judges that vote as one gate. `escalate: contested` asks the later ones only where needed."""

    members: Annotated[list[str], Field(min_length=1)]
    name: str | None = None
    vote: Literal["majority", "unanimous"] = "majority"
    escalate: Literal["always", "contested"] = "always"
    contested_below: Annotated[float, Field(ge=0)] = 1.0

    @property
    def gate(self) -> str:
        """The gate's name in the database."""
        return gate_of(self.name, self.members)


class Threshold(_Strict):
    """One limit of the command `gate`: by the value itself or a bound of its interval.

    `on_unknown`: what it means that a run has too few pairs to tell.
    """

    max: float | None = None
    min: float | None = None
    by: Literal["value", "lower", "upper"] = "value"
    on_unknown: Literal["pass", "fail"] = "fail"

    @model_validator(mode="after")
    def _has_a_limit(self) -> "Threshold":
        if self.max is None and self.min is None:
            raise ValueError("expected max or min")
        return self


class _Gate(_Strict):
    """A config's thresholds alone."""

    gate: dict[str, Threshold]


class Sessions(_Strict):
    """Recorded sessions, judged instead of simulated ones; `agents`: one for all files, or one a file."""

    format: Literal["tau", "tau2", "inspect", "sessions"]
    files: Annotated[list[str], Field(min_length=1)]
    agents: list[str] = []


class Config(_Strict):
    """A whole audit: who simulates, who acts, who judges, on which tasks, and how it is scored.

    `agents` and `user` are empty where `sessions` are judged instead of simulated ones.
    `transcript_tokens`: a longer session is cut to about so many tokens for the judge.
    """

    name: str = "audit"
    profiles: Annotated[list[Profile], Field(min_length=1)]
    agents: Annotated[list[str], Field(min_length=2)] = []
    user: Annotated[str, Field(min_length=1)] = ""
    judges: Annotated[list[Panel], Field(min_length=1)]
    tasks: list[str] = []
    sessions: Sessions | None = None
    trials: Annotated[int, Field(ge=1, le=MOST_SESSIONS)] = 1
    pairs: Literal["all", "adjacent"] | list[list[str]] = "all"
    sample: Annotated[int, Field(ge=1)] | None = None
    swap_rule: Literal["both_agree", "net_vote"] = "both_agree"
    gap_source: GapSource = "agent"
    gap_scope: GapScope = "run"
    buckets: str | None = None
    near: float | None = None
    satisfied_at: Annotated[float, Field(ge=0, le=1)] = 0.8
    success_at: float = SUCCESS_AT
    language: Literal["en", "zh"] = "en"
    seed: Seed = 0
    max_turns: Annotated[int, Field(ge=1)] = 20
    stop_tokens: Annotated[list[Token], Field(min_length=1)] = [
        "<finished>",
        "<blocked>",
        "###STOP###",
    ]
    transcript_tokens: Annotated[int, Field(ge=500)] = 20_000
    llm_labels_count: bool = False
    max_error_rate: Annotated[float, Field(ge=0, le=1)] = 0.05
    budget: Budget = Budget()
    prices: dict[str, Price] = {}
    gate: dict[str, Threshold] = {}

    @field_validator("judges", mode="before")
    @classmethod
    def _panels(cls, value: object) -> object:
        """A name, a panel, or a list of both: each is a gate."""
        items = value if isinstance(value, list) else [value]
        return [{"members": [item]} if isinstance(item, str) else item for item in items]

    @field_validator("tasks", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    def profile(self, name: str) -> Profile:
        """The profile with this name."""
        return next(profile for profile in self.profiles if profile.name == name)

    def price_of(self, profile_name: str) -> Price | None:
        """What the model of a profile takes; NULL where it is not known. The synthetic ones take nothing."""
        profile = next((profile for profile in self.profiles if profile.name == profile_name), None)
        if profile is None:
            return None
        free = Price(prompt=0, completion=0) if profile.base_url.startswith("offline://") else None
        return self.prices.get(profile.model, free)

    def judge_names(self) -> list[str]:
        """The profiles of all judges, panel by panel."""
        return [name for panel in self.judges for name in panel.members]

    def role_names(self) -> list[str]:
        """The profiles that are used: the user's, the agents', the judges'."""
        return [*([self.user] if self.user else []), *self.agents, *self.judge_names()]

    def agent_pairs(self) -> list[tuple[str, str]]:
        """The pairs of agents to be judged, side A first."""
        agents = self.agents
        if self.pairs == "adjacent":
            return list(pairwise(agents))
        if isinstance(self.pairs, list):
            return [(pair[0], pair[1]) for pair in self.pairs]
        return [(a, b) for i, a in enumerate(agents) for b in agents[i + 1 :]]


def check_config(found: Any, file: str, *, judges_only: bool = False) -> Config:
    """The config that a file holds. Raises BadFile with every fault, each with its key path.

    `judges_only`: sessions are recorded already, so that nobody need be named who holds some. Profiles of
    roles that are none of ours belong to other programs: they are passed over unread.
    """
    if not isinstance(found, dict):
        raise BadFile(file, "", "expected keys such as `profiles:` and `agents:` at the top")
    listed = found.get("profiles")
    ours = [index for index, profile in enumerate(_list(listed)) if not is_foreign(profile)]
    wanted = found | {"profiles": [listed[index] for index in ours]} if isinstance(listed, list) else found
    faults: list[str] = []
    config = None
    try:
        config = Config.model_validate(wanted)
    except ValidationError as error:
        faults = [_fault(item, ours) for item in error.errors(include_url=False)]
    faults += _name_faults(found) + metric_faults(found.get("gate"))
    if not judges_only:
        faults += _simulation_faults(found)
    if config is None or faults:
        raise BadFile(file, "", "; ".join(faults), faults)
    return config


def check_profile(found: Any) -> Profile | None:
    """One profile as it is written, NULL where it has a fault. `check_config` tells which."""
    try:
        return Profile.model_validate(found)
    except ValidationError:
        return None


def check_thresholds(found: Any, file: str) -> dict[str, Threshold]:
    """The limits under `gate` of a config, whatever else it says. Raises BadFile with every fault."""
    if not isinstance(found, dict) or not isinstance(found.get("gate"), dict) or not found["gate"]:
        raise BadFile(file, "", "no thresholds: write e.g. gate: {near.misselected_of_decided: {max: 0.25}}")
    faults = metric_faults(found["gate"])
    limits: dict[str, Threshold] = {}
    try:
        limits = _Gate.model_validate({"gate": found["gate"]}).gate
    except ValidationError as error:
        faults += [_fault(item, []) for item in error.errors(include_url=False)]
    if faults:
        raise BadFile(file, "", "; ".join(faults))
    return limits


def is_foreign(profile: object) -> bool:
    """Is it a profile of a role that is none of ours, and no slip of one?"""
    role = profile.get("role") if isinstance(profile, dict) else None
    return isinstance(role, str) and role not in KNOWN_ROLES and meant_role(role) is None


def _name_faults(found: dict[str, Any]) -> list[str]:
    """Names that lead nowhere. Looks at the file as it is, so that they are told beside every other fault."""
    listed = found.get("profiles")
    profiles = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    names = [item["name"] for item in profiles if isinstance(item.get("name"), str)]
    roles = {item.get("name"): item.get("role") for item in profiles if isinstance(item.get("name"), str)}
    faults = [f"profiles: the name {name!r} stands twice" for name in _twice(names)]
    for path, name, role in named_roles(found):
        if name not in roles:
            faults.append(f"{path}: there is no profile {name!r}{did_you_mean(name, map(str, roles))}")
        elif roles[name] != role and not is_slip(roles[name]):
            faults.append(f"{path}: profile {name!r} has the role {roles[name]!r}, not {role!r}")
    agents = [agent for agent in _list(found.get("agents")) if isinstance(agent, str)]
    faults += [f"agents: {name!r} stands twice" for name in _twice(agents)]
    named = [tuple(sorted(map(str, pair))) for pair in _list(found.get("pairs")) if isinstance(pair, list)]
    faults += [f"pairs: {' and '.join(pair)} stand twice" for pair in _twice(named)]
    if found.get("pairs") == []:
        faults.append("pairs: expected one pair of agents or more, found none")
    faults += _panel_faults(found.get("judges"))
    for index, pair in enumerate(_list(found.get("pairs"))):
        if isinstance(pair, list) and (len(pair) != 2 or pair[0] == pair[1]):
            faults.append(f"pairs[{index}]: expected two different agents, found {pair}")
        faults += [
            f"pairs[{index}]: {name!r} is none of the agents{did_you_mean(str(name), agents)}"
            for name in _list(pair)
            if name not in agents
        ]
    return faults


def _simulation_faults(found: dict[str, Any]) -> list[str]:
    """Who holds the sessions: agents and a user, or none of them where `sessions` are given."""
    recorded = "sessions" in found
    faults = [f"{key}: is missing" for key in ("agents", "user") if key not in found and not recorded]
    simulated = ("agents", "user", "tasks", "trials", "pairs")
    return faults + [f"{key}: has no place beside sessions" for key in simulated if key in found and recorded]


def _panel_faults(judges: object) -> list[str]:
    """Gates of one name, which would be one and the same; and members that would vote twice."""
    faults, gates = [], []
    for panel in judges if isinstance(judges, list) else [judges]:
        members = (
            [panel] if isinstance(panel, str) else _list(isinstance(panel, dict) and panel.get("members"))
        )
        names = [name for name in members if isinstance(name, str)]
        faults += [f"judges: {name!r} is a member of one panel twice" for name in _twice(names)]
        if names:
            name = panel.get("name") if isinstance(panel, dict) else None
            gates.append(name if isinstance(name, str) else Panel(members=names).gate)
    return faults + [f"judges: the gate {name!r} stands twice" for name in _twice(gates)]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _twice(names: list[_Name]) -> list[_Name]:
    return sorted({name for name in names if names.count(name) > 1})


def _fault(item: Any, ours: list[int]) -> str:
    """One fault in words; `ours` holds where the profiles that were looked at stand in the file."""
    where = list(item["loc"])
    if where[0] == "profiles" and len(where) > 1:
        where[1] = ours[where[1]]
    # Of a choice of types pydantic names each as a step of the path: `pairs.literal['all','adjacent']`.
    steps = [part for part in where if isinstance(part, int) or "[" not in part]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in steps).lstrip(".")
    kind = item["type"]
    if kind == "extra_forbidden":
        # `{api_key:sk-1}`, without a blank, is one key.
        path = path if is_guessable(str(item["loc"][-1])) else shown(item["loc"][-1])
        return f"{path}: unknown key{did_you_mean(str(item['loc'][-1]), _keys_at(item['loc'][:-1]))}"
    if kind == "missing":
        return f"{path}: is missing"
    if kind == "value_error":
        message = str(item["msg"]).removeprefix("Value error, ")
        return f"{path}: {message}" if path else message
    if kind == "too_short":
        least = item["ctx"]["min_length"]
        return f"{path}: expected {least} or more, found {len(item['input'])}"
    if kind == "string_pattern_mismatch":
        return f"{path}: expected text that is not blank"
    found = "a secret" if path.endswith(("api_key", "api_key_env")) else shown(item["input"])
    wanted = (
        "text: put it in quotes"
        if kind == "string_type"
        else str(item["msg"]).removeprefix("Input should be ")
    )
    return f"{path}: expected {wanted}, found {found}"


def _keys_at(path: tuple[Any, ...]) -> list[str]:
    """The keys that are known where a path of the config leads."""
    model: type[BaseModel] = Config
    for part in path:
        if isinstance(part, int) or part not in model.model_fields:
            continue
        model = _model_in(model.model_fields[part].annotation) or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, dict, Union, types.UnionType, Annotated):
        for inner in get_args(annotation):
            found = _model_in(inner)
            if found is not None:
                return found
    return None
