"""Creates the responses to HTTP requests for the status page."""

from __future__ import annotations

import base64
import hashlib
import re
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from pathlib import Path
from typing import Final

from kafkacore.broker.status.http_status import Collector, as_json
from kafkacore.broker.status.prometheus_text import CONTENT_TYPE, prometheus_text
from kafkacore.logs import logger_of

logger = logger_of(__name__)

PAGE: Final = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
#: Accepted values of the header ``Host``. Every port is accepted, because a user may forward another port.
_OWN_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
_JSON: Final = "application/json"


def _hashes(tag: str) -> str:
    parts = re.findall(rf"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


#: Content security policy that allows only the script and the style of the page itself.
POLICY: Final = (
    f"default-src 'none'; script-src {_hashes('script')}; style-src {_hashes('style')}; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def answer(request: bytes, collector: Collector) -> bytes:
    """Return the complete response to a request. The body of the request is ignored."""
    return _Request(request, collector).written


class _Request(BaseHTTPRequestHandler):
    """Handler of ``http.server`` that uses buffers in memory instead of a socket."""

    server_version = "kafkacore"
    sys_version = ""

    def __init__(self, request: bytes, collector: Collector) -> None:
        self._collector = collector
        self.rfile, self.wfile = BytesIO(request), BytesIO()
        self.client_address = ("", 0)
        self.handle_one_request()

    @property
    def written(self) -> bytes:
        assert isinstance(self.wfile, BytesIO)
        return self.wfile.getvalue()

    def do_GET(self) -> None:
        status, kind, body = self._answer()
        self._send(status, kind, body)

    do_HEAD = do_GET  # noqa: N815 - http.server's name

    def _answer(self) -> tuple[HTTPStatus, str, bytes]:
        if _OWN_HOST.fullmatch(self.headers.get("Host", "")) is None:
            return _text(
                HTTPStatus.FORBIDDEN, "Use 127.0.0.1 or localhost: this page is only for this machine."
            )
        path = self.path.partition("?")[0]
        if path == "/":
            return HTTPStatus.OK, "text/html; charset=utf-8", PAGE.encode()
        if path == "/healthz":
            if self._collector.is_alive():
                return _text(HTTPStatus.OK, "ok")
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, "the broker does not respond")
        if path not in ("/status.json", "/metrics"):
            return _text(HTTPStatus.NOT_FOUND, "The paths are /, /status.json, /metrics and /healthz.")
        snapshot = self._collector.snapshot()
        if snapshot is None:
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, "the broker does not respond")
        if path == "/metrics":
            return HTTPStatus.OK, CONTENT_TYPE, prometheus_text(snapshot).encode()
        return HTTPStatus.OK, _JSON, as_json(snapshot)

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send a short text for requests that http.server rejects, such as other methods or long lines."""
        status = HTTPStatus(code)
        if status == HTTPStatus.NOT_IMPLEMENTED:
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self.command = getattr(self, "command", None) or "GET"
        self.request_version = getattr(self, "request_version", None) or "HTTP/1.0"
        self._send(*_text(status, "Only GET and HEAD are supported."))

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - http.server's name
        logger.debug("status page: %s", format % arguments)


def _text(status: HTTPStatus, sentence: str) -> tuple[HTTPStatus, str, bytes]:
    return status, "text/plain; charset=utf-8", sentence.encode() + b"\n"
