"""A real Chromium without a screen, driven over its DevTools pipe: what a person sees and presses.

The pipe is two descriptors that the browser expects as 3 and 4, and carries JSON that ends in a NUL: no port is
opened, and no library is needed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

PATIENCE_S = 30.0
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome") if sys.platform != "win32" else ()
PROGRAM = next(filter(None, map(shutil.which, _NAMES)), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--remote-debugging-pipe"),
)
_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
KEYS = {"Tab": 9, "Enter": 13, " ": 32}


class Browser:
    """The browser as one process; `page()` opens a tab of its own, without what other tabs have stored."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="chromium", ignore_cleanup_errors=True)
        profile = f"--user-data-dir={self._profile.name}"
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(theirs_in), str(theirs_out), program, *FLAGS, profile, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._ids = 0
        self._answers: dict[int, SimpleQueue[dict[str, Any]]] = {}
        self.events: dict[str, SimpleQueue[dict[str, Any]]] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """One command of the protocol, and its result."""
        self._ids += 1
        number = self._ids
        answer = self._answers[number] = SimpleQueue()
        whole = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self._out, json.dumps(whole).encode() + b"\0")
        try:
            came = answer.get(timeout=PATIENCE_S)
        except Empty:
            raise AssertionError(f"the browser does not answer {method}") from None
        assert "error" not in came, (method, came)
        return dict(came["result"])

    @contextlib.contextmanager
    def page(self, width: int = 1280, *, dark: bool = False) -> Iterator[Page]:
        """A new tab, closed at the end of the block."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.events[session] = SimpleQueue()
        page = Page(self, session)
        for domain in ("Page", "Network", "Runtime"):
            page.send(f"{domain}.enable")
        page.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.send("Emulation.setEmulatedMedia", features=[scheme])
        try:
            yield page
        finally:
            self.send("Target.disposeBrowserContext", browserContextId=context)
            del self.events[session]

    def close(self) -> None:
        self.send("Browser.close")
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        os.close(self._out)
        os.close(self._in)
        self._profile.cleanup()

    def _read(self) -> None:
        rest = b""
        while data := os.read(self._in, 1 << 16):
            *messages, rest = (rest + data).split(b"\0")
            for message in map(json.loads, messages):
                if (number := message.get("id")) is not None:
                    self._answers.pop(number).put(message)
                elif (events := self.events.get(message.get("sessionId"))) is not None:
                    events.put(message)


class Page:
    """A tab.

    Attributes:
        requested: The addresses of all that it asked for.
        shown: The status of each document that it got.
    """

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        self.requested: list[str] = []
        self.shown: list[int] = []

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """One command for this tab."""
        return self._browser.send(method, self._session, **params)

    @contextlib.contextmanager
    def loads(self, times: int = 1) -> Iterator[None]:
        """What the block does loads a document; wait for that."""
        self._drain()
        yield
        for _ in range(times):
            self._until("Page.loadEventFired")

    def open(self, address: str, loads: int = 1) -> None:
        """Go to an address; `loads` documents come up one after the other until the page stands."""
        with self.loads(loads):
            self.send("Page.navigate", url=address)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    @property
    def text(self) -> str:
        """What there is to read."""
        return str(self.evaluate("document.body.innerText"))

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key."""
        code = KEYS[key]
        told = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        typed = {"text": "\r" if key == "Enter" else key} if key != "Tab" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **told, **typed)
        self.send("Input.dispatchKeyEvent", type="keyUp", **told)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)

    def focused(self) -> str:
        """The words on what has the focus."""
        return str(self.evaluate("(e => e.innerText || e.name || e.tagName)(document.activeElement)"))

    def tab_to(self, words: str) -> None:
        """Walk with the Tab key until this has the focus."""
        passed = []
        for _ in range(60):
            self.press("Tab")
            if (here := self.focused()) == words:
                return
            passed.append(here)
        raise AssertionError(f"the Tab key does not lead to {words!r}: {passed}")

    def click(self, words: str) -> None:
        """Press the first button or link with these words, with the mouse."""
        find = (
            f"[...document.querySelectorAll('button,a,summary')].find(e => e.innerText.trim() == {json.dumps(words)})"
        )
        self.evaluate(f"{find}.scrollIntoView()")
        x, y = self.evaluate(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({find}.getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path) -> None:
        """The whole page as a picture."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _drain(self) -> None:
        with contextlib.suppress(Empty):
            while True:
                self._note(self._browser.events[self._session].get_nowait())

    def _until(self, event: str) -> None:
        try:
            while self._note(self._browser.events[self._session].get(timeout=PATIENCE_S)) != event:
                pass
        except Empty:
            raise AssertionError(f"{event} did not come") from None

    def _note(self, event: dict[str, Any]) -> str:
        if event["method"] == "Network.requestWillBeSent":
            self.requested.append(event["params"]["request"]["url"])
        elif event["method"] == "Network.responseReceived" and event["params"]["type"] == "Document":
            self.shown.append(event["params"]["response"]["status"])
        return str(event["method"])
