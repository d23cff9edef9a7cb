"""Two Selectors connected by TLS, as client and broker: frames of every size, and faulty peers."""

from __future__ import annotations

import errno
import os
import random
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_MS, eventually
from model.certificates import Authority
from model.selector_frames import await_bytes

from kafkacore.clock import Clock
from kafkacore.errors import SslAuthenticationError
from kafkacore.network import ChannelBuilder, ConnectionPhase, MemoryPool, NetworkSend, Selector
from kafkacore.network.other_protocols import spoken_protocol
from kafkacore.testing.clock import VirtualClock
from kafkacore.wire import FileSlice

SIZES = (0, 1, 5, 100, 16 * 1024 - 4, 16 * 1024, 70_000, 3_000_000)


class Holder:
    """A holder of a file that its owner keeps open."""

    def release_hold(self) -> None: ...


class Ends:
    """Both ends of one connection; ``poll`` polls each of them once."""

    def __init__(
        self,
        server: ChannelBuilder | None,
        client: ChannelBuilder | None,
        clock: Clock | None = None,
        **options: object,
    ) -> None:
        self.clock: Any = clock or VirtualClock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.server = Selector(self.clock, **options)  # type: ignore[arg-type]
        self.client = Selector(VirtualClock(), max_receive_size=100_000_000)
        self.builder = server
        self.frames: dict[str, list[bytes]] = {"server": [], "client": []}
        self.ready: list[str] = []
        self.ended: dict[str, object] = {}
        self.server.register_listener("listener", self.listener)
        self.client.connect("client", self.listener.getsockname(), builder=client, host="localhost")

    def poll(self) -> None:
        for name, selector in (("server", self.server), ("client", self.client)):
            selector.poll(1)
            for _, sock, _ in selector.accepted:
                selector.register("server", sock, self.builder, "127.0.0.1")
            self.ready += selector.connected
            self.frames[name] += [bytes(one.payload) for one in selector.completed_receives]
            self.ended |= selector.disconnected

    def until(self, is_done: Callable[[], object]) -> None:
        eventually(is_done, lambda: (self.ready, self.ended), step=self.poll)

    def close(self) -> None:
        self.client.close_all()
        self.server.close_all()
        self.listener.close()


class Certificates:
    def __init__(self, folder: Path) -> None:
        self.authority = Authority()
        self.files = self.authority.issue().write(folder, "server")
        self.trusted = self.authority.write(folder)

    def server(
        self, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, *, asks: bool = False
    ) -> ChannelBuilder:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.files.certificate, self.files.key)
        context.maximum_version = version
        if asks:
            context.load_verify_locations(self.trusted)
            context.verify_mode = ssl.CERT_REQUIRED
        return ChannelBuilder(is_server=True, context=lambda: context)

    def client(self) -> ChannelBuilder:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.trusted)
        return ChannelBuilder(is_server=False, context=lambda: context)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def ends(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Ends]:
    both = Ends(certificates.server(request.param), certificates.client())
    yield both
    both.close()


def test_a_channel_is_ready_once_the_handshake_is_over_and_not_before(ends: Ends) -> None:
    assert not ends.client.is_channel_ready("client")
    ends.until(lambda: len(ends.ready) == 2)
    assert sorted(ends.ready) == ["client", "server"]
    assert ends.client.is_channel_ready("client")
    channel = ends.client.channel("client")
    assert channel is not None
    assert channel.transport.engine.version() == ends.server.channel("server").transport.engine.version()


@pytest.mark.parametrize("piece_size", [7, 1000, 200_000])
def test_frames_of_every_size_arrive_whole_both_ways(ends: Ends, piece_size: int) -> None:
    ends.until(lambda: len(ends.ready) == 2)
    for size in SIZES:
        payload = random.Random(size).randbytes(min(size, 2_000 * piece_size))
        pieces = [payload[at : at + piece_size] for at in range(0, len(payload), piece_size)]
        ends.client.send(NetworkSend("client", pieces))
        ends.until(lambda: ends.frames["server"])
        assert ends.frames["server"].pop() == payload
        ends.server.send(NetworkSend("server", pieces))
        ends.until(lambda: ends.frames["client"])
        assert ends.frames["client"].pop() == payload


