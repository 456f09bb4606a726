"""The door to a provider's batch API: files up and down, batches begun, looked for and asked after.

As OpenAI has it (`/files`, `/batches`); `vllm run-batch` reads and writes the same lines. The only other
module than `llm` and `llm_client` that knows the SDK.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from audit.doors.llm import RETRIED, Models
from audit.doors.llm_answer import Answer, error_body_says
from audit.doors.llm_client import LONGEST_ANSWER, TooLongError
from audit.doors.llm_pace import jittered, wait_s
from audit.doors.llm_url import OFFLINE, shown_url
from audit.words.errors import AuditError
from audit.words.profiles import Endpoint

if TYPE_CHECKING:
    import openai

OUR_ID = "reward_audit_batch"  # under which name the provider keeps our id with a batch
LISTED_AFTER_S = 2.0  # seconds after which a batch that was begun stands in the list of all
_FILE_S = 3600.0  # seconds that a file may take
_NOT_THERE = frozenset({404, 405, 501})
_OVER = frozenset({"completed", "failed", "expired", "cancelled"})
_A_DAY_S = 86_400
_LONGEST_ERROR = 500
Found = TypeVar("Found")


class BatchError(AuditError):
    """The provider did not do what was asked. `may_pass`: asked again later it may."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.may_pass = status is None or status in RETRIED


class State(NamedTuple):
    """Where a batch stands at the provider; a count is NULL where it tells none."""

    batch_id: str
    status: str
    output_file_id: str | None
    error_file_id: str | None
    count_done: int | None
    error: str | None

    @property
    def is_over(self) -> bool:
        return self.status in _OVER


