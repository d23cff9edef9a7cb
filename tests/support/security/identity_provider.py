"""An identity provider: a local HTTPS server with scripted responses, and tokens that it signs."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import trustme
from cryptography.hazmat.primitives.asymmetric import ec, rsa

ISSUER = "https://issuer.example"
AUDIENCE = "kafka"
#: Generated once, because generating a key takes a while.
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def public_jwk(key: Any, key_id: str | None, **more: str) -> dict[str, Any]:
    algorithm = jwt.algorithms.ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else None
    encode = (algorithm or jwt.algorithms.RSAAlgorithm).to_jwk
    document = encode(key.public_key(), as_dict=True)
    return document | ({} if key_id is None else {"kid": key_id}) | more


def key_set(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


def claims(now_s: int, **changed: Any) -> dict[str, Any]:
    """Return the claims of a valid token. A change to ``None`` omits the claim."""
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now_s, "exp": now_s + 300, "scope": "a b"}
    return {name: value for name, value in (good | changed).items() if value is not None}


def signed(claims: dict[str, Any], key: Any = RSA_KEY, algorithm: str = "RS256", key_id: str = "1") -> str:
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": key_id})


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class IdentityProvider:
    """Returns ``answers`` in turn and repeats the last one."""

    address: str
    cafile: str
    answers: list[tuple[int, dict[str, str], Callable[[], bytes]]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    def will_answer(self, body: Any, status: int = 200, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers.append((status, headers, lambda: content))

    def answer_with(self, content: Callable[[], bytes]) -> None:
        """Call a function for the body of each response."""
        self.answers.append((200, {}, content))


@contextmanager
def identity_provider(
    folder: Path, names: tuple[str, ...] = ("localhost", "127.0.0.1")
) -> Iterator[IdentityProvider]:
    authority = trustme.CA()
    cafile = folder / "authority.pem"
    authority.cert_pem.write_to_path(str(cafile))
    provider = IdentityProvider("", str(cafile))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            provider.asked.append(Asked(self.command, self.path, dict(self.headers), body))
            status, headers, content = provider.answers[0]
            if len(provider.answers) > 1:
                del provider.answers[0]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content())

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore a client that disconnects early, as some tests do on purpose."""

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    # Each connection's thread does its handshake, so that one that never ends does not block the server.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    provider.address = f"https://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