def test_a_frame_is_told_as_sent_when_the_socket_has_taken_all_of_it(ends: Ends) -> None:
    ends.until(lambda: len(ends.ready) == 2)
    ends.client.send(NetworkSend("client", [bytes(30_000_000)]))
    for _ in range(20):
        ends.client.poll(1)
        assert not ends.client.completed_sends
    sent = []
    ends.until(lambda: sent.extend(ends.client.completed_sends) or ends.frames["server"])
    assert [send.is_completed for send in sent] == [True]
    assert len(ends.frames["server"][0]) == 30_000_000


def test_part_of_a_file_goes_out_between_pieces_in_memory(ends: Ends, tmp_path: Path) -> None:
    content = random.Random(1).randbytes(2_500_000)
    (tmp_path / "records").write_bytes(content)
    ends.until(lambda: len(ends.ready) == 2)
    with open(tmp_path / "records", "rb") as file:
        part = FileSlice(file.fileno(), 100, 2_400_000, Holder())
        ends.server.send(NetworkSend("server", [b"before", part, b"behind"]))
        ends.until(lambda: ends.frames["client"])
    assert ends.frames["client"] == [b"before" + content[100:2_400_100] + b"behind"]


@pytest.mark.behaviour(
    "Selector",
    "bytes that TLS has already decrypted are read without waiting for the socket",
)
def test_what_lies_in_the_engine_is_read_without_waiting_for_the_socket(ends: Ends) -> None:
    """A muted channel has frames in its TLS engine, for which the socket reports no event."""
    ends.until(lambda: len(ends.ready) == 2)
    server = ends.server.channel("server")
    for number in range(40):
        send = NetworkSend("client", [bytes([number]) * 10_000])
        ends.client.send(send)
        while not send.is_completed:
            ends.client.poll(1)
    assert server is not None
    received: list[bytes] = []
    while len(received) < 40:
        # A wait for the socket while frames are in the engine would last until the time-out of the test.
        ends.server.poll(1000 * BUDGET_MS)
        received += [bytes(one.payload) for one in ends.server.completed_receives]
    assert [frame[0] for frame in received] == list(range(40))


def test_a_channel_that_waits_for_memory_goes_on_with_what_its_engine_holds(
    certificates: Certificates,
) -> None:
    pool = MemoryPool(150_000)
    ends = Ends(certificates.server(), certificates.client(), max_receive_size=100_000, memory_pool=pool)
    ends.until(lambda: len(ends.ready) == 2)
    for number in range(10):
        send = NetworkSend("client", [bytes([number]) * 90_000])
        ends.client.send(send)
        ends.until(lambda send=send: send.is_completed)
    ends.until(lambda: len(ends.frames["server"]) == 10)
    assert [frame[0] for frame in ends.frames["server"]] == list(range(10))
    ends.close()


def test_the_end_of_one_side_is_heard_by_the_other(ends: Ends) -> None:
    ends.until(lambda: len(ends.ready) == 2)
    ends.client.close("client")
    ends.until(lambda: "server" in ends.ended)
    assert ends.ended["server"].phase is ConnectionPhase.READY
    assert ends.ended["server"].error is None


def test_a_client_without_the_certificate_that_is_asked_for_is_told_so(certificates: Certificates) -> None:
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        ends = Ends(certificates.server(version, asks=True), certificates.client())
        ends.until(lambda ends=ends: len(ends.ended) == 2)
        for state in ends.ended.values():
            assert state.phase is ConnectionPhase.AUTHENTICATION_FAILED
            assert isinstance(state.error, SslAuthenticationError)
            assert "certificate" in state.reason
        ends.close()


def test_a_server_that_speaks_no_tls_is_told_from_one_that_does(certificates: Certificates) -> None:
    ends = Ends(None, certificates.client())
    ends.until(lambda: ends.server.channel("server"))
    ends.server.send(NetworkSend("server", [b"an answer"]))
    ends.until(lambda: "client" in ends.ended)
    assert isinstance(ends.ended["client"].error, SslAuthenticationError)
    assert "answers without TLS" in ends.ended["client"].reason
    ends.close()


