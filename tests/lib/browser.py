"""A headless Chromium that is asked by Chrome's DevTools protocol over a pair of pipes."""

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import subprocess
import time
from pathlib import Path

from lane import die_with_parent

PROGRAM = Path("/usr/bin/chromium")
START_S = 60
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--remote-debugging-pipe")


class Page:
    """One tab. `said`: what went wrong in it, as its console tells."""

    def __init__(self, browser: "Browser", session: str):
        self.browser = browser
        self.session = session
        self.said: list[str] = []

    def call(self, method: str, **parameters: object) -> dict:
        return self.browser.call(method, self.session, **parameters)

    def show(self, url: str, width: int = 1280, height: int = 800, scheme: str = "light") -> None:
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.prefer(scheme)
        self.call("Page.navigate", url=url)
        self.becomes(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str) -> None:
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def value(self, expression: str) -> object:
        """What the expression is in the page; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def becomes(self, expression: str, within_s: float = 20) -> bool:
        """Whether it becomes true."""
        until = time.monotonic() + within_s
        while not self.value(expression):
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    def picture(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def note(self, method: str, event: dict) -> None:
        if method == "Runtime.exceptionThrown":
            self.said.append(json.dumps(event["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning"):
            self.said.append(json.dumps(event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.said.append(json.dumps(event["entry"]))
        elif method == "Page.javascriptDialogOpening":
            self.said.append(f"a dialog: {event['message']}")
            self.call("Page.handleJavaScriptDialog", accept=True)


class Browser:
    """prefix: a command that runs another in the right place, such as nsenter."""

    def __init__(self, prefix: list[str], folder: Path):
        asks, self._to = os.pipe()
        self._from, answers = os.pipe()
        asks, answers = (self._far_from_others(fd) for fd in (asks, answers))
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder),
                       "LC_ALL": "C.UTF-8"}
        command = [*prefix, str(PROGRAM), *FLAGS, f"--user-data-dir={folder}/profile"]
        # It reads from 3 and writes to 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec 3<&{asks} 4>&{answers} {asks}<&- {answers}>&- "$@"',
             "browser", *command],
            pass_fds=(asks, answers), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd="/", env=environment, preexec_fn=die_with_parent)
        os.close(asks)
        os.close(answers)
        self._numbers = itertools.count(1)
        self._unread = b""
        self._pages: dict[str, Page] = {}

    @staticmethod
    def _far_from_others(fd: int) -> int:
        """The same pipe by a number that is none of those that the browser reads and writes."""
        other = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
        os.close(fd)
        return other

    def call(self, method: str, session: str = "", **parameters: object) -> dict:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                return told["result"]
            page = self._pages.get(told.get("sessionId", ""))
            if page and "method" in told:
                page.note(told["method"], told["params"])

    def _next(self) -> dict:
        until = time.monotonic() + START_S
        while b"\0" not in self._unread:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                raise RuntimeError("the browser does not answer")
            part = os.read(self._from, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._unread += part
        text, self._unread = self._unread.split(b"\0", 1)
        return json.loads(text)

    def page(self) -> Page:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        return page

    def close(self) -> None:
        with contextlib.suppress(RuntimeError, OSError):
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        os.close(self._to)
        os.close(self._from)
