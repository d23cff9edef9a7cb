"""Hostile TLS peers: a client that creates its TLS records itself, against a selector."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import hmac
import socket
import ssl
import struct
import termios
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from unit.network.test_tls import Certificates

from kafkacore.errors import KafkaConnectionError, KafkaProtocolError
from kafkacore.network import ConnectionPhase, Selector
from kafkacore.network._poller import BACKENDS
from kafkacore.testing import VirtualClock

APPLICATION_DATA, HANDSHAKE = 23, 22
WANT_NEW_KEYS = b"\x18\x00\x00\x01\x01"


class Keys:
    """TLS 1.3 traffic keys of one direction (RFC 8446, 7.1 to 7.3), with AES-256-GCM and SHA-384."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self._start()

    def _start(self) -> None:
        self._cipher = AESGCM(self._expand(b"key", 32))
        self._iv = int.from_bytes(self._expand(b"iv", 12))
        self._count = 0

    def _expand(self, label: bytes, size: int) -> bytes:
        label = b"tls13 " + label
        info = struct.pack(">HB", size, len(label)) + label + b"\0\1"
        return hmac.digest(self.secret, info, hashlib.sha384)[:size]

    def record(self, content: bytes, kind: int = APPLICATION_DATA) -> bytes:
        header = struct.pack(">BHH", APPLICATION_DATA, 0x0303, len(content) + 17)
        nonce = (self._iv ^ self._count).to_bytes(12)
        self._count += 1
        return header + self._cipher.encrypt(nonce, content + bytes([kind]), header)

    def new_keys(self) -> bytes:
        """Return a KeyUpdate record that requests an update of the peer's keys too, and change the keys."""
        record = self.record(WANT_NEW_KEYS, HANDSHAKE)
        self.secret = self._expand(b"traffic upd", 48)
        self._start()
        return record


class Meeting:
    """A broker's selector, and a client that creates its TLS records itself after the handshake."""

    def __init__(
        self, certificates: Certificates, folder: Path, *, buffer_bytes: int = 0, backend: str | None = None
    ) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(certificates.trusted)
        context.set_ciphers("ECDHE")
        context.keylog_filename = str(folder / "keys")
        ours, theirs = socket.socketpair()
        if buffer_bytes:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
        self.sock = ours
        self.server = Selector(VirtualClock(), backend=backend)
        self.server.register("peer", ours, certificates.server())
        pair = Pair(theirs, context)
        while "peer" not in self.server.connected:
            pair.step()
            self.server.poll(1)
        self.client = theirs
        theirs.setblocking(True)
        self.keys = Keys(_secret(folder / "keys", "CLIENT_TRAFFIC_SECRET_0"))
        self.frames: list[bytes] = []
        self.ended: dict[str, object] = {}

    def poll(self) -> None:
        self.server.poll(1)
        self.frames += [bytes(one.payload) for one in self.server.completed_receives]
        self.ended |= self.server.disconnected

    def polls(self, count: int = 20) -> None:
        for _ in range(count):
            self.poll()

    def unread_bytes(self) -> int:
        return int(struct.unpack("i", fcntl.ioctl(self.sock.fileno(), termios.FIONREAD, bytes(4)))[0])


