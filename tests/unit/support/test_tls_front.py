"""The TLS proxy of the tests, with a client written by hand: cutting, closing, and recording connections."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import BUDGET_S
from model.certificates import Authority
from model.tls_ends import secured
from model.tls_front import Manners, TlsFront


class Echo:
    """A plaintext server that echoes its input until it receives ``bye``."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        sock, _ = self._listener.accept()
        with sock:
            while (heard := sock.recv(65_536)) and heard != b"bye":
                sock.sendall(heard)

    def close(self) -> None:
        self._listener.close()
        self._thread.join(BUDGET_S)


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def front(authority: Authority, tmp_path: Path) -> Iterator[TlsFront]:
    files = authority.issue().write(tmp_path, "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    echo = Echo()
    with TlsFront(context, echo.port) as front:
        yield front
    echo.close()


@pytest.mark.parametrize("farewell", ["notify", "silent", "reset"])
@pytest.mark.parametrize("piece_bytes", [None, 1])
def test_front_carries_both_ways_and_ends_as_it_is_told(
    front: TlsFront, authority: Authority, farewell: str, piece_bytes: int | None
) -> None:
    front.manners = Manners(piece_bytes=piece_bytes, record_bytes=50, farewell=farewell)
    sock = socket.create_connection(("127.0.0.1", front.port), BUDGET_S)
    context = ssl.create_default_context(cadata=authority.pem.decode())
    end = secured(sock, "localhost", context, piece_bytes=7, record_bytes=30)
    end.sendall(b"x" * 200)
    heard = b""
    while len(heard) < 200:
        piece = end.recv()
        assert len(piece) <= 50
        heard += piece
    end.sendall(b"bye")
    if farewell == "notify":
        assert end.recv() == b""
    else:
        with pytest.raises(EOFError if farewell == "silent" else ConnectionResetError):
            end.recv()
    end.close()
    (met,) = front.wait_for(1)
    assert (bytes(met.heard), met.server_name, met.version) == (b"x" * 200 + b"bye", "localhost", "TLSv1.3")