class Provider:
    """The batch API behind one profile."""

    def __init__(self, models: Models, endpoint: Endpoint) -> None:
        if endpoint.base_url.startswith(OFFLINE):
            raise AuditError(
                f"profile {endpoint.name!r} is a synthetic model and has no batch API: leave --batch out"
            )
        self.endpoint = endpoint
        self._models = models
        self._client: openai.AsyncOpenAI = models.line(endpoint).client

    async def check(self) -> None:
        """Raises BatchError where the gateway has no batch API."""
        found = await self._asked("GET /batches", lambda: self._client.batches.list(limit=1), finds_api=True)
        if not isinstance(getattr(found, "data", None), list):
            raise self._none("GET /batches", "the answer is no list")

    async def upload(self, name: str, lines: Sequence[bytes]) -> str:
        """The provider's id of a new file."""
        content = b"\n".join([*lines, b""])

        async def call() -> Any:
            return await self._client.files.create(file=(name, content), purpose="batch")

        found = await self._asked("POST /files", call, seconds=_FILE_S, finds_api=True)
        file_id = getattr(found, "id", None)
        if not isinstance(file_id, str):
            raise self._none("POST /files", "the answer has no id")
        return file_id

    async def begin(self, input_file_id: str, our_id: str, since: str) -> State:
        """The batch of an uploaded file, begun once: where it is not sure that it was, it is looked for."""

        async def call() -> Any:
            return await self._client.batches.create(
                input_file_id=input_file_id,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata={OUR_ID: our_id},
            )

        failures = 0
        while True:
            try:
                return self._state("POST /batches", await self._asked("POST /batches", call, attempts=1))
            except BatchError as error:
                failures += 1
                if not error.may_pass or failures >= self.endpoint.attempts:
                    raise
            await asyncio.sleep(max(LISTED_AFTER_S, jittered(wait_s(failures, None))))
            begun = await self.find(input_file_id, our_id, since)
            if begun is not None:
                return begun

    async def find(self, input_file_id: str, our_id: str, since: str) -> State | None:
        """The batch that was begun with our id, or of that file, since about then; NULL: it never was."""
        oldest = datetime.fromisoformat(since).timestamp() - _A_DAY_S

        async def call() -> Any:
            seen: set[str] = set()
            before = 0.0
            async for batch in self._client.batches.list(limit=100):
                is_ours = (getattr(batch, "metadata", None) or {}).get(OUR_ID) == our_id
                if is_ours or getattr(batch, "input_file_id", None) == input_file_id:
                    return batch
                created_at = getattr(batch, "created_at", None) or 0.0
                # The newest come first, and what is older is not looked through: unless the order is another.
                is_older = 0 < created_at < min(oldest, before)
                if is_older or batch.id in seen:  # some give the same page for ever
                    return None
                seen.add(batch.id)
                before = created_at
            return None

        found = await self._asked("GET /batches", call, seconds=_FILE_S)
        return None if found is None else self._state("GET /batches", found)

    async def state(self, provider_batch_id: str) -> State:
        """Where a batch stands."""
        what = f"GET /batches/{provider_batch_id}"
        return self._state(
            what, await self._asked(what, lambda: self._client.batches.retrieve(provider_batch_id))
        )

    async def lines(self, file_id: str) -> AsyncIterator[bytes]:
        """The lines of a file, as they come: it may be larger than what fits into memory."""
        what = f"GET /files/{file_id}/content"
        content: Any = None

        async def call() -> Any:
            nonlocal content
            content = self._client.files.with_streaming_response.content(file_id)
            return await content.__aenter__()

        response = await self._asked(what, call)
        try:
            parts, held = response.iter_bytes(), b""
            while (part := await self._asked(what, lambda: anext(parts, None), attempts=1)) is not None:
                *whole, held = (held + part).split(b"\n")
                for line in whole:
                    yield line
                if len(held) > LONGEST_ANSWER:
                    raise BatchError(self._said(what, "a line is longer than is read"), 200)
            yield held
        finally:
            await content.__aexit__(None, None, None)

    async def _asked(
        self,
        what: str,
        call: Callable[[], Awaitable[Found]],
        *,
        attempts: int | None = None,
        seconds: float | None = None,
        finds_api: bool = False,
    ) -> Found:
        """What the provider answered, asked again where that may help. Raises BatchError."""
        failures = 0
        while True:
            try:
                async with asyncio.timeout(seconds or self.endpoint.timeout_s):
                    return await call()
            except Exception as error:
                status, problem = _problem(error)
            failures += 1
            if finds_api and status in _NOT_THERE:
                raise self._none(what, problem)
            failed = BatchError(self._said(what, problem, status), status)
            if not failed.may_pass or failures >= (attempts or self.endpoint.attempts):
                raise failed
            await asyncio.sleep(jittered(wait_s(failures, None)))

    def _state(self, what: str, found: Any) -> State:
        batch_id, status = getattr(found, "id", None), getattr(found, "status", None)
        if not isinstance(batch_id, str) or not isinstance(status, str):
            raise BatchError(self._said(what, "the answer is no batch"), 200)
        counts = getattr(found, "request_counts", None)
        done = [getattr(counts, name, None) for name in ("completed", "failed")]
        known = [count for count in done if isinstance(count, int)]
        errors = getattr(getattr(found, "errors", None), "data", None) or ()
        said = "; ".join(str(getattr(error, "message", None) or error) for error in errors)
        return State(
            batch_id,
            status,
            _text(getattr(found, "output_file_id", None)),
            _text(getattr(found, "error_file_id", None)),
            sum(known) if known else None,
            self._clean(said) if said else None,
        )

    def _none(self, what: str, problem: str) -> BatchError:
        return BatchError(
            f"profile {self.endpoint.name!r}: {shown_url(self.endpoint.base_url)} has no batch API "
            f"({what}: {self._clean(problem)}): judge without --batch, or carry the lines to one by "
            "`reward-audit batch export`",
            404,
        )

    def _said(self, what: str, problem: str, status: int | None = None) -> str:
        way_on = (
            "`reward-audit batch drop` gives it up"
            if status == 404
            else "the same command goes on from there"
        )
        url = shown_url(self.endpoint.base_url)
        return f"profile {self.endpoint.name!r}: {what} at {url}: {self._clean(problem)}: {way_on}"

    def _clean(self, problem: str) -> str:
        return self._models.secrets.out_of_error(" ".join(problem.split()))[:_LONGEST_ERROR]


def _problem(error: Exception) -> tuple[int | None, str]:
    """(HTTP status, what went wrong) of what a request ended with; anything unforeseen is raised again."""
    import aiohttp
    import httpx2
    import openai

    if isinstance(error, openai.APIStatusError):
        answer = Answer(error.response.status_code, error.response.content)
        return answer.status, f"HTTP {answer.status}: {error_body_says(answer)}"
    if isinstance(error, TooLongError):
        return error.status, str(error)
    if isinstance(error, TimeoutError):
        return None, "timeout: no whole answer in time"
    if isinstance(error, openai.APIError | httpx2.HTTPError | aiohttp.ClientError | OSError):
        first: BaseException = error
        while first.__cause__ is not None:
            first = first.__cause__
        return None, f"connection failed: {first or type(first).__name__}"
    raise error


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
