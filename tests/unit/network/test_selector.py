"""Selector with real loopback sockets and each backend, with the cases of Kafka's SelectorTest."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator

import pytest
from eventually import BUDGET_S, eventually
from model.selector_frames import await_bytes, frames_of, stream_of

from kafkacore.errors import IllegalStateError, InvalidReceiveError
from kafkacore.network import ConnectionPhase, MemoryPool, NetworkSend, Selector
from kafkacore.network._poller import BACKENDS
from kafkacore.testing import VirtualClock

IDLE_MS = 1000.0


class Pair:
    """A selector, and blocking sockets as its peers."""

    def __init__(self, backend: str, **options: object) -> None:
        self.clock = VirtualClock()
        self.selector = Selector(self.clock, backend=backend, **options)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.peers: list[socket.socket] = []
        self.received: dict[str, list[bytes]] = {}
        self.sent: list[str] = []
        self.connected: list[str] = []
        self.disconnected: dict[str, object] = {}

    @property
    def address(self) -> tuple[str, int]:
        return self.listener.getsockname()

    def connect(self, connection_id: str) -> socket.socket:
        """Connect, and return the peer's socket."""
        self.selector.connect(connection_id, self.address)
        peer, _ = self.listener.accept()
        peer.settimeout(BUDGET_S)
        self.peers.append(peer)
        self.poll_until(lambda: connection_id in self.connected)
        return peer

    def poll(self, timeout_ms: float = 0) -> None:
        selector = self.selector
        selector.poll(timeout_ms)
        self.connected += selector.connected
        self.sent += [send.destination_id for send in selector.completed_sends]
        self.disconnected |= selector.disconnected
        for receive in selector.completed_receives:
            self.received.setdefault(receive.source_id, []).append(bytes(receive.payload))

    def poll_until(self, condition: Callable[[], bool]) -> None:
        eventually(condition, step=lambda: self.poll(50))

    def await_bytes(self, connection_id: str, count: int) -> None:
        """Wait until so many bytes from a peer have arrived, which no poll has read."""
        await_bytes(self.selector.channel(connection_id).sock, count)

    def send(self, connection_id: str, *pieces: bytes) -> NetworkSend:
        send = NetworkSend(connection_id, list(pieces))
        self.selector.send(send)
        return send

    def close(self) -> None:
        self.selector.close_all()
        for each in [self.listener, *self.peers]:
            each.close()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make(backend: str) -> Iterator[Callable[..., Pair]]:
    made: list[Pair] = []

    def make_pair(**options: object) -> Pair:
        made.append(Pair(backend, **options))
        return made[-1]

    yield make_pair
    for each in made:
        each.close()


@pytest.fixture
def pair(make: Callable[..., Pair]) -> Pair:
    return make()


def read_exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(size - len(data))
        assert piece, "the peer closed the stream early"
        data += piece
    return bytes(data)


# ---- Connecting and sending ----------------------------------------------------------------------


def test_a_frame_goes_out_after_its_size_and_comes_back(pair: Pair) -> None:
    peer = pair.connect("a")
    pair.send("a", b"hel", b"", memoryview(b"lo"))
    pair.poll_until(lambda: pair.sent == ["a"])
    assert read_exactly(peer, 9) == b"\x00\x00\x00\x05hello"
    peer.sendall(stream_of([b"world"]))
    pair.poll_until(lambda: bool(pair.received))
    assert pair.received == {"a": [b"world"]}


def test_a_send_is_written_by_the_next_poll_without_being_waited_for(pair: Pair) -> None:
    pair.connect("a")
    send = pair.send("a", b"x" * 100)
    pair.poll(60_000)
    assert pair.selector.completed_sends == [send]
    assert send.is_completed
    assert not send.holds_pieces


def test_what_is_sent_now_is_out_before_any_poll_and_none_tells_of_it(pair: Pair) -> None:
    peer = pair.connect("a")
    assert pair.selector.send_now(NetworkSend("a", [b"hello"]))
    assert peer.recv(100) == stream_of([b"hello"])
    pair.poll()
    assert pair.sent == []
    assert pair.selector.send_now(NetworkSend("a", [b"again"]))


