"""Starting points for TLS tests: an authority, a valid server context, and the settings of a client."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from model.certificates import Authority, Identity, PemFiles


def server_context(
    identity: Identity, folder: Path, *, clients_of: Authority | None = None
) -> ssl.SSLContext:
    """Return the context of a server with this certificate. ``clients_of`` requires one of clients."""
    files = identity.write(folder, "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    if clients_of is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients_of.pem.decode())
    return context


def with_names_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve names of the domain ``test`` to this machine."""
    asked = socket.getaddrinfo

    def look_up(host: Any, *args: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        return asked("127.0.0.1" if name.rstrip(".").endswith(".test") else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


class TlsFiles:
    """An authority in a folder.

    Attributes
    ----------
    cafile:
        Path of the authority's certificate.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.cafile = self.authority.write(folder)

    def good_context(self, *, asks_clients: bool = False) -> ssl.SSLContext:
        """Return the context of a server named ``localhost`` and ``127.0.0.1``."""
        clients_of = self.authority if asks_clients else None
        return server_context(self.authority.issue(), self.folder, clients_of=clients_of)

    def settings(self, port: int, host: str = "localhost", **more: Any) -> dict[str, Any]:
        """Return the settings of a client for a server on this port."""
        return {
            "bootstrap_servers": f"{host}:{port}",
            "security_protocol": "SSL",
            "ssl_cafile": self.cafile,
            **more,
        }

    def identity_settings(self, files: PemFiles, password: str | None = None) -> dict[str, Any]:
        """Return the settings of a client with a certificate."""
        shown = {"ssl_certfile": files.certificate, "ssl_keyfile": files.key}
        return shown | ({"ssl_password": password} if password else {})
