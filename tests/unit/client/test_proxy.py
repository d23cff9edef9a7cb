"""The handshake with a proxy on a scripted socket, and the setting ``proxy_url``."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.client.config import redacted, resolve
from kafkacore.client.proxy import MAX_RESPONSE_BYTES, Proxy, client_proxy
from kafkacore.errors import KafkaConfigurationError, KafkaConnectionError
from kafkacore.network._poller import READ, WRITE
from kafkacore.security.proxy_url import parse_proxy_url
from kafkacore.testing import VirtualClock

GREETING, CHOICE = b"\5\1\0", b"\5\0"
SUCCEEDED = bytes((5, 0, 0, 1, 10, 0, 0, 1, 0x23, 0x84))


class ScriptedSocket:
    """A non-blocking socket that takes ``room`` bytes at once and gives one piece of the peer's at a time."""

    def __init__(self, room: int = 1 << 20) -> None:
        self.room = room
        self.sent = b""
        self.pieces: list[bytes] = []

    def send(self, data: memoryview) -> int:
        count = min(self.room, len(data))
        if not count:
            raise BlockingIOError
        self.room -= count
        self.sent += data[:count]
        return count

    def recv(self, size: int) -> bytes:
        if not self.pieces:
            raise BlockingIOError
        piece = self.pieces.pop(0)
        if len(piece) > size:
            self.pieces.insert(0, piece[size:])
        return piece[:size]


def proxy_of(url: str) -> Proxy:
    return Proxy(parse_proxy_url(url), lambda host, port: ["10.0.0.9"], VirtualClock())


def proceed(tunnel: Any, sock: ScriptedSocket, *pieces: bytes) -> int:
    sock.pieces += pieces
    result: int = tunnel.proceed(sock)
    return result


def test_socks_handshake_continues_after_each_byte() -> None:
    sock = ScriptedSocket()
    tunnel = proxy_of("socks5h://proxy:1080").tunnel("kafka", 9092)
    assert proceed(tunnel, sock) == READ
    for data in CHOICE + SUCCEEDED[:-1]:
        assert proceed(tunnel, sock, bytes((data,))) == READ
    assert proceed(tunnel, sock, SUCCEEDED[-1:]) == 0
    assert sock.sent == GREETING + b"\5\1\0\3\5kafka\x23\x84"


def test_full_socket_buffer_continues_where_it_stopped() -> None:
    sock = ScriptedSocket(room=2)
    tunnel = proxy_of("socks5://alice:secret@proxy:1080").tunnel("10.0.0.1", 9092)
    assert proceed(tunnel, sock) == WRITE
    sock.room = 6
    assert proceed(tunnel, sock, b"\5\2") == WRITE
    sock.room = 100
    assert proceed(tunnel, sock) == READ
    assert proceed(tunnel, sock, b"\1\0") == READ
    assert proceed(tunnel, sock, SUCCEEDED) == 0
    assert sock.sent == b"\5\2\0\2" + b"\1\5alice\6secret" + b"\5\1\0\1\x0a\0\0\1\x23\x84"