def test_what_does_not_go_out_now_is_the_next_polls(make: Callable[..., Pair]) -> None:
    pair = make()
    peer = pair.connect("a")
    large = b"x" * (16 << 20)
    assert not pair.selector.send_now(NetworkSend("a", [large]))
    with pytest.raises(IllegalStateError, match="still being written"):
        pair.selector.send_now(NetworkSend("a", [b"too soon"]))
    taken = bytearray()
    peer.setblocking(False)

    def drained() -> bool:
        try:
            taken.extend(peer.recv(1 << 20))
        except BlockingIOError:
            return False
        return len(taken) == len(large) + 4

    pair.poll_until(drained)
    pair.poll_until(lambda: pair.sent == ["a"])
    assert bytes(taken[4:]) == large


def test_what_is_sent_now_to_a_peer_that_has_gone_ends_the_channel_in_a_poll(pair: Pair) -> None:
    peer = pair.connect("a")
    peer.sendall(stream_of([b"last words"]))
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    peer.close()
    for _ in range(3):
        if pair.selector.send_now(NetworkSend("a", [b"x" * 1000])):
            continue
        break
    pair.poll_until(lambda: "a" in pair.disconnected)
    assert pair.sent == []


@pytest.mark.behaviour("Selector", "a channel accepts one send at a time")
def test_a_second_send_on_a_busy_channel_is_refused(pair: Pair) -> None:
    pair.connect("a")
    pair.send("a", b"first")
    with pytest.raises(IllegalStateError, match="still being written"):
        pair.send("a", b"second")


@pytest.mark.behaviour(
    "Selector",
    "a send needs a connection; a failed connect is reported by poll and not raised",
)
def test_a_send_without_a_connection_is_refused(pair: Pair) -> None:
    with pytest.raises(IllegalStateError, match=r"call connect\(\) first"):
        pair.send("unknown", b"x")


def test_a_send_before_the_connection_stands_is_written_once_it_does(pair: Pair) -> None:
    pair.selector.connect("a", pair.address)
    pair.send("a", b"early")
    peer, _ = pair.listener.accept()
    pair.peers.append(peer)
    pair.poll_until(lambda: pair.sent == ["a"])
    assert read_exactly(peer, 9) == stream_of([b"early"])


def test_an_id_in_use_is_refused_and_the_first_connection_stays(pair: Pair) -> None:
    peer = pair.connect("a")
    with pytest.raises(IllegalStateError, match="already"):
        pair.selector.connect("a", pair.address)
    with pytest.raises(IllegalStateError, match="already"):
        pair.selector.register("a", peer)
    pair.send("a", b"still here")
    pair.poll_until(lambda: pair.sent == ["a"])


@pytest.mark.behaviour(
    "Selector",
    "a send needs a connection; a failed connect is reported by poll and not raised",
)
def test_a_refused_connection_is_reported_and_not_raised(pair: Pair) -> None:
    # A port that is free can become another program's, or that of the connecting socket itself.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        pair.selector.connect("a", bound.getsockname())
        pair.poll_until(lambda: "a" in pair.disconnected)
    state = pair.disconnected["a"]
    assert state.phase is ConnectionPhase.NOT_CONNECTED
    assert isinstance(state.error, ConnectionRefusedError)
    assert pair.connected == []
    assert pair.selector.channel_ids() == []


@pytest.mark.behaviour(
    "Selector",
    "a send needs a connection; a failed connect is reported by poll and not raised",
)
def test_an_unroutable_address_is_reported_and_not_raised(pair: Pair) -> None:
    # TCP cannot connect to the broadcast address, so every system refuses at once.
    pair.selector.connect("a", ("255.255.255.255", 9092))
    pair.poll_until(lambda: "a" in pair.disconnected)
    assert pair.disconnected["a"].phase is ConnectionPhase.NOT_CONNECTED


@pytest.mark.behaviour("Selector", "a connect that raises leaves nothing registered")
def test_an_error_in_connect_leaves_nothing_registered(pair: Pair) -> None:
    with pytest.raises(socket.gaierror):
        pair.selector.connect("a", ("no.such.address.invalid", 9092))
    assert pair.selector.channel_ids() == []
    with pytest.raises(OSError, match="invalid port 70000"):
        pair.selector.connect("a", ("127.0.0.1", 70_000))
    assert pair.selector.channel_ids() == []
    pair.connect("a")


