"""The sessions of the pairs at hand, as they are trained on: read and cleaned once while they are held."""

import json
from collections.abc import Iterable, Sequence

from audit.doors.ask_dpo import Candidate, Told
from audit.verbs.dpo import cleaned, shared
from audit.verbs.dpo_text import addresses_judge, may_think
from audit.words.calls import Message
from audit.words.text import from_json

# Sessions are in many pairs, mostly of one task, whose pairs come one after the other: so many characters of
# them are held beyond those that the pairs at hand need.
_HELD_CHARS = 200_000


class Cleaned:
    """A session as it is trained on. Of its tool calls the first and the last message that has one."""

    __slots__ = ("_is_suspect", "chars", "first_call", "last_call", "messages", "task")

    def __init__(self, messages: list[Message], chars: int, task: str | None) -> None:
        self.messages = messages
        self.chars = chars
        self.task = task
        calling = [at for at, message in enumerate(messages) if "tool_calls" in message]
        self.first_call = calling[0] if calling else len(messages)
        self.last_call = calling[-1] if calling else -1
        self._is_suspect: bool | None = None

    def is_suspect(self) -> bool:
        """Does the agent address the judge? Looked for once, where somebody asks."""
        if self._is_suspect is None:
            self._is_suspect = addresses_judge(self.messages)
        return self._is_suspect


class Sessions:
    """session_id -> the session, for all that the pairs at hand need."""

    def __init__(self, stop_tokens: Sequence[str]) -> None:
        self._held: dict[str | None, Cleaned | None] = {}
        self._chars = 0
        self._before: list[Message] = []
        # Tokens that stand in JSON as they are can be looked for before it is parsed.
        self._plain_tokens = tuple(token for token in stop_tokens if json.dumps(token) == f'"{token}"')
        self._token_starts = {token[:1] for token in self._plain_tokens}
        self._odd_tokens = tuple(token for token in stop_tokens if token not in self._plain_tokens)

    def missing(self, pairs: Iterable[Candidate]) -> list[str]:
        """The sessions of these pairs that are to be read; where much is held, the others are forgotten."""
        needed = {side: None for pair in pairs for side in (pair.session_a, pair.session_b)}
        if self._chars > _HELD_CHARS:
            self._held = {side: self._held[side] for side in needed if side in self._held}
            self._chars = sum(session.chars for session in self._held.values() if session)
        return [side for side in needed if side is not None and side not in self._held]

    def take(self, told: Iterable[Told]) -> None:
        """Sessions as they are stored."""
        for session_id, transcript, source in told:
            self._held[session_id] = None if transcript is None else self._cleaned(transcript, source)

    def get(self, session_id: str | None) -> Cleaned | None:
        """The session; NULL where nobody knows what was said."""
        return self._held.get(session_id)

    def _cleaned(self, transcript: str, source: str | None) -> Cleaned:
        tokens = self._odd_tokens
        if any(start in transcript for start in self._token_starts):
            tokens += tuple(token for token in self._plain_tokens if token in transcript)
        messages = cleaned(from_json(transcript), tokens, may_think=may_think(transcript))
        # Sessions of one task begin alike: what is the same object needs no comparing in any pair, and is
        # held once.
        alike = shared(self._before, messages)
        messages[:alike] = self._before[:alike]
        self._before = messages
        self._chars += len(transcript)
        return Cleaned(messages, len(transcript), None if source is None else _task(source))


def _task(source_json: str) -> str | None:
    goal = json.loads(source_json).get("goal")
    return goal if isinstance(goal, str) else None