def test_http_response_is_read_to_its_end() -> None:
    sock = ScriptedSocket()
    tunnel = proxy_of("http://alice:secret@proxy:8080").tunnel("::1", 9092)
    assert proceed(tunnel, sock, b"HTTP/1.1 200 OK\r\n", b"Via: x\r\n\r") == READ
    assert proceed(tunnel, sock, b"\n") == 0
    assert sock.sent.startswith(b"CONNECT [::1]:9092 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic YWxpY2U6c2VjcmV0\r\n" in sock.sent


@pytest.mark.parametrize(
    ("url", "pieces", "reason"),
    [
        ("socks5://p:1", [b"\5\xff"], "No acceptable authentication methods"),
        ("socks5://p:1", [b"\4\0"], "Unexpected SOCKS version"),
        ("socks5://p:1", [CHOICE, bytes((5, 5, 0))], "Connection refused by destination host"),
        ("socks5://p:1", [CHOICE, b"\5\0\0\x09"], "Invalid address type|Malformed|.+"),
        ("socks5://p:1", [b""], "Connection closed unexpectedly"),
        ("socks5://p:1", [CHOICE, SUCCEEDED, b"x"], None),
        ("http://p:1", [b"HTTP/1.1 403 Forbidden\x1b[31m\r\n\r\nbody"], r"403 Forbidden\\x1b\[31m"),
        ("http://p:1", [b"HTTP/1.1 200 OK\r\n\r\nextra"], "more bytes than its response"),
        ("http://p:1", [b"x" * MAX_RESPONSE_BYTES], "Invalid status line"),
        ("http://p:1", [b""], "Invalid proxy response"),
    ],
)
def test_rejection_is_one_clear_sentence(url: str, pieces: list[bytes], reason: str | None) -> None:
    tunnel = proxy_of(url).tunnel("kafka", 9092)
    if reason is None:
        # Bytes after the response of SOCKS5 stay in the socket.
        assert proceed(tunnel, ScriptedSocket(), *pieces) == 0
        return
    with pytest.raises(KafkaConnectionError, match=f"does not connect to kafka:9092: .*({reason})") as caught:
        proceed(tunnel, ScriptedSocket(), *pieces)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


@given(
    st.sampled_from(["socks5://a:b@p:1", "socks5h://p:1", "http://p:1"]),
    st.sampled_from([b"", CHOICE, CHOICE + b"\5\0\0", b"HTTP/1.1 200 "]),
    st.lists(st.binary(max_size=40), max_size=6),
)
def test_hostile_proxy_causes_only_errors_of_the_connection(
    url: str, first: bytes, pieces: list[bytes]
) -> None:
    tunnel, sock = proxy_of(url).tunnel("kafka", 9092), ScriptedSocket()
    with contextlib.suppress(KafkaConnectionError):
        for piece in (first, *pieces):
            if not proceed(tunnel, sock, *([piece] if piece else [])):
                return


def test_host_name_that_cannot_be_sent_is_an_error_of_the_connection() -> None:
    with pytest.raises(KafkaConnectionError, match="does not connect to a"):
        proceed(proxy_of("socks5h://p:1").tunnel("a" * 300, 1), ScriptedSocket(), CHOICE)


def test_proxy_resolves_names_with_socks5h_and_http() -> None:
    resolving = {url: proxy_of(url).resolves_names for url in ("socks5://p:1", "socks5h://p:1", "http://p:1")}
    assert list(resolving.values()) == [False, True, True]
    assert proxy_of("socks5://p:1").address() == ("10.0.0.9", 1)
    assert proxy_of("socks5://[::1]:2").endpoint == "[::1]:2"


# ---- The setting -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("proxy:1080", "must begin with socks5://, socks5h://, http://"),
        ("socks4://proxy:1080", "must begin with"),
        ("socks5://proxy", "must have a host and a port"),
        ("socks5://:1080", "must have a host and a port"),
        ("socks5://proxy:x", "not a valid URL"),
        ("socks5://alice:sec/ret@proxy:1080", "not a valid URL|host and a port|must end after the port"),
    ],
)
def test_invalid_url_is_refused_without_its_password(url: str, reason: str) -> None:
    with pytest.raises(
        KafkaConfigurationError, match=f"proxy_url is not the URL of a proxy.*({reason})"
    ) as caught:
        resolve({}, {"proxy_url": url})
    assert "ret" not in str(caught.value)


def test_url_is_hidden_and_its_credentials_are_unquoted() -> None:
    config = resolve({}, {"proxy_url": "socks5://al%40ice:sec%2Fret@proxy:1080"})
    assert "sec" not in str(config["proxy_url"])
    assert "%2Fret" not in f"{config}{redacted(config)}"
    url = parse_proxy_url(config["proxy_url"].text())
    assert (url.username, url.password.text(), url.endpoint) == ("al@ice", "sec/ret", "proxy:1080")


def test_socks5_proxy_is_the_earlier_name() -> None:
    with pytest.warns(DeprecationWarning, match="socks5_proxy: use proxy_url instead"):
        config = resolve({}, {"socks5_proxy": "socks5://proxy:1080"})
    assert config["proxy_url"].text() == "socks5://proxy:1080"


NEEDED = r"proxy_url needs python-socks 3 or newer: install kafkacore\[proxy\]"


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_socks.sync", None)
    config = resolve({}, {"proxy_url": "socks5://proxy:1080"})
    with pytest.raises(KafkaConfigurationError, match=NEEDED):
        client_proxy(config["proxy_url"], lambda host, port: [host], VirtualClock())


def test_old_library_is_refused_when_the_client_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    def proxy_of_version_2(*_arguments: object, rdns: bool) -> None:
        raise AssertionError("version 2 has no argument for a chain of proxies")

    monkeypatch.setattr("python_socks.sync.Proxy", proxy_of_version_2)
    with pytest.raises(KafkaConfigurationError, match=NEEDED):
        proxy_of("socks5://proxy:1080")