@pytest.mark.behaviour(
    "Selector",
    "a connection that is established and fails in one poll is reported only as failed",
)
def test_connecting_and_failing_within_one_poll_shows_only_as_disconnected(pair: Pair) -> None:
    pair.selector.connect("a", pair.address)
    peer, _ = pair.listener.accept()
    # The connection expires as idle in the poll that reports it.
    pair.clock.advance(1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    peer.close()
    pair.poll_until(lambda: "a" in pair.disconnected)
    assert "a" not in pair.selector.connected
    assert pair.selector.channel_ids() == []


# ---- Large frames and many frames ----------------------------------------------------------------


@pytest.mark.behaviour(
    "Selector",
    "partial reads and writes lose no bytes, for one huge frame as for many large ones",
)
def test_a_frame_larger_than_the_socket_buffers_survives_partial_writes(make: Callable[..., Pair]) -> None:
    pair = make()
    peer = pair.connect("a")
    payload = bytes(range(256)) * 40_000
    pieces = [payload[at : at + 100_003] for at in range(0, len(payload), 100_003)]
    send = pair.send("a", *pieces)
    pair.poll()
    assert not send.is_completed
    assert send.holds_pieces
    got = bytearray()
    peer.setblocking(False)

    def drained() -> bool:
        try:
            got.extend(peer.recv(1 << 20))
        except BlockingIOError:
            return False
        return len(got) == len(payload) + 4

    eventually(drained, step=pair.poll)
    pair.poll_until(lambda: pair.sent == ["a"])
    assert frames_of(bytes(got)) == ([payload], b"")


def test_more_pieces_than_one_system_call_takes_are_written_in_order(pair: Pair) -> None:
    peer = pair.connect("a")
    pieces = [b"%d," % each for each in range(5000)]
    pair.send("a", *pieces)
    pair.poll_until(lambda: pair.sent == ["a"])
    joined = b"".join(pieces)
    assert read_exactly(peer, len(joined) + 4) == stream_of([joined])


@pytest.mark.behaviour(
    "Selector",
    "partial reads and writes lose no bytes, for one huge frame as for many large ones",
)
def test_a_long_run_of_large_and_small_frames_is_received_whole(pair: Pair) -> None:
    peer = pair.connect("a")
    frames = [
        bytes([n]) * size for n, size in enumerate([300_000, 0, 1, 2_000_000, 40_000, 5, 65_535, 65_536])
    ] * 3
    stream = stream_of(frames)
    peer.setblocking(False)
    at = 0
    while at < len(stream):
        try:
            at += peer.send(stream[at : at + 700_001])
        except BlockingIOError:
            pair.poll(1000)
    pair.poll_until(lambda: len(pair.received.get("a", [])) == len(frames))
    assert pair.received["a"] == frames


def test_many_small_frames_arrive_in_one_poll(pair: Pair) -> None:
    peer = pair.connect("a")
    frames = [b"%d" % each for each in range(500)]
    peer.sendall(stream_of(frames))
    pair.poll_until(lambda: bool(pair.received))
    assert pair.selector.completed_receives[0].payload.obj is pair.selector.completed_receives[-1].payload.obj
    assert pair.received["a"] == frames


def test_what_one_channel_reads_in_one_poll_is_bounded(pair: Pair) -> None:
    peer, other = pair.connect("a"), pair.connect("b")
    peer.setblocking(False)
    payload = b"x" * 60_000
    written = 0
    while True:
        try:
            written += peer.send(stream_of([payload]) * 4)
        except BlockingIOError:
            break
    other.sendall(stream_of([b"me too"]))
    pair.poll(1000)
    assert len(pair.received.get("a", [])) * len(payload) <= 2 * 1024 * 1024
    pair.poll_until(lambda: pair.received.get("b") == [b"me too"])


def test_hundreds_of_connections_are_served(make: Callable[..., Pair]) -> None:
    pair = make()
    count = 300
    for each in range(count):
        ours, theirs = socket.socketpair()
        pair.selector.register(str(each), ours)
        pair.peers.append(theirs)
        theirs.sendall(stream_of([b"%d" % each]))
    pair.poll_until(lambda: len(pair.received) == count)
    assert all(pair.received[str(each)] == [b"%d" % each] for each in range(count))


# ---- Disconnects ---------------------------------------------------------------------------------


@pytest.mark.behaviour("Selector", "a connection that the peer closed is reported")
def test_a_close_by_the_peer_puts_the_id_in_disconnected(pair: Pair) -> None:
    pair.connect("a").close()
    pair.poll_until(lambda: "a" in pair.disconnected)
    assert pair.disconnected["a"].phase is ConnectionPhase.READY
    assert pair.disconnected["a"].error is None


@pytest.mark.behaviour(
    "Selector",
    "complete frames received before a close are delivered first; a partial frame does not delay the close",
)
@pytest.mark.parametrize("tail", [b"", b"\x00\x00", b"\x00\x00\x00\x09half"])
def test_whole_frames_are_delivered_before_the_close_and_a_partial_one_does_not_delay_it(
    pair: Pair, tail: bytes
) -> None:
    peer = pair.connect("a")
    frames = [b"1", b"2" * 100_000, b"3"]
    peer.sendall(stream_of(frames) + tail)
    peer.close()
    pair.poll_until(lambda: "a" in pair.disconnected)
    assert pair.received["a"] == frames


@pytest.mark.behaviour(
    "Selector",
    "complete frames received before a close are delivered first; a partial frame does not delay the close",
)
def test_frames_are_delivered_though_a_write_fails_first(pair: Pair) -> None:
    peer = pair.connect("a")
    peer.sendall(stream_of([b"goodbye"]))
    pair.send("a", b"x" * 50_000_000)
    pair.poll()
    peer.close()
    pair.poll_until(lambda: "a" in pair.disconnected)
    assert pair.received == {"a": [b"goodbye"]}


def test_a_frame_that_is_being_written_is_let_go_when_its_channel_ends(pair: Pair) -> None:
    peer = pair.connect("a")
    buffer = bytearray(50_000_000)
    send = pair.send("a", buffer)
    pair.poll()
    with pytest.raises(BufferError):
        buffer.append(0)
    peer.close()
    pair.poll_until(lambda: "a" in pair.disconnected)
    assert not send.holds_pieces
    buffer.append(0)


@pytest.mark.parametrize("header", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"HTTP/1.1 400"])
def test_what_is_no_frame_closes_the_channel_with_a_typed_error(
    make: Callable[..., Pair], header: bytes
) -> None:
    pair = make(max_receive_size=1000)
    pair.connect("a").sendall(stream_of([b"good"]) + header)
    pair.poll_until(lambda: "a" in pair.disconnected)
    assert isinstance(pair.disconnected["a"].error, InvalidReceiveError)
    assert pair.received == {"a": [b"good"]}