class Pair:
    """A client that runs its handshake step by step."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        sock.setblocking(False)
        self.sock = sock
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.engine = context.wrap_bio(self._in, self._out, False, "localhost")

    def step(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._in.write(self.sock.recv(65536))
        with contextlib.suppress(ssl.SSLWantReadError):
            self.engine.do_handshake()
        self.sock.send(self._out.read())


def _secret(path: Path, label: str) -> bytes:
    for line in path.read_text().splitlines():
        if line.startswith(label):
            return bytes.fromhex(line.split()[2])
    raise AssertionError(f"no {label}")


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=BACKENDS)
def meeting(request: pytest.FixtureRequest, certificates: Certificates, tmp_path: Path) -> Iterator[Meeting]:
    met = Meeting(certificates, tmp_path, backend=request.param)
    yield met
    met.server.close_all()
    met.client.close()


def test_frames_come_through_new_keys_and_empty_records_cut_at_every_byte(meeting: Meeting) -> None:
    keys = meeting.keys
    stream = (
        keys.record(frame(b"one")[:5]) + keys.new_keys() + keys.record(frame(b"one")[5:] + frame(b""))
        + keys.record(b"") + keys.new_keys() + keys.new_keys() + keys.record(frame(b"two"))
    )  # fmt: skip
    for at in range(len(stream)):
        meeting.client.send(stream[at : at + 1])
        meeting.poll()
    meeting.polls(3)
    assert meeting.frames == [b"one", b"", b"two"]
    assert not meeting.ended


def test_a_flood_of_new_keys_does_not_keep_the_selector_from_others(
    certificates: Certificates, tmp_path: Path
) -> None:
    met = Meeting(certificates, tmp_path)
    met.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_000_000)
    met.client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_000_000)
    met.client.setblocking(False)
    for _ in range(25):
        met.client.send(b"".join(met.keys.new_keys() for _ in range(1200)))
    came = met.unread_bytes()
    met.server.poll(1)
    assert 0 < met.unread_bytes() < came
    met.server.close_all()
    met.client.close()


def test_who_asks_for_new_keys_and_does_not_take_them_is_closed(
    certificates: Certificates, tmp_path: Path
) -> None:
    met = Meeting(certificates, tmp_path, buffer_bytes=1)
    for _ in range(60):
        if met.ended:
            break
        met.client.sendall(b"".join(met.keys.new_keys() for _ in range(500)))
        met.polls(3)
    assert isinstance(met.ended["peer"].error, KafkaProtocolError)
    assert met.ended["peer"].phase is ConnectionPhase.READY
    assert "new keys" in met.ended["peer"].reason
    met.server.close_all()
    met.client.close()


def test_a_goodbye_right_behind_a_frame_ends_the_channel_though_the_socket_stays(meeting: Meeting) -> None:
    goodbye = meeting.keys.record(frame(b"last")) + meeting.keys.record(b"\1\0", 21)
    meeting.client.sendall(goodbye)
    meeting.polls(5)
    assert meeting.frames == [b"last"]
    assert meeting.ended["peer"].reason == "the peer has closed the connection"
    assert meeting.ended["peer"].error is None


def test_a_goodbye_in_the_middle_of_a_frame_ends_the_channel_without_it(meeting: Meeting) -> None:
    meeting.client.sendall(meeting.keys.record(frame(bytes(500))[:90]) + meeting.keys.record(b"\1\0", 21))
    meeting.polls(5)
    assert not meeting.frames
    assert meeting.ended["peer"].error is None


@pytest.mark.parametrize("kept", [1, 4, 5, 6, 29])
def test_a_record_that_is_cut_by_the_end_of_the_stream_ends_the_channel(meeting: Meeting, kept: int) -> None:
    meeting.client.sendall(meeting.keys.record(frame(b"whole")) + meeting.keys.record(frame(b"half"))[:kept])
    meeting.client.close()
    meeting.polls(5)
    assert meeting.frames == [b"whole"]
    assert meeting.ended["peer"].phase is ConnectionPhase.READY


def test_a_fatal_alert_behind_a_frame_ends_the_channel(meeting: Meeting) -> None:
    meeting.client.sendall(meeting.keys.record(frame(b"one")) + meeting.keys.record(b"\2\x50", 21))
    meeting.polls(5)
    assert meeting.frames == [b"one"]
    assert "INTERNAL_ERROR" in meeting.ended["peer"].reason


def test_a_record_changed_on_its_way_is_a_lost_connection_and_no_failed_login(meeting: Meeting) -> None:
    meeting.client.sendall(meeting.keys.record(frame(b"one")))
    meeting.polls(2)
    changed = bytearray(meeting.keys.record(frame(b"two")))
    changed[-1] ^= 1
    meeting.client.sendall(changed)
    meeting.polls(3)
    assert meeting.frames == [b"one"]
    assert meeting.ended["peer"].phase is ConnectionPhase.READY
    assert isinstance(meeting.ended["peer"].error, KafkaConnectionError)


def test_a_closed_channel_that_is_still_waited_for_has_no_engine(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engines of 10,000 connections that fail within the setup timeout would take 400 MB."""
    engines: list[weakref.ref[ssl.SSLObject]] = []
    server = Selector(VirtualClock(), setup_timeout_ms=600_000)
    ours, theirs = socket.socketpair()
    builder = certificates.server(asks=True)
    server.register("peer", ours, builder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificates.trusted)
    pair = Pair(theirs, context)
    while not server.disconnected:
        pair.step()
        server.poll(1)
        channel = server.channel("peer")
        if channel is not None and channel.transport.engine is not None and not engines:
            engines.append(weakref.ref(channel.transport.engine))
    assert "certificate" in server.disconnected["peer"].reason
    del channel
    server.poll(0)
    gc.collect()
    assert [engine() for engine in engines] == [None]
    server.close_all()
    theirs.close()
