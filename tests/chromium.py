"""Chromium without a window, driven over its DevTools protocol: keys are pressed as a person presses them.

Debian's `chromium` is enough; where there is none, tests that ask for it are skipped.
"""

import asyncio
import base64
import itertools
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(PROGRAM is None, reason="needs Chromium: apt-get install chromium")
_CODES = {"Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Tab": 9}


class Page:
    """One tab; `dialogs`, `errors` and `requests` collect what it showed, what failed, what it asked for."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.ids = itertools.count(1)
        self.waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.loaded = asyncio.Event()
        self.dialogs: list[str] = []
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.listening = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        async for message in self.socket:
            said = json.loads(message.data)
            if "id" in said:
                self.waiting.pop(said["id"]).set_result(said)
                continue
            given = said["params"]
            if said["method"] == "Page.loadEventFired":
                self.loaded.set()
            elif said["method"] == "Page.javascriptDialogOpening":
                self.dialogs.append(given["message"])
                asyncio.ensure_future(self.ask("Page.handleJavaScriptDialog", accept=True))  # noqa: RUF006
            elif said["method"] == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(given["exceptionDetails"]))
            elif said["method"] == "Log.entryAdded" and given["entry"]["level"] == "error":
                self.errors.append(f"{given['entry']['text']} {given['entry'].get('url', '')}")
            elif said["method"] == "Network.requestWillBeSent":
                self.requests.append(given["request"]["url"])

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of one command of the protocol."""
        number = next(self.ids)
        self.waiting[number] = asyncio.get_running_loop().create_future()
        await self.socket.send_json({"id": number, "method": method, "params": params})
        said = await asyncio.wait_for(self.waiting[number], 20)
        assert "error" not in said, said
        return said["result"]

    async def open(self, url: str) -> None:
        self.loaded.clear()
        await self.ask("Page.navigate", url=url)
        await asyncio.wait_for(self.loaded.wait(), 20)

    async def value(self, script: str) -> Any:
        """What the expression comes to; a promise is waited for."""
        said = await self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    async def until(self, script: str) -> None:
        """Waits until the expression is true."""
        for _ in range(200):
            if await self.value(f"document.readyState === 'complete' && Boolean({script})"):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"never true: {script}\n{await self.value('document.body.innerText')}")

    async def press(self, key: str, modifiers: int = 0) -> None:
        """One key, down and up: a character, or a name as `Enter`. `modifiers`: 2 is Ctrl, 8 is Shift."""
        text = "\r" if key == "Enter" else key if len(key) == 1 and not modifiers & 2 else ""
        code = _CODES.get(key, ord(key.upper()) if len(key) == 1 else 0)
        common = {"key": key, "modifiers": modifiers, "windowsVirtualKeyCode": code}
        await self.ask(
            "Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common
        )
        await self.ask("Input.dispatchKeyEvent", type="keyUp", **common)

    async def click(self, selector: str) -> None:
        """The left button of the mouse, in the middle of the element."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        x, y = await self.value(f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({box})")
        for kind in ("mousePressed", "mouseReleased"):
            await self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def write(self, text: str) -> None:
        """Text into what has the focus."""
        await self.ask("Input.insertText", text=text)

    async def size(self, width: int, height: int, *, dark: bool = False) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        await self.ask("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.ask("Emulation.setEmulatedMedia", features=[scheme])

    async def screenshot(self, file: Path, *, whole: bool = False) -> None:
        taken = await self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(taken["data"]))


@asynccontextmanager
async def chromium() -> AsyncIterator[Page]:
    """A browser with a profile of its own and one tab; both are gone afterwards."""
    assert PROGRAM is not None
    folder = tempfile.mkdtemp(prefix="reward-audit-chromium-")
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        port = await _port(Path(folder) / "DevToolsActivePort")
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                (tab,) = [one for one in await answer.json() if one["type"] == "page"]
            async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket)
                for domain in ("Page", "Runtime", "Network", "Log"):
                    await page.ask(f"{domain}.enable")
                yield page
                await page.ask("Browser.close")
            await page.listening
    finally:
        try:
            await asyncio.wait_for(process.wait(), 5)
        except TimeoutError:
            process.kill()
            await process.wait()
        shutil.rmtree(folder, ignore_errors=True)


async def _port(file: Path) -> int:
    for _ in range(400):
        if file.exists() and "\n" in (text := file.read_text(encoding="utf-8")):
            return int(text.split()[0])
        await asyncio.sleep(0.05)
    raise AssertionError("Chromium did not start")


async def label_by_keyboard(tab: Page, keys_for: Callable[[str], str]) -> None:
    """On the page of `review serve`: answers every open item by keys alone, until none is left.

    `keys_for`: the text of the session shown first -> the three keys to press.
    """
    while True:
        for key in keys_for(await tab.value("document.querySelector('.transcript').innerText")):
            await tab.press(key)
        await tab.until("document.querySelectorAll('[aria-pressed=true]').length === 3")
        here = await tab.value("location.pathname")
        if await tab.value("document.getElementById('open').hidden"):
            return
        await tab.press("Enter")
        await tab.until(f"location.pathname !== '{here}' && document.getElementById('answers')")