def test_close_ends_a_connection_without_a_report_and_its_id_can_be_used_again(pair: Pair) -> None:
    peer = pair.connect("a")
    pair.selector.close("a")
    assert peer.recv(1) == b""
    pair.poll()
    assert pair.disconnected == {}
    pair.connected.clear()
    pair.connect("a")
    pair.selector.close("unknown")


def test_a_send_to_a_channel_that_has_just_ended_is_dropped(pair: Pair) -> None:
    # The owner handles received frames, and responds to them, before it handles disconnects.
    pair.connect("a").close()
    pair.poll_until(lambda: "a" in pair.disconnected)
    pair.send("a", b"too late")
    pair.selector.mute("a")
    pair.poll()
    with pytest.raises(IllegalStateError):
        pair.send("a", b"much too late")


# ---- Muting and idle connections -----------------------------------------------------------------


@pytest.mark.behaviour("Selector", "muted channels are not read")
def test_a_muted_channel_reads_nothing_until_unmuted(pair: Pair) -> None:
    peer = pair.connect("a")
    pair.selector.mute("a")
    peer.sendall(stream_of([b"waiting"]))
    peer.close()
    for _ in range(3):
        pair.poll(20)
    assert (pair.received, pair.disconnected) == ({}, {})
    pair.selector.unmute("a")
    pair.poll_until(lambda: "a" in pair.disconnected)
    assert pair.received == {"a": [b"waiting"]}


def test_a_muted_channel_still_writes(pair: Pair) -> None:
    peer = pair.connect("a")
    pair.selector.mute("a")
    pair.send("a", b"answer")
    pair.poll_until(lambda: pair.sent == ["a"])
    assert read_exactly(peer, 10) == stream_of([b"answer"])


