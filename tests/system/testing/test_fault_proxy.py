"""FaultProxy between two sockets of the test: every fault, observed at both ends."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from eventually import BUDGET_MS, BUDGET_S

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import IllegalStateError
from kafkacore.testing import Direction, Ending, FaultProxy
from kafkacore.testing.proxy_frames import RequestSeen

#: Long enough to conclude that no data arrives: the loopback needs microseconds.
SILENT_S = 0.05


class Wire:
    """A proxy in front of a listener of the test, and pairs of sockets that are connected through it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.listener.settimeout(BUDGET_S)
        self.proxy = stack.enter_context(FaultProxy(f"127.0.0.1:{self.listener.getsockname()[1]}"))

    def client(self) -> socket.socket:
        end = socket.create_connection(("127.0.0.1", self.proxy.port), timeout=BUDGET_S)
        return self._stack.enter_context(end)

    def pair(self) -> tuple[socket.socket, socket.socket]:
        """Connect through the proxy, and return the client's and the broker's socket."""
        client = self.client()
        broker, _ = self.listener.accept()
        broker.settimeout(BUDGET_S)
        return client, self._stack.enter_context(broker)


@pytest.fixture
def wire() -> Iterator[Wire]:
    with ExitStack() as stack:
        yield Wire(stack)


