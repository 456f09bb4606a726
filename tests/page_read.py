"""The HTML page of a report, read as a browser reads it: its figures, pictures, tags and text."""

import re
from html.parser import HTMLParser
from typing import Any, NamedTuple

VOID = {"meta", "link", "br", "img", "input", "hr", "base", "embed", "source"}


class Figure(NamedTuple):
    """A figure of the page: where it stands in `report --json`, how it is written, what is shown."""

    path: str
    form: str
    text: str


class Page(HTMLParser):
    """`figures`, `tags` as (name, attributes) in their order, `pictures` as (title, alt, texts), `text`."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.figures: list[Figure] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.pictures: list[tuple[str, str, list[str]]] = []
        self.text = ""
        self.styles = ""
        self.open: list[str] = []
        self._figure: Figure | None = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        self.tags.append((tag, held))
        self.styles += held.get("style", "")
        if tag not in VOID:
            self.open.append(tag)
        if "data-of" in held:
            self._figure = Figure(held["data-of"], held["data-as"], "")
        if tag == "svg":
            self.pictures.append(("", held.get("aria-label", "") * (held.get("role") == "img"), []))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} closes what is not open"
        if self._figure is not None and tag in ("td", "span"):
            self.figures.append(self._figure)
            self._figure = None

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if "svg" in self.open:
            title, alt, texts = self.pictures[-1]
            if self.open[-1] == "title":
                self.pictures[-1] = (title + data, alt, texts)
            elif self.open[-1] == "text":
                texts.append(data)
        elif self.open and self.open[-1] == "style":
            self.styles += data
        else:
            self.text += data
        if self._figure is not None:
            self._figure = self._figure._replace(text=self._figure.text + data)


def at(found: Any, path: str) -> Any:
    """What stands at the path in the report."""
    for step in path.split("."):
        found = found[int(step) if isinstance(found, list) else step]
    return found


def check(page: Page, report: dict[str, Any]) -> set[str]:
    """Hold every figure of the page to the report, by arithmetic of our own; the paths that were seen."""
    for path, form, text in page.figures:
        value = at(report, path)
        if form in ("share", "interval"):
            _check_rate(path, form, text, value)
        elif form == "ends":
            _check_ends(path, text, value)
        elif value is None:
            assert text == "–", path
        else:
            _check_number(path, form, text, value)
    return {path for path, _, _ in page.figures}


def _check_rate(path: str, form: str, text: str, rate: dict[str, Any]) -> None:
    if form == "share":
        if not rate["n"]:
            assert text == "–", path
            return
        k, n, tenths = re.fullmatch(r"([\d,]+)/([\d,]+) (\d+\.\d)%", text).groups()  # type: ignore[union-attr]
        assert (number(k), number(n)) == (rate["k"], rate["n"]), path
        assert abs(float(tenths) - 100 * rate["value"]) < 0.0501, path
    elif rate["low"] is None:
        assert text == "", path
    else:
        low, high = map(float, text.split("–"))
        assert abs(low - 100 * rate["low"]) < 0.0501, path
        assert abs(high - 100 * rate["high"]) < 0.0501, path


def _check_ends(path: str, text: str, ends: dict[str, Any]) -> None:
    known = [ends[name] for name in ("low", "high")]
    if known == [None, None]:
        assert text == "", path
        return
    for shown, end in zip(text.split(" to "), known, strict=True):
        assert (shown == "…") == (end is None), path
        assert end is None or is_near(number(shown), end), path


def _check_number(path: str, form: str, text: str, value: float) -> None:
    if form == "count":
        assert text == f"{value:,}", path
    elif form == "percent":
        assert abs(number(text.removesuffix("%")) - 100 * value) < 0.0501, path
    elif form == "short":
        assert abs(number(text) - value) <= 0.051 * abs(value), path
    else:
        assert form in ("places", "signed", "money"), path
        assert is_near(number(text), value, 0.00501 if form == "money" else 0.000501), path
        assert form != "signed" or text[0] in "+−", path


def is_near(shown: float, value: float, within: float = 0.000501) -> bool:
    """Is it the value to three places, or where that says nothing, to three digits?"""
    return abs(shown - value) < (within if 0.0005 <= abs(value) < 1e6 else 0.00501 * abs(value) + 1e-300)


def number(text: str) -> float:
    """A number as the page writes it."""
    return float(text.replace(",", "").replace("−", "-"))


def check_inert(page: Page) -> None:
    """Nothing runs, nothing is loaded, each picture says what it shows."""
    names = {tag for tag, _ in page.tags}
    assert names.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "base", "form", "input"})
    assert "url(http" not in page.styles
    assert "@import" not in page.styles
    for tag, held in page.tags:
        assert not any(name.startswith("on") or name in ("src", "srcset", "action") for name in held), tag
        if "href" in held:
            assert held["href"].startswith("https://arxiv.org/abs/" if tag == "a" else "#"), held
    ids = [held["id"] for _, held in page.tags if "id" in held]
    assert len(ids) == len(set(ids))
    used = {held["href"][1:] for tag, held in page.tags if tag == "use"}
    assert used <= set(ids)
    for title, alt, _ in page.pictures:
        assert title
        assert alt.startswith(title)
        assert any(char.isdigit() for char in alt)
