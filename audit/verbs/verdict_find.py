"""Finding the JSON objects of a reply: bare, fenced, among prose, cut off, or broken."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from audit.verbs.verdict_claims import MOST_CLAIMS, TooManyClaims
from audit.verbs.verdict_text import thinking_spans

_KEY_AND_COLON = r"(?:[\"'“”‘]?\w[\w -]{0,39}[\"'“”’]?\s*+:)"
_OPENS = re.compile(rf"\{{\s*+{_KEY_AND_COLON}")
_OPENS_A_LINE = re.compile(rf"^\{{\s*+{_KEY_AND_COLON}", re.MULTILINE)
# A string left open lasts to the end of the text, so that the next quote mark does not scan the same text
# again.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[{}]', re.DOTALL)
_TOKEN_SINGLE = re.compile(r"'(?:[^'\\]|\\.)*+(?:'|\Z)|" + _TOKEN.pattern, re.DOTALL)
_SINGLE_QUOTED = re.compile(r"\{\s*+'")

_WINNER_WORDS = r"(?:winner|verdict|choice|preference|preferred|decision|胜者|获胜者|选择|结论)"
_WINNER_WORD = re.compile(rf"[\"']{_WINNER_WORDS}[\"']", re.IGNORECASE)
_WINNER_KEY = re.compile(rf"\b{_WINNER_WORDS}[\"'”]?\s{{0,8}}:", re.IGNORECASE)
_VALUE = re.compile(r"\s{0,8}:\s{0,8}(?:\"[^\"]{0,80}\"|'[^']{0,80}'|“[^”]{0,80}”|[\w ()]{1,40}[,}\n])")
_CUT_NUMBER = re.compile(r",\s{0,9}[\"']?\w{1,40}[\"']?\s?:\s?[-+.\deE]{1,40}\Z")

# json_repair takes quadratic time on some malformed texts; no verdict is that long and that broken.
_MAX_REPAIR, _MAX_BRACES = 60_000, 40
MAX_DEPTH = 60


@dataclass(frozen=True, slots=True)
class Found:
    """A JSON object at [start, end) of the reply.

    strict     it was valid JSON as it stood (NaN and Infinity, which Python's json reads, count as valid)
    repeated   it gives one of its keys for the winner twice
    """

    start: int
    end: int
    fields: dict[str, object]
    strict: bool
    repeated: bool


def find_objects(text: str, raw: str) -> tuple[list[Found], str]:
    """The answer's objects in order, and the text with the thinking blanked out.

    `text` is searched; `raw`, of the same length, is what is read. A thinking tag inside a valid object is
    a word of its strings, not a tag.
    """
    if not thinking_spans(text):
        return _scan(text, raw), text
    masked = _blank(text, [(found.start, found.end) for found in _scan(text, raw, repair=False)])
    answer = _blank(text, thinking_spans(masked))
    return _scan(answer, raw), answer


def _blank(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in spans:
        pieces += [text[at:start], "\n" * (end - start)]
        at = end
    return "".join([*pieces, text[at:]])


def _scan(text: str, raw: str, repair: bool = True) -> list[Found]:
    """The outermost objects. An object that never closes is the answer cut off, or a quotation left open.

    It is taken for a quotation only when a whole object follows at the start of a line.
    """
    found: list[Found] = []
    opens, at, open_ended = _OPENS, 0, -1
    retries = 3
    while match := opens.search(text, at):
        start = match.start()
        end = _closing(text, start)
        if end is None:
            open_ended = start if open_ended < 0 else open_ended
            retries -= 1
            if not retries:
                break
            opens, at = _OPENS_A_LINE, start + 1
            continue
        if piece := _read(raw[start:end], start, closed=True, repair=repair):
            found.append(piece)
            if len(found) > MOST_CLAIMS:
                raise TooManyClaims
        at = end
    follows = any(
        piece.start > open_ended and _WINNER_KEY.search(raw, piece.start, piece.end) for piece in found
    )
    if (
        open_ended >= 0
        and repair
        and not follows
        and (cut := _read(raw[open_ended:], open_ended, closed=False))
    ):
        return [*(piece for piece in found if piece.end <= open_ended), cut]
    return found


def _closing(text: str, start: int) -> int | None:
    """The end of the object that opens at `start`; braces within its strings do not count."""
    token = _TOKEN_SINGLE if _SINGLE_QUOTED.match(text, start) else _TOKEN
    depth = 0
    for match in token.finditer(text, start):
        brace = match[0]
        if brace == "{":
            depth += 1
        elif brace == "}":
            depth -= 1
            if depth == 0:
                return match.end()
    return None


def _read(piece: str, start: int, closed: bool, repair: bool = True) -> Found | None:
    end = start + len(piece)
    fields, repeated = _loads(piece, strict=True)
    if fields is not None:
        return Found(start, end, fields, True, repeated)
    if not repair or not _WINNER_KEY.search(piece):
        return None
    if not closed:
        piece = _CUT_NUMBER.sub("", piece)
    whole = _winner_values(piece)
    # A winner that is itself cut ("t...) could still have become any word.
    if not closed and not all(whole or [False]):
        return None
    fields, _ = _loads(piece, strict=False)
    if fields is None:
        fields = _repair(piece)
    repeated = len(whole) > 1
    return None if fields is None else Found(start, end, fields, False, repeated)


def _winner_values(piece: str) -> list[bool]:
    """For each time the broken object, not one within it, names a winner: whether its value is complete."""
    token = _TOKEN_SINGLE if _SINGLE_QUOTED.match(piece) else _TOKEN
    whole, depth = [], 0
    for match in token.finditer(piece):
        if match[0] in "{}":
            depth += 1 if match[0] == "{" else -1
        elif (
            depth == 1
            and _WINNER_WORD.fullmatch(match[0])
            and piece[match.end() : match.end() + 9].lstrip().startswith(":")
        ):
            whole.append(_VALUE.match(piece, match.end()) is not None)
    if not whole and (bare := _WINNER_KEY.search(piece)):
        return [_VALUE.match(piece, bare.end() - 1) is not None]
    return whole


def _loads(piece: str, strict: bool) -> tuple[dict[str, object] | None, bool]:
    """The object and whether it names its winner twice; None when `piece` is no JSON object."""
    repeated = False

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        # The outermost object comes last, so its finding is the one that stays.
        repeated = sum(name.strip().lower() == "winner" for name, _ in items) > 1
        return dict(items)

    try:
        fields = json.loads(piece, object_pairs_hook=pairs, strict=strict)
    except (ValueError, RecursionError):
        return None, False
    return (fields, repeated) if isinstance(fields, dict) else (None, False)


def _repair(piece: str) -> dict[str, object] | None:
    if len(piece) > _MAX_REPAIR or piece.count("{") > _MAX_BRACES:
        return None
    import json_repair  # slow to import, and seldom needed

    try:
        fields: object = json_repair.repair_json(piece, return_objects=True, skip_json_loads=True)
    except Exception:  # it guesses at hostile text: whatever it trips over, the text stays unread
        return None
    return {str(name): value for name, value in fields.items()} if isinstance(fields, dict) else None


def json_safe(value: object, depth: int = 0) -> Any:
    """`value` as any JSON writer takes it and any reader and database keeps it.

    NaN, Infinity and what is nested deeper than MAX_DEPTH become null; a lone surrogate becomes a question
    mark.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict | list) and depth > MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {json_safe(str(name)): json_safe(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list):
        return [json_safe(item, depth + 1) for item in value]
    return value
