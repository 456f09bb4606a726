"""A provider's batch API over HTTP: `/files`, `/batches`, and chat completions for its lines.

    async with BatchServer(answer) as server: ... server.base_url, server.submitted, server.batches

`answer` is given a request's body and gives a `Say`: status 200 goes to the output file, any other to the
error file, a dropped one nowhere. Results come shuffled. `fates` are the statuses that the next batches end
with, `polls` is how often one is asked after before it does. `hooks` are called with (method, path) before
anything is done, `after` when all is done and nothing said yet: what they give is said instead.
"""

import email.parser
import email.policy
import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from server import ChatServer, Say, refusing

Hook = Callable[[str, str], Say | None]


class BatchServer(ChatServer):
    """The chat server, with files and batches beside."""

    def __init__(self, answer: Callable[[dict[str, Any]], Say], *, polls: int = 1) -> None:
        super().__init__(answer=answer)
        self.reply = answer
        self.polls = polls
        self.fates: list[str] = []
        self.hooks: list[Hook] = []
        self.after: list[Hook] = []
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.asked_after: Counter[str] = Counter()
        self.submitted: Counter[str] = Counter()
        self.questions: Counter[str] = Counter()
        self.seen: list[tuple[str, str]] = []
        self.auth: list[str] = []
        self.chance = random.Random(11)
        self.listed_with_metadata = self.newest_first = True

    def serves(self, target: str) -> bool:
        return "/files" in target or "/batches" in target

    def route(self, method: str, target: str, headers: dict[str, str], content: bytes) -> Say:
        """What a request is answered with."""
        path, _, query = target.partition("?")
        self.seen.append((method, path))
        self.auth.append(headers.get("authorization", ""))
        for hook in list(self.hooks):
            said = hook(method, path)
            if said is not None:
                return said
        found = self._routed(method, path, query, headers, content)
        for hook in list(self.after):
            said = hook(method, path)
            if said is not None:
                return said
        return found if isinstance(found, Say) else Say(body=found)

    def _routed(self, method: str, path: str, query: str, headers: dict[str, str], content: bytes) -> Any:
        steps = path.removeprefix("/v1/").split("/")
        if (method, steps) == ("POST", ["files"]):
            return self._upload(headers, content)
        if method == "GET" and steps[0] == "files" and steps[2:] == ["content"]:
            return Say(body=self.files[steps[1]], headers={"Content-Type": "application/octet-stream"})
        if (method, steps) == ("POST", ["batches"]):
            return self._begin(json.loads(content))
        if (method, steps) == ("GET", ["batches"]):
            return self._list(query)
        if method == "GET" and steps[0] == "batches":
            return self._state(steps[1])
        return self.choose(path, headers, content)

    def _upload(self, headers: dict[str, str], content: bytes) -> Any:
        whole = f"Content-Type: {headers['content-type']}\r\n\r\n".encode() + content
        parts = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(whole).iter_parts()
        fields = {part.get_param("name", header="content-disposition"): part for part in parts}
        assert fields["purpose"].get_payload(decode=True) == b"batch"
        file_id = f"file-{len(self.files)}"
        self.files[file_id] = fields["file"].get_payload(decode=True)
        return {"id": file_id, "object": "file", "purpose": "batch", "bytes": len(self.files[file_id])}

    def _begin(self, body: dict[str, Any]) -> Any:
        if body["input_file_id"] not in self.files:
            return refusing("no such file")
        assert (body["endpoint"], body["completion_window"]) == ("/v1/chat/completions", "24h")
        batch_id = f"batch_{len(self.batches)}"
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        assert len({line["custom_id"] for line in lines}) == len(lines)
        assert len({line["body"]["model"] for line in lines}) == 1
        self.submitted.update(line["custom_id"] for line in lines)
        self.questions.update(question(line["body"]) for line in lines)
        self.batches[batch_id] = {
            "id": batch_id, "object": "batch", "status": "in_progress", "created_at": 2_000_000_000,
            "input_file_id": body["input_file_id"], "endpoint": body["endpoint"],
            "completion_window": "24h", "metadata": body["metadata"], "output_file_id": None,
            "error_file_id": None, "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
            "fate": self.fates.pop(0) if self.fates else "completed",
        }  # fmt: skip
        return self._public(batch_id)

    def _list(self, query: str) -> Any:
        wish = dict(part.split("=") for part in query.split("&") if part)
        ids = sorted(self.batches, key=lambda one: self.batches[one]["created_at"], reverse=self.newest_first)
        if "after" in wish:
            ids = ids[ids.index(wish["after"]) + 1 :]
        page = ids[: int(wish.get("limit", 20))]
        data = [self._public(batch_id) for batch_id in page]
        return {"object": "list", "data": data, "has_more": len(page) < len(ids)}

    def _state(self, batch_id: str) -> Any:
        batch = self.batches[batch_id]
        self.asked_after[batch_id] += 1
        if batch["status"] == "in_progress" and self.asked_after[batch_id] > self.polls:
            self._finish(batch)
        return self._public(batch_id)

    def _public(self, batch_id: str) -> dict[str, Any]:
        hidden = {"fate"} if self.listed_with_metadata else {"fate", "metadata"}
        return {name: value for name, value in self.batches[batch_id].items() if name not in hidden}

    def _finish(self, batch: dict[str, Any]) -> None:
        batch["status"] = batch["fate"]
        if batch["fate"] == "failed":
            batch["errors"] = {"object": "list", "data": [{"code": "x", "message": "enqueued too much"}]}
            return
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        self.chance.shuffle(lines)
        done: dict[str, list[dict[str, Any]]] = {"output_file_id": [], "error_file_id": []}
        for number, line in enumerate(lines):
            late = batch["fate"] in ("expired", "cancelled") and number >= len(lines) // 2
            say = Say(drop=True) if late else self.reply(line["body"])
            if say.drop and batch["fate"] == "expired":
                error = {"code": "batch_expired", "message": "could not be executed before it expired."}
                found = {"custom_id": line["custom_id"], "response": None, "error": error}
                done["error_file_id"].append(found)
            elif not say.drop:
                response = {"status_code": say.status, "request_id": "r", "body": json.loads(say.content())}
                found = {"id": "x", "custom_id": line["custom_id"], "response": response, "error": None}
                done["output_file_id" if say.status == 200 else "error_file_id"].append(found)
        for name, results in done.items():
            if results:
                batch[name] = f"file-{len(self.files)}"
                self.files[batch[name]] = b"".join(json.dumps(line).encode() + b"\n" for line in results)
        counts = batch["request_counts"]
        counts["completed"], counts["failed"] = len(done["output_file_id"]), len(done["error_file_id"])


def question(body: dict[str, Any]) -> str:
    """What tells requests apart that ask the same."""
    return hashlib.sha256(json.dumps([body["model"], body["messages"]]).encode()).hexdigest()
