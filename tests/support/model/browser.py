"""A real browser for tests: headless Chromium, driven by the WebDriver protocol.

The sources of the protocol are W3C WebDriver, and Chromium's extension for the console log.
"""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from eventually import BUDGET_S, eventually
from missing_tools import find_tool

from kafkacore.clock import SYSTEM_CLOCK

#: Milliseconds between two checks of a condition. Some conditions send records, so this bounds their rate.
LOOK_MS = 100.0

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class BrowserError(AssertionError):
    """The browser could not execute a command."""


def _program(*names: str) -> str:
    return find_tool(*names, package="chromium-driver")


#: Printed by the driver if the IPv6 port it has chosen is in use on IPv4.
PORT_TAKEN = "port not available"
DRIVER_TRIES = 10


class Browser:
    """A browser with one page. Use it as a context manager."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kafkacore-browser-", ignore_cleanup_errors=True)
        self._driver: subprocess.Popen[str] | None = None
        self._url = ""

    def __enter__(self) -> Browser:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def _start_driver(self) -> str:
        """Start the driver and return what it printed until it was ready or exited."""
        self._driver = subprocess.Popen(
            [_program("chromedriver"), "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                "HOME": self._folder.name,
                "TMPDIR": self._folder.name,
                "PATH": "/usr/bin:/bin:/usr/local/bin",
            },
        )
        assert self._driver.stdout is not None
        said = ""
        while "started successfully on port " not in said:
            line = self._driver.stdout.readline()
            said += line
            if not line:
                break
        return said

    def _start(self) -> None:
        said = self._start_driver()
        for _ in range(DRIVER_TRIES):
            if PORT_TAKEN not in said:
                break
            assert self._driver is not None
            self._driver.communicate()
            said = self._start_driver()
        if "started successfully" not in said:
            raise BrowserError(f"chromedriver ended: {said}")
        port = int(said.split("on port ")[-1].split(".")[0])
        self._url = f"http://127.0.0.1:{port}"
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--no-proxy-server", "--window-size=1240,1000",
        ]  # fmt: skip
        session = self._call("POST", "/session", {
            "capabilities": {"alwaysMatch": {
                "goog:chromeOptions": {"args": arguments, "binary": _program(*_BROWSERS)},
                "goog:loggingPrefs": {"browser": "ALL"},
            }}
        })  # fmt: skip
        self._url += f"/session/{session['sessionId']}"

    def _call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._url + path, data, {"Content-Type": "application/json"}, method=method
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=BUDGET_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise BrowserError(f"{method} {path}: {json.load(error)['value']['message']}") from None

    # ---- What a person does and sees -----------------------------------------------------------------

    def open(self, address: str) -> None:
        self._call("POST", "/url", {"url": address})

    def be(self, width: int, height: int, *, dark: bool) -> None:
        """Set the screen size and the preference for a dark or a light theme."""
        size = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": width < 600}
        self._emulate("setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._emulate("setEmulatedMedia", {"features": [scheme]})

    def _emulate(self, command: str, parameters: object) -> None:
        self._call("POST", "/goog/cdp/execute", {"cmd": f"Emulation.{command}", "params": parameters})

    def run(self, script: str, *arguments: object) -> Any:
        """Return the result of the script on the page."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector: str = "body") -> str:
        """Return the visible text of the first matching element."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)

    def wait_for(self, what: str, condition: Callable[[], Any]) -> Any:
        """Wait until ``condition`` returns a true value, and return it."""
        return eventually(
            condition,
            lambda: f"{what} did not come; the page says:\n{self.text()}",
            step=lambda: SYSTEM_CLOCK.sleep_ms(LOOK_MS),
        )

    def console(self) -> list[str]:
        """Return the console messages since the last call."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            if "/session/" in self._url:
                self._call("DELETE", "")
            driver.terminate()
            driver.wait(BUDGET_S)
            assert driver.stdout is not None
            driver.stdout.close()
        self._folder.cleanup()