@pytest.mark.behaviour(
    "Selector",
    "the connection that has been idle longest is closed, unless bytes from it are waiting",
)
def test_the_oldest_idle_connection_expires(make: Callable[..., Pair]) -> None:
    pair = make(connections_max_idle_ms=IDLE_MS)
    old, young = pair.connect("old"), pair.connect("young")
    pair.clock.advance(IDLE_MS)
    young.sendall(stream_of([b"busy"]))
    pair.poll_until(lambda: "young" in pair.received)
    assert pair.disconnected == {}
    pair.clock.advance(1)
    pair.poll()
    assert list(pair.disconnected) == ["old"]
    assert pair.disconnected["old"].phase is ConnectionPhase.EXPIRED
    assert old.recv(1) == b""


@pytest.mark.behaviour(
    "Selector",
    "the connection that has been idle longest is closed, unless bytes from it are waiting",
)
def test_an_idle_connection_with_unread_data_does_not_expire(make: Callable[..., Pair]) -> None:
    pair = make(connections_max_idle_ms=IDLE_MS)
    peer = pair.connect("a")
    pair.selector.mute("a")
    peer.sendall(stream_of([b"unread"]))
    pair.await_bytes("a", 1)
    for _ in range(3):
        pair.clock.advance(IDLE_MS + 1)
        pair.poll(20)
    assert pair.disconnected == {}
    pair.selector.unmute("a")
    pair.poll_until(lambda: pair.received == {"a": [b"unread"]})
    pair.clock.advance(IDLE_MS + 1)
    pair.poll()
    assert list(pair.disconnected) == ["a"]


# ---- Memory --------------------------------------------------------------------------------------


@pytest.mark.behaviour("Selector", "channels wait until receive memory is free")
def test_out_of_memory_the_rest_waits_and_goes_on_as_memory_returns(make: Callable[..., Pair]) -> None:
    pair = make(memory_pool=MemoryPool(100))
    peers = [pair.connect(str(each)) for each in range(3)]
    for peer in peers:
        peer.sendall(stream_of([b"x" * 80, b"y" * 80]))
    for name in ("0", "1", "2"):
        pair.await_bytes(name, 2 * 84)
    held = []

    def poll() -> None:
        pair.selector.poll(20)
        held.extend(pair.selector.completed_receives)

    for round_number in range(6):
        eventually(lambda: held, step=poll)
        for _ in range(2):
            poll()
        assert len(held) == 1, round_number
        held.clear()
        pair.selector.completed_receives.clear()
    pair.selector.poll(20)
    assert pair.selector.completed_receives == []


def test_small_frames_are_read_together_while_the_pool_has_room_and_counted_as_long_as_they_are_held(
    make: Callable[..., Pair],
) -> None:
    pool = MemoryPool(1 << 20)
    pair = make(memory_pool=pool, max_receive_size=1000)
    peer = pair.connect("a")
    peer.sendall(stream_of([b"%03d" % number for number in range(300)]))
    held: list[memoryview] = []
    while len(held) < 300:
        pair.selector.poll(50)
        held += [receive.payload for receive in pair.selector.completed_receives]
    assert [bytes(each) for each in held] == [b"%03d" % number for number in range(300)]
    assert 0 < pool.used <= 128 << 10
    held.clear()
    peer.sendall(stream_of([b"next"]))
    pair.poll_until(lambda: "a" in pair.received)
    assert pool.used <= 64 << 10


@pytest.mark.behaviour("Selector", "channels wait until receive memory is free")
def test_a_frame_above_the_pools_limit_is_let_in_alone(make: Callable[..., Pair]) -> None:
    pool = MemoryPool(100)
    pair = make(memory_pool=pool)
    pair.connect("a").sendall(stream_of([b"x" * 1000]))
    pair.poll_until(lambda: pair.received == {"a": [b"x" * 1000]})
    pair.poll()
    assert pool.used == 0


MIB = 1 << 20


def claim(peer: socket.socket, size: int, sent: bytes = b"a few bytes") -> None:
    peer.sendall(struct.pack(">i", size) + sent)