def read(end: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (chunk := end.recv(size - len(data))):
        data += chunk
    return data


def read_to_end(end: socket.socket) -> tuple[bytes, Ending]:
    """Read all data, and return it with the ending, FIN or RST."""
    data = b""
    try:
        while chunk := end.recv(65536):
            data += chunk
    except ConnectionResetError:
        return data, Ending.RST
    return data, Ending.FIN


def is_silent(end: socket.socket) -> bool:
    end.settimeout(SILENT_S)
    try:
        end.recv(1)
    except TimeoutError:
        return True
    finally:
        end.settimeout(BUDGET_S)
    return False


def has_lost_bytes(proxy: FaultProxy) -> bool:
    """Return whether the proxy has read bytes that it discards. No counter counts them."""
    return any(stream.has_gap for connection in proxy._connections for stream in connection.streams)


def elapsed_ms(action: Callable[[], object]) -> float:
    begun_ms = SYSTEM_CLOCK.monotonic_ms()
    action()
    return SYSTEM_CLOCK.monotonic_ms() - begun_ms


def request(api_key: int, correlation_id: int, body: bytes = b"") -> bytes:
    head = struct.pack(">hhi", api_key, 3, correlation_id)
    return struct.pack(">i", len(head) + len(body)) + head + body


def response(correlation_id: int, body: bytes = b"") -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


# ---- Without a fault ---------------------------------------------------------------------------------------


def test_megabytes_pass_both_ways_at_once_and_unchanged(wire: Wire) -> None:
    client, broker = wire.pair()
    data = bytes(range(256)) * 12_000
    ends = [threading.Thread(target=end.sendall, args=(data,)) for end in (client, broker)]
    got: list[bytes] = []
    ends += [
        threading.Thread(target=lambda end=end: got.append(read(end, len(data)))) for end in (client, broker)
    ]
    for thread in ends:
        thread.start()
    for thread in ends:
        thread.join(BUDGET_S)
    assert got == [data, data]
    # The proxy counts bytes after it has forwarded them.
    assert wire.proxy.wait_for(
        lambda now: (now.bytes_to_broker, now.bytes_to_client) == (len(data), len(data)), BUDGET_MS
    )
    counters = wire.proxy.counters
    assert (counters.connections, counters.open_connections, counters.cuts) == (1, 1, 0)


def test_close_of_one_side_reaches_the_other_after_the_bytes_and_leaves_its_way_back_open(wire: Wire) -> None:
    client, broker = wire.pair()
    client.sendall(b"last")
    client.shutdown(socket.SHUT_WR)
    assert read_to_end(broker) == (b"last", Ending.FIN)
    broker.sendall(b"answer")
    broker.close()
    assert read_to_end(client) == (b"answer", Ending.FIN)
    assert wire.proxy.wait_for(lambda counters: counters.open_connections == 0, BUDGET_MS)
    assert wire.proxy.counters.cuts == 0


@pytest.mark.parametrize("side", [0, 1])
def test_reset_of_one_side_is_a_reset_of_the_other(wire: Wire, side: int) -> None:
    ends = wire.pair()
    ends[side].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    ends[side].close()
    assert read_to_end(ends[1 - side]) == (b"", Ending.RST)


def test_peer_that_does_not_read_stops_the_other_and_nothing_is_lost(wire: Wire) -> None:
    client, broker = wire.pair()
    data = b"0123456789abcdef" * (1 << 20)
    writer = threading.Thread(target=client.sendall, args=(data,))
    writer.start()
    assert wire.proxy.wait_for(lambda counters: counters.bytes_to_broker > 0, BUDGET_MS)
    assert read(broker, len(data)) == data
    writer.join(BUDGET_S)


def test_idle_proxy_uses_no_processor_time(wire: Wire) -> None:
    client, _ = wire.pair()
    wire.proxy.set_stalled()
    client.sendall(b"x" * 1000)
    turns = 0
    turn = wire.proxy._turn

    def counted() -> None:
        nonlocal turns
        turns += 1
        turn()

    wire.proxy._turn = counted  # type: ignore[method-assign]
    assert not wire.proxy.wait_for(lambda counters: counters.cuts > 0, 200.0)
    assert turns < 5


# ---- Delay and rate ----------------------------------------------------------------------------------------


def test_delay_is_of_one_direction_and_keeps_the_order(wire: Wire) -> None:
    client, broker = wire.pair()
    wire.proxy.set_delay(60.0, 40.0, direction=Direction.TO_BROKER)

    def there() -> None:
        for number in range(50):
            client.sendall(b"%02d" % number)
        assert read(broker, 100) == b"".join(b"%02d" % number for number in range(50))

    assert elapsed_ms(there) >= 60.0
    wire.proxy.set_delay(5_000.0, direction=Direction.TO_BROKER)
    broker.sendall(b"back")
    assert read(client, 4) == b"back"


def test_delay_that_is_lifted_delays_no_more(wire: Wire) -> None:
    client, broker = wire.pair()
    wire.proxy.set_delay(60_000.0)
    wire.proxy.set_delay(0.0)
    client.sendall(b"now")
    assert read(broker, 3) == b"now"


def test_delay_lets_many_bytes_be_on_their_way_at_once(wire: Wire) -> None:
    client, broker = wire.pair()
    wire.proxy.set_delay(1_000.0)

    def there() -> None:
        for _ in range(1_000):
            client.sendall(b"x" * 20)
        read(broker, 20_000)

    # Delaying the chunks one after the other would exceed the timeout of a read.
    assert elapsed_ms(there) >= 1_000.0


def test_rate_is_shared_by_all_connections(wire: Wire) -> None:
    pairs = [wire.pair(), wire.pair()]
    wire.proxy.set_rate(100_000.0, direction=Direction.TO_BROKER)

    def there() -> None:
        for client, _ in pairs:
            client.sendall(b"x" * 10_000)
        for _, broker in pairs:
            assert len(read(broker, 10_000)) == 10_000

    assert elapsed_ms(there) >= 199.0
    wire.proxy.set_rate(None)
    pairs[0][0].sendall(b"y" * 100_000)
    assert len(read(pairs[0][1], 100_000)) == 100_000


def test_slow_link_passes_on_piece_by_piece(wire: Wire) -> None:
    client, broker = wire.pair()
    chunk = b"x" * 60_000
    # The whole chunk would take twice as long as the timeout of a read.
    wire.proxy.set_rate(len(chunk) / (2 * BUDGET_S))
    client.sendall(chunk)
    assert broker.recv(1)


# ---- Half-open and black holes -----------------------------------------------------------------------------


def test_stalled_connection_is_silent_and_goes_on_when_lifted(wire: Wire) -> None:
    client, broker = wire.pair()
    wire.proxy.set_stalled()
    client.sendall(b"held")
    client.shutdown(socket.SHUT_WR)
    assert is_silent(broker)
    wire.proxy.set_stalled(False)
    assert read_to_end(broker) == (b"held", Ending.FIN)


def test_stall_of_one_direction_leaves_the_other(wire: Wire) -> None:
    client, broker = wire.pair()
    wire.proxy.set_stalled(direction=Direction.TO_CLIENT)
    client.sendall(b"there")
    assert read(broker, 5) == b"there"
    broker.sendall(b"back")
    assert is_silent(client)
    wire.proxy.lift()
    assert read(client, 4) == b"back"


def test_black_hole_swallows_bytes_and_closes_and_takes_new_connections(wire: Wire) -> None:
    wire.proxy.set_black_hole()
    client, broker = wire.pair()
    client.sendall(b"x" * 4_000_000)
    client.shutdown(socket.SHUT_WR)
    assert is_silent(broker)
    assert is_silent(client)
    assert wire.proxy.counters.bytes_to_broker == 0


def test_connection_that_lost_bytes_in_a_black_hole_is_reset_when_it_is_lifted(wire: Wire) -> None:
    client, broker = wire.pair()
    whole_client, whole_broker = wire.pair()
    wire.proxy.set_black_hole()
    client.sendall(b"lost")
    assert wire.proxy.wait_for(lambda _: has_lost_bytes(wire.proxy), BUDGET_MS)
    assert is_silent(broker)
    wire.proxy.set_black_hole(False)
    assert read_to_end(broker) == (b"", Ending.RST)
    assert read_to_end(client) == (b"", Ending.RST)
    whole_client.sendall(b"whole")
    assert read(whole_broker, 5) == b"whole"


# ---- Connections -------------------------------------------------------------------------------------------


def test_refused_is_refused_and_the_port_is_kept(wire: Wire) -> None:
    standing_client, standing_broker = wire.pair()
    for _ in range(3):
        wire.proxy.set_refusing()
        with pytest.raises(ConnectionRefusedError):
            wire.client()
        wire.proxy.set_refusing(False)
        client, broker = wire.pair()
        client.sendall(b"again")
        assert read(broker, 5) == b"again"
    standing_client.sendall(b"stands")
    assert read(standing_broker, 6) == b"stands"


def test_client_is_reset_while_the_broker_is_away(wire: Wire) -> None:
    def is_reset() -> bool:
        try:
            client = wire.client()
        except ConnectionResetError:
            # The reset came so early that connect() failed.
            return True
        return read_to_end(client) == (b"", Ending.RST)

    wire.listener.close()
    assert is_reset()
    wire.proxy.target = None
    assert is_reset()


def test_target_may_change_and_new_connections_go_there(wire: Wire) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        other.settimeout(BUDGET_S)
        wire.proxy.target = f"127.0.0.1:{other.getsockname()[1]}"
        client = wire.client()
        broker, _ = other.accept()
        with broker:
            client.sendall(b"moved")
            assert read(broker, 5) == b"moved"


@pytest.mark.parametrize("ending", [Ending.FIN, Ending.RST])
def test_all_connections_are_ended_at_once_as_told(wire: Wire, ending: Ending) -> None:
    pairs = [wire.pair() for _ in range(3)]
    wire.proxy.reset_connections(ending)
    for client, broker in pairs:
        assert read_to_end(client) == (b"", ending)
        assert read_to_end(broker) == (b"", ending)
    client, broker = wire.pair()
    client.sendall(b"new")
    assert read(broker, 3) == b"new"
    assert wire.proxy.counters.cuts == 3


def test_closed_proxy_has_reset_its_clients_and_refuses_faults(wire: Wire) -> None:
    client, broker = wire.pair()
    wire.proxy.close()
    wire.proxy.close()
    assert read_to_end(client) == (b"", Ending.RST)
    assert read_to_end(broker) == (b"", Ending.RST)
    with pytest.raises(IllegalStateError):
        wire.proxy.set_delay(1.0)
    with pytest.raises(ConnectionRefusedError):
        wire.client()


# ---- Cuts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [Ending.FIN, Ending.RST])
@pytest.mark.parametrize("after", [0, 1, 7, 10])
@pytest.mark.parametrize("direction", list(Direction))
def test_cut_lets_exactly_so_many_bytes_pass(
    wire: Wire, direction: Direction, after: int, ending: Ending
) -> None:
    wire.proxy.cut(direction, after, connection=1, ending=ending)
    client, broker = wire.pair()
    sender, receiver = (client, broker) if direction is Direction.TO_BROKER else (broker, client)
    sender.sendall(b"0123456789")
    assert read_to_end(receiver) == (b"0123456789"[:after], ending)
    assert read_to_end(sender) == (b"", ending)
    assert wire.proxy.wait_for(lambda counters: counters.cuts == 1, BUDGET_MS)


def test_cut_in_silence_tells_nobody(wire: Wire) -> None:
    wire.proxy.cut(Direction.TO_BROKER, 3, connection=1, ending=Ending.SILENCE)
    client, broker = wire.pair()
    client.sendall(b"01234")
    assert read(broker, 3) == b"012"
    client.sendall(b"5")
    broker.sendall(b"back")
    assert is_silent(broker)
    assert is_silent(client)
    wire.proxy.reset_connections()
    assert read_to_end(client)[1] is Ending.RST


def test_cut_of_the_nth_connection_leaves_the_others_and_happens_once(wire: Wire) -> None:
    wire.pair()
    wire.proxy.cut(Direction.TO_BROKER, 1, connection=2)
    ends = [wire.pair() for _ in range(4)]
    for client, _ in ends:
        client.sendall(b"abc")
    assert [read(broker, 3) for _, broker in ends] == [b"abc", b"a", b"abc", b"abc"]


def test_cut_of_every_connection_counts_from_now_on_and_is_lifted(wire: Wire) -> None:
    standing = wire.pair()
    standing[0].sendall(b"before")
    assert read(standing[1], 6) == b"before"
    wire.proxy.cut(Direction.TO_BROKER, 2)
    for client, broker in (standing, wire.pair(), wire.pair()):
        client.sendall(b"abc")
        assert read_to_end(broker) == (b"ab", Ending.FIN)
    last_client, last_broker = wire.pair()
    wire.proxy.lift()
    last_client.sendall(b"abc")
    assert read(last_broker, 3) == b"abc"


def test_cut_comes_when_the_delayed_bytes_before_it_have_come(wire: Wire) -> None:
    wire.proxy.set_delay(50.0)
    wire.proxy.cut(Direction.TO_BROKER, 4, connection=1, ending=Ending.RST)
    client, broker = wire.pair()

    def there() -> None:
        client.sendall(b"0123456789")
        assert read(broker, 4) == b"0123"

    assert elapsed_ms(there) >= 49.0
    assert read_to_end(broker) == (b"", Ending.RST)


# ---- Kafka's frames ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 4, 5, 11, 12, 13, 21, 22, 99])
@pytest.mark.parametrize("split", [1, 5, 1000])
def test_cut_in_the_nth_request_of_a_kind(wire: Wire, after: int, split: int) -> None:
    client, broker = wire.pair()
    before = request(0, 1, b"first") + request(3, 2) + request(18, 3, b"other")
    mine = request(0, 4, b"0123456789")
    wire.proxy.cut_request(0, after, number=2)
    data = before + mine + request(3, 5)
    for at in range(0, len(data), split):
        try:
            client.sendall(data[at : at + split])
        except ConnectionError:
            break
    assert read_to_end(broker) == (before + mine[:after], Ending.FIN)


@pytest.mark.parametrize("after", [0, 1, 7, 8, 9, 14, 99])
@pytest.mark.parametrize("split", [1, 1000])
def test_cut_in_the_response_to_a_kind_of_request(wire: Wire, after: int, split: int) -> None:
    client, broker = wire.pair()
    wire.proxy.cut_response(0, after, ending=Ending.FIN)
    asked = request(3, 1) + request(0, 2, b"records") + request(0, 3, b"more")
    client.sendall(asked)
    assert read(broker, len(asked)) == asked
    before, mine = response(1, b"metadata"), response(2, b"offset")
    data = before + mine + response(3)
    for at in range(0, len(data), split):
        try:
            broker.sendall(data[at : at + split])
        except ConnectionError:
            break
    assert read_to_end(client) == (before + mine[:after], Ending.FIN)


def test_request_cut_happens_once_and_on_whatever_connection(wire: Wire) -> None:
    wire.proxy.cut_request(0, 0)
    first, second = wire.pair(), wire.pair()
    second[0].sendall(request(0, 1))
    assert read_to_end(second[1]) == (b"", Ending.FIN)
    first[0].sendall(request(0, 1))
    assert read(first[1], 12) == request(0, 1)


@pytest.mark.parametrize("direction", list(Direction))
def test_cut_of_a_frame_is_told_from_a_client_that_went_with_an_answer_on_its_way(
    wire: Wire, direction: Direction
) -> None:
    cut = wire.proxy.cut_request if direction is Direction.TO_BROKER else wire.proxy.cut_response
    cut(0, 0)
    gone, broker = wire.pair()
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gone.close()
    assert read_to_end(broker) == (b"", Ending.RST)
    assert wire.proxy.wait_for(lambda counters: counters.cuts == 1, BUDGET_MS)
    assert wire.proxy.counters.cut_frames == 0
    client, broker = wire.pair()
    client.sendall(request(0, 1))
    if direction is Direction.TO_CLIENT:
        read(broker, 12)
        broker.sendall(response(1))
    assert read_to_end(client) == (b"", Ending.FIN)
    assert wire.proxy.wait_for(lambda counters: counters.cuts == 2, BUDGET_MS)
    assert wire.proxy.counters.cut_frames == 1


def test_cut_of_a_frame_that_was_lifted_is_none(wire: Wire) -> None:
    wire.proxy.cut_response(0, 0)
    client, broker = wire.pair()
    client.sendall(request(0, 1))
    read(broker, 12)
    wire.proxy.lift()
    broker.sendall(response(1))
    assert read(client, 8) == response(1)
    wire.proxy.reset_connections()
    assert wire.proxy.wait_for(lambda counters: counters.cuts == 1, BUDGET_MS)
    assert wire.proxy.counters.cut_frames == 0


def test_requests_that_passed_are_known_by_kind_and_size(wire: Wire) -> None:
    client, broker = wire.pair()
    client.sendall(request(3, 7) + request(0, 8, b"12345"))
    read(broker, 29)
    broker.sendall(response(7, b"abc"))
    read(client, 11)
    assert wire.proxy.requests == [RequestSeen(1, 3, 3, 7, 12, 11), RequestSeen(1, 0, 3, 8, 17, 0)]


@pytest.mark.parametrize(
    "stream",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello of TLS",
        b"\xff" * 40,
        b"\0\0\0\x03abcdefghij",
        b"\0",
    ],
)
def test_stream_that_is_not_kafkas_passes_unchanged(wire: Wire, stream: bytes) -> None:
    client, broker = wire.pair()
    wire.proxy.cut_request(0, 0)
    for byte in stream:
        client.sendall(bytes([byte]))
    client.shutdown(socket.SHUT_WR)
    assert read_to_end(broker) == (stream, Ending.FIN)
    assert wire.proxy.requests == []


def test_proxy_without_frames_says_so() -> None:
    with FaultProxy(frames=False) as proxy, pytest.raises(IllegalStateError, match="frames=True"):
        proxy.cut_request(0, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda proxy: proxy.set_delay(-1.0),
        lambda proxy: proxy.set_delay(1.0, -1.0),
        lambda proxy: proxy.set_rate(0.0),
        lambda proxy: proxy.cut(Direction.TO_BROKER, -1),
        lambda proxy: proxy.cut(Direction.TO_BROKER, 1, connection=0),
        lambda proxy: proxy.cut_request(0, -1),
        lambda proxy: proxy.cut_response(0, 1, number=0),
    ],
)
def test_number_that_makes_no_sense_is_refused(wire: Wire, call: Callable[[FaultProxy], None]) -> None:
    with pytest.raises(ValueError, match=r"must be|negative|the next"):
        call(wire.proxy)
    client, broker = wire.pair()
    client.sendall(b"unhurt")
    assert read(broker, 6) == b"unhurt"
