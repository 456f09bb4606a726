"""The door to the prompt templates, `audit/prompts/NAME.LANGUAGE.jinja`: a system part and a user part.

A template's hash is the first 16 hex digits of the SHA-256 of its text, so it is the same whatever the data.
"""

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined, Template

from audit.words.calls import Message

_FOLDER = Path(__file__).resolve().parent.parent / "prompts"
_CUT = "=====\n"
_BRACES = re.compile(r"\{[{%#]")
VERSION = "1"


class Prompt(NamedTuple):
    """A template, ready to be filled. `role` is the log role of the calls made with it.

    `system` is text where nothing is to be filled in.
    """

    prompt_hash: str
    role: str
    name: str
    version: str
    text: str
    system: Template | str
    user: Template

    def fill(self, **values: Any) -> list[Message]:
        """The messages: instructions first, data after them. Raises jinja2.UndefinedError for a gap."""
        system = self.system if isinstance(self.system, str) else self.system.render(**values).strip()
        messages = [{"role": "system", "content": system}]
        user = self.user.render(**values).strip()
        return [*messages, {"role": "user", "content": user}] if user else messages


_ROLES = {
    "judge_pair": "judge",
    "satisfaction": "satisfaction",
    "check": "verifier",
    "simulated_user": "user_simulator",
    "agent": "agent",
}


@cache
def prompt(name: str, language: str) -> Prompt:
    """The template `name` in a language, `en` or `zh`."""
    # Values are put in as they are: braces in a transcript are text, never template code.
    environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)  # noqa: S701 - plain text, no HTML
    environment.globals.clear()  # no template needs one, and each filling would copy them all
    text = (_FOLDER / f"{name}.{language}.jinja").read_text(encoding="utf-8")
    system, _, user = text.partition(_CUT)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Prompt(
        digest,
        _ROLES[name],
        f"{name}.{language}",
        VERSION,
        text,
        environment.from_string(system) if _BRACES.search(system) else system.strip(),
        environment.from_string(user),
    )