def test_a_client_that_speaks_no_tls_is_refused_with_a_sentence(certificates: Certificates) -> None:
    ends = Ends(certificates.server(), None)
    ends.until(lambda: ends.ready)
    ends.client.send(NetworkSend("client", [b"a request"]))
    ends.until(lambda: "server" in ends.ended)
    assert isinstance(ends.ended["server"].error, SslAuthenticationError)
    assert "speaks plaintext" in ends.ended["server"].reason
    ends.until(lambda: "client" in ends.ended)
    assert spoken_protocol(ends.ended["client"].error.frame_size) == "TLS"
    assert not ends.frames["server"]
    ends.close()


def test_a_certificate_for_another_host_is_refused_before_a_byte_of_a_frame(
    certificates: Certificates, tmp_path: Path
) -> None:
    other = certificates.authority.issue(names=["kafka.example"]).write(tmp_path, "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(other.certificate, other.key)
    ends = Ends(ChannelBuilder(is_server=True, context=lambda: context), certificates.client())
    ends.client.send(NetworkSend("client", [b"a request"]))
    ends.until(lambda: len(ends.ended) == 2)
    assert "Hostname mismatch" in ends.ended["client"].reason
    assert not ends.frames["server"]
    ends.close()


def test_a_client_that_does_not_finish_the_handshake_is_closed(certificates: Certificates) -> None:
    ends = Ends(certificates.server(), None, setup_timeout_ms=300)

    def is_closed() -> bool:
        ends.clock.advance(10)
        return "server" in ends.ended

    ends.until(is_closed)
    assert ends.ended["server"].phase is ConnectionPhase.AUTHENTICATE
    assert "within 300 ms" in ends.ended["server"].reason
    ends.close()


@pytest.mark.parametrize("said", [b"\0", b"\0\0\1\0few"], ids=["a byte", "a part"])
def test_first_frame_must_be_whole_in_time_from_its_first_byte(said: bytes) -> None:
    """A partial first frame at the setup deadline used to extend the deadline by the same time."""
    ends = Ends(None, None, VirtualClock(), setup_timeout_ms=10_000)
    ends.until(lambda: ends.server.is_channel_ready("server"))
    ends.clock.advance(7_000)
    ends.client.channel("client").sock.send(said)
    check_first_frame_deadline(ends, len(said))


def test_first_frame_inside_tls_must_be_whole_in_time(certificates: Certificates) -> None:
    ends = Ends(certificates.server(), certificates.client(), VirtualClock(), setup_timeout_ms=10_000)
    ends.until(lambda: len(ends.ready) == 2)
    ends.clock.advance(7_000)
    ends.client.send(NetworkSend("client", [bytes(32 << 20)]))
    ends.client.poll(0)
    assert ends.client.channel("client").has_send, "the socket must not take the whole frame"
    check_first_frame_deadline(ends, 20_000)


def check_first_frame_deadline(ends: Ends, arriving: int) -> None:
    await_bytes(ends.server.channel("server").sock, arriving)
    ends.server.poll(0)
    ends.clock.advance(9_999)
    for _ in range(5):
        ends.server.poll(0)
        assert not ends.server.disconnected
    ends.clock.advance(1)
    ends.server.poll(0)
    assert ends.server.disconnected["server"].reason == "the first request was not complete within 10000 ms"
    ends.close()


@pytest.mark.parametrize("is_secure", [False, True])
def test_ready_channel_that_sends_nothing_stays(certificates: Certificates, is_secure: bool) -> None:
    """Like Apache Kafka, leave it to connections.max.idle.ms: some clients connect long before they send."""
    clock = VirtualClock()
    ends = Ends(
        *(certificates.server(), certificates.client()) if is_secure else (None, None),
        clock,
        setup_timeout_ms=100,
    )
    ends.until(lambda: ends.server.is_channel_ready("server"))
    for _ in range(4):
        clock.advance(100)
        ends.poll()
    assert not ends.ended
    ends.client.send(NetworkSend("client", [b"late"]))
    ends.until(lambda: ends.frames["server"])
    ends.close()


def test_channel_that_has_sent_a_frame_stays_amid_the_next() -> None:
    clock = VirtualClock()
    ends = Ends(None, None, clock, setup_timeout_ms=100)
    ends.until(lambda: ends.server.channel("server"))
    ends.client.send(NetworkSend("client", [b"first"]))
    ends.until(lambda: ends.frames["server"])
    ends.client.channel("client").sock.send(b"\0\0\1\0few")
    for _ in range(4):
        clock.advance(100)
        ends.poll()
    assert not ends.ended
    ends.close()


def test_an_engine_that_does_not_take_a_whole_record_before_more_comes_is_given_more(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL always takes a whole record.

    With another engine, the end of the next record used to be searched before the first byte.
    """
    refusals, read = 0, ssl.SSLObject.read

    def read_now_and_then(engine: ssl.SSLObject, *arguments: Any) -> Any:
        nonlocal refusals
        if refusals > 0:
            refusals -= 1
            raise ssl.SSLWantReadError
        return read(engine, *arguments)

    monkeypatch.setattr(ssl.SSLObject, "read", read_now_and_then)
    ends = Ends(certificates.server(), certificates.client())
    ends.until(lambda: len(ends.ready) == 2)
    for number in range(50):
        for _ in range(3):
            ends.client.send(NetworkSend("client", [bytes([number]) * 100 * number]))
            ends.client.poll(0)
        refusals = 1
        ends.server.poll(0)
        ends.client.send(NetworkSend("client", [b"more"]))
        ends.until(lambda number=number: len(ends.frames["server"]) == 4 * (number + 1))
    expected = [each for number in range(50) for each in 3 * [bytes([number]) * 100 * number] + [b"more"]]
    assert ends.frames["server"] == expected
    ends.close()


def test_a_peer_that_negotiates_anew_while_it_is_written_to_is_left_with_a_reason(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A TLS 1.2 peer may renegotiate; the close reason must not blame the authentication of the peer."""

    def wants_to_read(engine: ssl.SSLObject, data: bytes) -> int:
        raise ssl.SSLWantReadError

    monkeypatch.setattr(ssl.SSLObject, "write", wants_to_read)
    ends = Ends(certificates.server(), certificates.client())
    ends.until(lambda: len(ends.ready) == 2)
    ends.client.send(NetworkSend("client", [b"a request"]))
    ends.until(lambda: "client" in ends.ended)
    assert ends.ended["client"].phase is ConnectionPhase.READY
    assert "TLS renegotiation" in ends.ended["client"].reason
    ends.close()


def test_a_forked_child_says_no_goodbye_in_its_parents_name(ends: Ends) -> None:
    ends.until(lambda: len(ends.ready) == 2)
    child = os.fork()
    if child == 0:
        ends.client.close_all()
        ends.server.close_all()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    for name, other in (("client", "server"), ("server", "client")):
        getattr(ends, name).send(NetworkSend(name, [b"from the parent"]))
        ends.until(lambda other=other: ends.frames[other] == [b"from the parent"])
    assert not ends.ended


@pytest.mark.parametrize("kept", [0, 100_000, 3_000_000])
def test_a_file_that_ends_too_early_ends_the_connection_without_a_wrong_byte(
    ends: Ends, tmp_path: Path, kept: int
) -> None:
    """The file is truncated after a part of it has been sent."""
    content = random.Random(1).randbytes(8_000_000)
    path = tmp_path / "records"
    path.write_bytes(content)
    ends.until(lambda: len(ends.ready) == 2)
    with open(path, "rb") as file:
        part = FileSlice(file.fileno(), 0, 8_000_000, Holder())
        ends.server.send(NetworkSend("server", [b"before", part, b"behind"]))
        ends.poll()
        os.truncate(path, kept)
        ends.until(lambda: len(ends.ended) == 2)
    assert ends.ended["server"].error.errno == errno.ENODATA
    assert ends.ended["client"].reason == "the peer has closed the connection"
    assert not ends.frames["client"]
