"""Does a text say it: words are whole, numbers are amounts."""

import re
import unicodedata
from decimal import Decimal

# Scripts that are written without spaces: every character is a word of its own.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# The marks of Latin, Hebrew, Arabic and Indic letters, which belong to the word but are no \w.
_JOINED = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
_LETTER = rf"(?:(?![{_UNSPACED}_])[\w{_JOINED}])"
_TOKEN = re.compile(
    rf"(?:(?<![^\s(])-[$€£¥]?(?=\.?\d))?(?:(?<!\w)\.(?=\d))?{_LETTER}+"
    rf"(?:(?:[-_](?={_LETTER})|(?<=\d)[.,:/⁄](?=\d)){_LETTER}+)*|\S"
)
_AMOUNT = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?")
_ZERO_LED = re.compile(r"-?0\d")
_GROUPED = re.compile("(?<=\\d)[\u00a0\u2009\u202f'\u2019](?=\\d{3}(?!\\d))")
_SIGNS = {**{0xFEE0 + code: code for code in range(0x21, 0x7F)}, 0x3000: 0x20, 0x2212: 0x2D, 0x2010: 0x2D}
_SIGNS |= {0x2011: 0x2D, 0x2018: 0x27, 0x2019: 0x27, 0x201C: 0x22, 0x201D: 0x22}
_MARKS = frozenset("*_`~\"'()[]<>$€£¥₹₽₩")


def says(text: str, required: str) -> bool:
    """Does the text say the required words and numbers, in one piece?

    Words are whole and in any case; what hyphens, underscores or digits glue together is one word, so `17` is
    not in `A17` nor `2025-03-17`. Numbers are compared as amounts: `1234.5` is in `$1,234.50`, `10` is
    neither in `$100` nor in `1,010` nor in `-10`. A number led by zeros is a code, compared as text. Currency
    signs, quotes, brackets and markup in the text count where `required` has them. Chinese, Japanese, Korean
    and Thai characters are words of their own.
    """
    wanted = _tokens(required)
    if not wanted:
        raise ValueError("nothing is required of the transcript")
    found = [token for token in _tokens(text) if token not in _MARKS or token in wanted]
    return any(found[i : i + len(wanted)] == wanted for i in range(len(found) - len(wanted) + 1))


def _tokens(text: str) -> list[str | Decimal]:
    plain = unicodedata.normalize("NFC", _GROUPED.sub(",", text)).translate(_SIGNS).casefold()
    return [_token(match[0]) for match in _TOKEN.finditer(plain)]


def _token(word: str) -> str | Decimal:
    amount = word.translate({ord(sign): None for sign in "$€£¥"}) if len(word) > 1 else word
    if any(map(str.isdecimal, amount)) and _AMOUNT.fullmatch(amount) and not _ZERO_LED.match(amount):
        return Decimal(amount.replace(",", ""))
    return word
