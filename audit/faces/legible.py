"""Text from outside in a web page: what cannot be seen or turns writing round is shown by its code."""

import re
from typing import Any

from markupsafe import Markup

# Controls, lone surrogates, marks that turn the direction of writing, and what takes no room.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ufffe\uffff\U000e0000-\U000e007f]"
)


def legible(value: Any) -> Any:
    """What is put into the page: text without characters that cannot be seen, markup of ours as it is."""
    if value is None or isinstance(value, Markup):
        return "" if value is None else value
    return _UNSEEN.sub(lambda match: ascii(match[0])[1:-1], str(value))
