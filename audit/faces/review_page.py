"""The page on which people label: two sessions side by side, a key an answer, each answer stored at once."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from audit.faces.legible import legible
from audit.faces.local_token import with_token
from audit.faces.local_web import guarded
from audit.pipeline.labelling import Labelling, Standing
from audit.words.errors import AuditError
from audit.words.review import QUESTIONS

_FILES = Path(__file__).resolve().parent / "review_files"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_LONGEST_BODY = 100_000
# (value, words, key) of each answer. A and B are names on this page alone: left and right.
_CHOICES = [
    ("first", "A", "a"),
    ("second", "B", "b"),
    ("tie", "Tie", "t"),
    ("cannot tell", "Cannot tell", "c"),
]
_FIRST_DONES = [("done", "Done", "1"), ("not done", "Not done", "2"), ("cannot tell", "Cannot tell", "3")]
_SECOND_DONES = [("done", "Done", "4"), ("not done", "Not done", "5"), ("cannot tell", "Cannot tell", "6")]
# Lines that `render_session` begins; those that go on are indented.
_SPEAKER = re.compile(r"(customer|agent|result of)\b")


def review_app(labelling: Labelling, token: str, port: int) -> Any:
    """The ASGI application of one person's sitting."""
    environment = Environment(
        loader=FileSystemLoader(_FILES / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=legible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("item.html.jinja")

    def home(_request: Request) -> Response:
        return RedirectResponse(f"/items/{labelling.first_open()}", 303)

    def item(request: Request) -> Response:
        number = _number(request.path_params["number"])
        shown, standing = labelling.shown(number), labelling.standing(number)
        text = template.render(
            shown=shown,
            standing=standing,
            run=labelling.run,
            annotator=labelling.annotator,
            sides=_sides(shown.first, shown.second),
            choices=_CHOICES,
        )
        return HTMLResponse(text, headers={"cache-control": "no-store"})

    async def answer(request: Request) -> Response:
        fields = await _fields(request)
        number = _number(request.path_params["number"])
        await run_in_threadpool(_take, labelling, number, fields)
        return await run_in_threadpool(_stands, request, labelling, number)

    async def undo(request: Request) -> Response:
        fields = await _fields(request)
        here = _number(fields.get("number", "1"))
        number = await run_in_threadpool(labelling.undo)
        return await run_in_threadpool(_stands, request, labelling, number or here, undone=number is not None)

    app = Starlette(
        routes=[
            Route("/", home),
            Route("/items/{number}", item, methods=["GET"]),
            Route("/items/{number}", answer, methods=["POST"]),
            Route("/undo", undo, methods=["POST"]),
            Mount("/static", StaticFiles(directory=_FILES / "static")),
        ],
        exception_handlers={AuditError: _refused},
    )
    return guarded(with_token(app, token, port), _POLICY)


def _take(labelling: Labelling, number: int, fields: dict[str, str]) -> None:
    """`answer` is `QUESTION:VALUE`, or `note`."""
    question, _, value = fields.get("answer", "").partition(":")
    note = fields.get("note", "")
    if question == "note":
        labelling.note(number, note)
        return
    for known in QUESTIONS:
        if question == known:
            labelling.answer(number, known, value, note)
            return
    raise AuditError(f"{question!r} is no question: {', '.join(QUESTIONS)} are")


def _stands(request: Request, labelling: Labelling, number: int, **more: bool) -> Response:
    """What is stored now: as JSON for the script, as the page where there is none."""
    if request.headers.get("accept") == "application/json":
        return JSONResponse(_told(labelling.standing(number)) | more)
    return RedirectResponse(f"/items/{number}", 303)


def _number(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise AuditError(f"{text[:40]!r} is no number of an item")
    return int(text)


def _told(standing: Standing) -> dict[str, Any]:
    return {**standing._asdict(), "is_done": standing.is_done}


def _refused(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{legible(str(error))}\n", 400)


async def _fields(request: Request) -> dict[str, str]:
    """The fields of a form; the last where one is given twice. Raises AuditError for one that is too long."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_BODY:
            raise AuditError(f"too long: at most {_LONGEST_BODY:,} bytes")
    try:
        given = parse_qs(body.decode(), keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise AuditError("the form is not UTF-8") from error
    return {name: values[-1].replace("\r\n", "\n") for name, values in given.items()}


def _sides(first: str, second: str | None) -> list[dict[str, Any]]:
    """Each session shown: its name on the page, what was said in it, how its question is answered."""
    sides = [("A", "first_done", first, _FIRST_DONES)]
    if second is not None:
        sides.append(("B", "second_done", second, _SECOND_DONES))
    return [
        {"name": name, "question": question, "turns": _turns(text), "dones": dones}
        for name, question, text, dones in sides
    ]


def _turns(text: str) -> list[tuple[str, str]]:
    """(who, text) of each thing said, called or returned."""
    turns: list[tuple[str, str]] = []
    for line in text.split("\n"):
        if line.startswith("    ") and turns:
            who, before = turns[-1]
            turns[-1] = (who, f"{before}\n{line[4:]}")
        else:
            begins = _SPEAKER.match(line)
            turns.append((begins[1].split()[0] if begins else "other", line))
    return turns