def test_who_claims_all_memory_and_sends_nothing_is_closed_when_others_have_waited(
    make: Callable[..., Pair],
) -> None:
    pool = MemoryPool(64 * MIB)
    pair = make(memory_pool=pool, max_receive_size=100 * MIB)
    silent, slow, good = (pair.connect(name) for name in ("silent", "slow", "good"))
    claim(silent, 60 * MIB)
    claim(slow, 3 * MIB)
    pair.poll_until(lambda: pool.used >= 63 * MIB)
    good.sendall(stream_of([b"x" * 2 * MIB]))
    pair.await_bytes("good", 5)
    for _ in range(5):
        slow.sendall(bytes(100_000))
        # Six such parts are enough progress; the receive buffer may be too small for the whole.
        pair.await_bytes("slow", 20_000)
        pair.clock.advance(1000)
        pair.poll(20)
        assert pair.disconnected == {}
    slow.sendall(bytes(100_000))
    pair.await_bytes("slow", 20_000)
    pair.clock.advance(1000)
    pair.poll_until(lambda: "good" in pair.received)
    assert list(pair.disconnected) == ["silent"]
    state = pair.disconnected["silent"]
    assert state.phase is ConnectionPhase.EXPIRED
    assert "received only 11 of 62914560 bytes of a frame" in state.reason
    assert isinstance(state.error, InvalidReceiveError)
    # A slow peer that sends fast enough may complete its frame.
    slow.sendall(bytes(3 * MIB - 600_000 - 11))
    pair.poll_until(lambda: "slow" in pair.received)


def test_who_keeps_memory_that_nobody_waits_for_may_take_its_time(make: Callable[..., Pair]) -> None:
    pool = MemoryPool(64 * MIB)
    pair = make(memory_pool=pool, max_receive_size=100 * MIB)
    claim(pair.connect("silent"), 60 * MIB)
    pair.poll_until(lambda: pool.used >= 60 * MIB)
    for _ in range(20):
        pair.clock.advance(1000)
        pair.poll()
    assert pair.disconnected == {}


def test_small_frames_come_through_while_large_ones_have_taken_all_memory(make: Callable[..., Pair]) -> None:
    pool = MemoryPool(64 * MIB)
    pair = make(memory_pool=pool, max_receive_size=100 * MIB)
    claims = [pair.connect(str(size)) for size in (60, 4)]
    claim(claims[0], 60 * MIB)
    pair.poll_until(lambda: pool.used >= 60 * MIB)
    claim(claims[1], pool.limit - pool.used)
    pair.poll_until(lambda: pool.used == pool.limit)
    good = pair.connect("good")
    for number in range(3):
        good.sendall(stream_of([b"question %d" % number]))
        pair.poll_until(lambda count=number + 1: len(pair.received.get("good", ())) == count)
    assert pair.disconnected == {}


def test_memory_that_comes_back_goes_to_those_whom_it_is_enough_for(make: Callable[..., Pair]) -> None:
    pool = MemoryPool(64 * MIB)
    pair = make(memory_pool=pool, max_receive_size=100 * MIB)
    holder, greedy, modest = (pair.connect(name) for name in ("holder", "greedy", "modest"))
    claim(pair.connect("silent"), 30 * MIB)
    claim(holder, 30 * MIB)
    pair.poll_until(lambda: pool.used >= 60 * MIB)
    claim(greedy, 40 * MIB)
    pair.poll(20)
    claim(modest, 20 * MIB)
    for _ in range(5):
        pair.poll(20)
    assert pool.used < 61 * MIB
    holder.close()
    pair.poll_until(lambda: 50 * MIB <= pool.used < 51 * MIB)
    assert list(pair.disconnected) == ["holder"]


def test_closed_channel_gives_memory_of_its_frame_back_whoever_holds_it(make: Callable[..., Pair]) -> None:
    pool = MemoryPool(64 * MIB)
    pair = make(memory_pool=pool, max_receive_size=100 * MIB)
    claim(pair.connect("a"), 60 * MIB)
    pair.poll_until(lambda: pool.used >= 60 * MIB)
    held = pair.selector.channel("a")
    pair.selector.close("a")
    assert held.is_closed
    assert pool.used < MIB


def test_flush_writes_frames_and_a_later_poll_reports_a_failure(make: Callable[..., Pair]) -> None:
    pair = make()
    peer = pair.connect("c")
    pair.send("c", b"frame")
    pair.selector.flush()
    assert peer.recv(9) == b"\0\0\0\5frame"
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()

    def is_reported() -> bool:
        if "c" not in pair.disconnected:
            pair.send("c", b"frame")
            pair.selector.flush()
            pair.poll()
        return "c" in pair.disconnected

    eventually(is_reported)
