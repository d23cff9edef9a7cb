"""A schema registry that returns the responses a test has set."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedRegistry:
    """Responses by path: a (status, body) pair or a list of them, of which the last one is repeated."""

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[int, bytes]]] = {}
        #: Path and Authorization header of each request.
        self.asked: list[tuple[str, str | None]] = []
        self.url = ""

    def answer(self, path: str, *answers: tuple[int, object]) -> None:
        self.answers[path] = [
            (status, body if isinstance(body, bytes) else json.dumps(body).encode())
            for status, body in answers
        ]

    def schema(self, schema_id: int, schema: object, **more: object) -> None:
        self.answer(f"/schemas/ids/{schema_id}", (200, {"schema": json.dumps(schema), **more}))

    def next(self, path: str) -> tuple[int, bytes]:
        script = self.answers.get(path, [(404, b'{"error_code":40403}')])
        return script.pop(0) if len(script) > 1 else script[0]


@contextlib.contextmanager
def scripted_registry(tls: ssl.SSLContext | None = None) -> Iterator[ScriptedRegistry]:
    """Serve a scripted registry over HTTP, or over HTTPS with the certificate of ``tls``."""
    registry = ScriptedRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append((self.path, self.headers.get("Authorization")))
            status, body = registry.next(self.path)
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", body.decode())
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Log nothing."""

    class Server(ThreadingHTTPServer):
        def finish_request(self, request: Any, client_address: Any) -> None:
            if tls is None:
                super().finish_request(request, client_address)
                return
            # Wrap here, in the connection's own thread: a client that rejects the certificate only ends its
            # connection.
            with contextlib.suppress(OSError), tls.wrap_socket(request, server_side=True) as wrapped:
                super().finish_request(wrapped, client_address)

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    registry.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
