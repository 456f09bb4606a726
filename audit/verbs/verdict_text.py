"""The reply before any grammar looks at it: plain characters, without the judge's thinking."""

from __future__ import annotations

import re
import unicodedata

# One character for one character, so that a position in the plain text is a position in the raw one. A
# whole-text NFKC would not keep positions, and is quadratic on long runs of combining marks.
_PLAIN: dict[int, int | str] = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_PLAIN |= {ord(c): "[" for c in "【〖〔〚"} | {ord(c): "]" for c in "】〗〕〛"}
_PLAIN |= {ord(c): " " for c in "\u3000\u00a0\u2003\u2009\u202f"}
_PLAIN |= {ord("。"): ".", ord("、"): ",", ord("〈"): "<", ord("〉"): ">", ord("◁"): "<", ord("▷"): ">"}

_INVISIBLE = dict.fromkeys(
    [0xAD, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A)]
)

_TAG = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>|(?-i:\[(/?)THINK\])", re.IGNORECASE)
_QUOTES = "`\"'“”‘’"
_FINAL_CHANNEL = "<|channel|>final<|message|>"


def plain(raw: str) -> str:
    """`raw` with full-width punctuation, digits and letters as their ASCII twins, of the same length."""
    return raw if raw.isascii() else raw.translate(_PLAIN)


def key(text: str) -> str:
    """A short label as it is looked up: NFKC, without spaces, marks of emphasis and quotes, upper case."""
    # Labels are short; on a long run of combining marks NFKC takes quadratic time.
    if not text.isascii() and len(text) <= 80:
        text = unicodedata.normalize("NFKC", text.translate(_INVISIBLE)).replace("≫", ">>")
    return "".join(text.split()).strip("*_`\"'“”‘’").upper()


def thinking_spans(text: str) -> list[tuple[int, int]]:
    """The (start, end) of what is not the answer, in order.

    An opening tag lasts to the next closing one, or to the end. A closing tag without an opening one ends a
    thinking block whose start the serving layer swallowed, so everything before it goes: this also covers
    tags within tags.
    """
    spans: list[tuple[int, int]] = []
    final = text.rfind(_FINAL_CHANNEL)
    if final >= 0:
        spans.append((0, final + len(_FINAL_CHANNEL)))
    opened = -1
    for tag in _TAG.finditer(text, spans[0][1] if spans else 0):
        if _in_quotes(text, tag):
            continue
        closing = bool(tag[1] or tag[2])
        if closing and opened < 0:
            spans = [(0, tag.end())]
        elif closing:
            spans.append((opened, tag.end()))
            opened = -1
        elif opened < 0:
            opened = tag.start()
    if opened >= 0:
        spans.append((opened, len(text)))
    return spans


def _in_quotes(text: str, tag: re.Match[str]) -> bool:
    """Whether the tag is one the judge talks about, as in `</think>`, and not one it thinks in."""
    start, end = tag.span()
    return start > 0 and text[start - 1] in _QUOTES and text[end : end + 1] in _QUOTES and end < len(text)


def without_thinking(text: str) -> str:
    if "<" not in text and "THINK]" not in text:
        return text
    spans = thinking_spans(text)
    if not spans:
        return text
    kept, at = [], 0
    for start, end in spans:
        kept.append(text[at:start])
        at = end
    kept.append(text[at:])
    return "\n".join(kept)


def answer_text(raw: str) -> str:
    """The plain text of the answer alone."""
    return without_thinking(plain(raw))
