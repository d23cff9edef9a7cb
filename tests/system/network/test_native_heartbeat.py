"""Heartbeats that a thread without the GIL writes between the frames of a real connection."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import termios
import threading
from collections.abc import Callable, Iterator

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually
from model.held_gil import beats_while_gil_is_held

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import IllegalStateError
from kafkacore.network import FrameReader, HeartbeatEvent, NativeHeartbeat, NetworkSend, Selector

MIB = 1024 * 1024
FIRST_ID, ID_COUNT = 1_000_000, 1000
NAME = "coordinator"
#: A heartbeat request: API key 12, version 4, a placeholder for the correlation id, and marker bytes.
TAIL = b"\xff\xffbeat"
FRAME = struct.pack(">ihhi", 8 + len(TAIL), 12, 4, -1) + TAIL
#: Offset of the error code in a version 4 response, after the correlation id, tags and throttle time.
ERROR_AT = 9
LONG_MS = 120_000.0


class Connection:
    """A selector with one connection, the peer's end of it, and a heartbeat."""

    def __init__(self, send_buffer_bytes: int = -1, *, has_manual_clock: bool = False) -> None:
        self.selector = Selector(SYSTEM_CLOCK)
        self.heartbeat = NativeHeartbeat(FIRST_ID, ID_COUNT, has_manual_clock=has_manual_clock)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.peer = self.connect(NAME, send_buffer_bytes)
        self.reader = FrameReader("peer")
        self.received: list[bytes] = []
        assert self.selector.attach_heartbeat(NAME, self.heartbeat)

    def connect(self, name: str, send_buffer_bytes: int = -1) -> socket.socket:
        self.selector.connect(name, self._listener.getsockname(), send_buffer_bytes=send_buffer_bytes)
        peer, _ = self._listener.accept()
        peer.settimeout(BUDGET_S)
        eventually(lambda: self.selector.poll(10) or name in self.selector.connected)
        return peer

    def begin(self, interval_ms: float = 1.0, session_timeout_ms: float = LONG_MS) -> bool:
        return self.heartbeat.begin(FRAME, interval_ms, session_timeout_ms, error_at=ERROR_AT, has_tags=True)

    def read_some(self) -> list[bytes]:
        """Read once from the peer's socket, and return the frames that are now complete."""
        data = self.peer.recv(MIB)
        assert data, "the connection was closed too early"
        frames = [bytes(each.payload) for each in self.reader.feed(data)]
        self.received += frames
        return frames

    def read_beat(self) -> int:
        """Read at least one heartbeat, and return the correlation id of the last one."""
        while not (frames := self.read_some()):
            pass
        assert all(is_beat(each) for each in frames)
        return correlation_id(frames[-1])

    def answer(self, beat_id: int, error_code: int = 0) -> None:
        self.deliver(answer_to(beat_id, error_code))

    def deliver(self, data: bytes) -> None:
        """Send bytes from the peer, and wait until they have reached the connection's socket."""
        self.peer.sendall(data)
        eventually(lambda: fcntl.ioctl(self.peer, termios.TIOCOUTQ, bytes(4)) == bytes(4))

    def close(self) -> None:
        self.heartbeat.close()
        self.selector.close_all()
        self.peer.close()
        self._listener.close()


def correlation_id(frame: bytes) -> int:
    return int.from_bytes(frame[4:8], "big")


def is_beat(frame: bytes) -> bool:
    return (
        frame[:4] == FRAME[4:8]
        and frame[8:] == TAIL
        and FIRST_ID <= correlation_id(frame) < FIRST_ID + ID_COUNT
    )


def answer_to(beat_id: int, error_code: int = 0) -> bytes:
    body = struct.pack(">ibihb", beat_id, 0, 0, error_code, 0)
    return struct.pack(">i", len(body)) + body


@pytest.fixture
def make() -> Iterator[Callable[..., Connection]]:
    made: list[Connection] = []

    def make_connection(send_buffer_bytes: int = -1, *, has_manual_clock: bool = False) -> Connection:
        made.append(Connection(send_buffer_bytes, has_manual_clock=has_manual_clock))
        return made[-1]

    yield make_connection
    for each in made:
        each.close()


@pytest.fixture
def connection(make: Callable[..., Connection]) -> Connection:
    return make()


@pytest.fixture
def manual(make: Callable[..., Connection]) -> Connection:
    """Return a connection whose heartbeat has a manual clock."""
    return make(has_manual_clock=True)


def events_until(connection: Connection, notice: HeartbeatEvent) -> HeartbeatEvent:
    """Run the heartbeat until it reports ``notice``, and return all events so far."""
    seen = HeartbeatEvent(0)
    while notice not in seen:
        now = connection.heartbeat.run(BUDGET_MS)
        assert now, f"no {notice} in time, only {seen}"
        seen |= now
    return seen


# ---- Heartbeats ------------------------------------------------------------------------------------


def test_beats_are_the_frame_with_ids_in_turn(connection: Connection) -> None:
    assert connection.begin()
    while len(connection.received) < 5:
        connection.read_some()
    assert all(map(is_beat, connection.received))
    assert [correlation_id(each) for each in connection.received[:5]] == list(range(FIRST_ID, FIRST_ID + 5))


def test_ids_begin_again_behind_the_last(make: Callable[..., Connection]) -> None:
    connection = make()
    connection.heartbeat = NativeHeartbeat(7, 3)
    other = connection.connect("other")
    assert connection.selector.attach_heartbeat("other", connection.heartbeat)
    connection.peer, peer = other, connection.peer
    connection.begin()
    while len(connection.received) < 7:
        connection.read_some()
    assert [correlation_id(each) for each in connection.received[:7]] == [7, 8, 9, 7, 8, 9, 7]
    peer.close()


def test_first_beat_comes_after_one_interval_and_none_after_the_end(manual: Connection) -> None:
    manual.begin(interval_ms=30)
    manual.heartbeat.advance(29)
    assert manual.heartbeat.sent_count == 0
    manual.heartbeat.advance(1)
    assert manual.heartbeat.last_sent_ms == 30
    assert manual.read_beat() == FIRST_ID
    manual.heartbeat.end()
    manual.heartbeat.advance(1000)
    assert manual.heartbeat.sent_count == 1
    assert not manual.heartbeat.is_beating
    assert not select.select([manual.peer], [], [], 0)[0]


def test_only_a_manual_clock_can_be_advanced(connection: Connection) -> None:
    with pytest.raises(IllegalStateError, match="manual clock"):
        connection.heartbeat.advance(1)


def test_beats_follow_the_machine_clock(connection: Connection) -> None:
    began_ms = SYSTEM_CLOCK.monotonic_ms()
    connection.begin(interval_ms=30)
    connection.read_beat()
    sent_ms = connection.heartbeat.last_sent_ms
    assert began_ms + 30 <= sent_ms <= SYSTEM_CLOCK.monotonic_ms()


def test_beats_begin_anew_with_another_frame(connection: Connection) -> None:
    connection.begin()
    connection.read_beat()
    connection.heartbeat.end()
    other = struct.pack(">ihhi", 8 + 300, 12, 4, -1) + bytes(300)
    connection.heartbeat.begin(other, 1.0, LONG_MS, error_at=ERROR_AT)
    eventually(lambda: any(len(each) == 308 for each in connection.read_some()))


def test_a_line_without_a_connection_says_so_at_once() -> None:
    heartbeat = NativeHeartbeat(FIRST_ID, ID_COUNT)
    assert not heartbeat.begin(FRAME, 1.0, LONG_MS, error_at=ERROR_AT)
    assert heartbeat.run(0) is HeartbeatEvent.DISCONNECTED
    assert heartbeat.run(0) == HeartbeatEvent(0)
    # The next begin() has the same result.
    assert not heartbeat.begin(FRAME, 1.0, LONG_MS, error_at=ERROR_AT)
    assert heartbeat.run(0) is HeartbeatEvent.DISCONNECTED
    heartbeat.close()


def test_frames_too_short_for_an_id_and_no_interval_are_refused(connection: Connection) -> None:
    for frame, interval_ms, error_at in ((FRAME[:11], 1, 9), (FRAME, 0, 9), (FRAME, 1, 3), (b"", 1, 9)):
        with pytest.raises(ValueError, match=r"at least 12 bytes|above 0"):
            connection.heartbeat.begin(frame, interval_ms, LONG_MS, error_at=error_at)
    with pytest.raises(ValueError, match="above 0"):
        connection.heartbeat.begin(FRAME, 1.0, float("nan"), error_at=ERROR_AT)


def test_a_thread_that_keeps_the_gil_delays_no_beat(connection: Connection) -> None:
    connection.begin(interval_ms=10)
    connection.read_beat()
    before = connection.heartbeat.sent_count
    assert beats_while_gil_is_held(connection.heartbeat, 6) >= 6
    beats = connection.heartbeat.sent_count - before
    while len(connection.received) < before + beats:
        connection.read_some()
    assert all(map(is_beat, connection.received))


# ---- Between frames --------------------------------------------------------------------------------


def test_beats_and_frames_in_turn_are_all_whole_at_the_peer(connection: Connection) -> None:
    fewest_frames, fewest_beats = 100_000, 1000
    payload = bytes(range(100))

    def read_all() -> None:
        while not any(each[:4] == b"last" for each in connection.read_some()):
            pass

    def send_frame(start: bytes, number: int) -> None:
        send = NetworkSend(NAME, [start, payload[: number % 100], number.to_bytes(4, "big")])
        connection.selector.send(send)
        while not send.is_completed:
            connection.selector.poll(0)

    reader = threading.Thread(target=read_all)
    reader.start()
    connection.begin(interval_ms=0.02)
    frames = 0
    # On a busy machine, few heartbeats are sent meanwhile.
    while frames < fewest_frames or connection.heartbeat.sent_count <= fewest_beats:
        send_frame(b"some", frames)
        frames += 1
    send_frame(b"last", frames)
    reader.join(BUDGET_S)
    connection.heartbeat.end()
    assert not reader.is_alive()
    own = [each for each in connection.received if not is_beat(each)]
    assert [int.from_bytes(each[-4:], "big") for each in own] == list(range(frames + 1))
    beats = [each for each in connection.received if is_beat(each)]
    assert len(beats) > fewest_beats
    numbers = [correlation_id(each) - FIRST_ID for each in beats]
    assert numbers == [each % ID_COUNT for each in range(len(beats))]


def test_a_beat_waits_for_the_end_of_a_frame_that_went_out_in_part(make: Callable[..., Connection]) -> None:
    connection = make(send_buffer_bytes=64 * 1024)
    payload = bytes(16 * MIB)
    send = NetworkSend(NAME, [payload])
    connection.selector.send(send)
    connection.selector.poll(0)
    assert 0 < send.remaining < send.size_in_bytes
    connection.begin()
    events_until(connection, HeartbeatEvent.BLOCKED)
    assert connection.heartbeat.sent_count == 0
    reader = threading.Thread(target=lambda: eventually(lambda: any(map(is_beat, connection.read_some()))))
    reader.start()
    eventually(lambda: connection.selector.poll(10) or send.is_completed)
    reader.join()
    assert connection.received[0] == payload
    assert is_beat(connection.received[1])


def test_a_beat_that_went_out_in_part_is_finished_before_the_next_frame(
    make: Callable[..., Connection],
) -> None:
    connection = make(send_buffer_bytes=16 * 1024)
    large = struct.pack(">ihhi", 8 + MIB, 12, 4, -1) + bytes(MIB)
    connection.heartbeat.begin(large, 1.0, LONG_MS, error_at=ERROR_AT)
    eventually(lambda: connection.heartbeat.sent_count)
    send = NetworkSend(NAME, [b"of the connection"])
    connection.selector.send(send)
    connection.selector.poll(0)
    assert send.remaining == send.size_in_bytes
    # Neither end() nor another begin() cuts the heartbeat that is partly written.
    connection.heartbeat.end()
    connection.heartbeat.begin(FRAME, LONG_MS, LONG_MS, error_at=ERROR_AT)
    reader = threading.Thread(
        target=lambda: eventually(lambda: connection.read_some() and len(connection.received) == 2)
    )
    reader.start()
    eventually(lambda: connection.selector.poll(10) or send.is_completed)
    reader.join()
    beat = large[4:8] + FIRST_ID.to_bytes(4, "big") + large[12:]
    assert connection.received == [beat, b"of the connection"]


def test_the_rest_of_a_beat_goes_out_though_nobody_polls(make: Callable[..., Connection]) -> None:
    connection = make(send_buffer_bytes=16 * 1024)
    large = struct.pack(">ihhi", 8 + MIB, 12, 4, -1) + bytes(MIB)
    connection.heartbeat.begin(large, 1.0, LONG_MS, error_at=ERROR_AT)
    eventually(lambda: connection.read_some() and len(connection.received) >= 2)
    assert [len(each) for each in connection.received[:2]] == [8 + MIB] * 2


# ---- Events ----------------------------------------------------------------------------------------


def test_unread_answers_are_seen_and_left_in_the_socket(manual: Connection) -> None:
    manual.begin(interval_ms=10, session_timeout_ms=500)
    for _ in range(100):
        manual.heartbeat.advance(10)
        manual.answer(manual.read_beat())
    assert manual.heartbeat.run(0) == HeartbeatEvent(0)
    manual.heartbeat.end()
    got: list[bytes] = []
    eventually(
        lambda: (
            manual.selector.poll(10)
            or got.extend(bytes(each.payload) for each in manual.selector.completed_receives)
            or len(got) >= 100
        )
    )
    assert got[0] == answer_to(FIRST_ID)[4:]


def test_an_answer_with_an_error_is_told_while_beats_go_on(connection: Connection) -> None:
    connection.begin(interval_ms=5)
    connection.answer(connection.read_beat())
    connection.answer(connection.read_beat(), error_code=27)
    assert events_until(connection, HeartbeatEvent.ERROR_ANSWER) is HeartbeatEvent.ERROR_ANSWER
    assert connection.heartbeat.error_code == 27
    connection.answer(connection.read_beat(), error_code=27)
    connection.read_beat()
    connection.read_beat()
    # The error response has now been read, so the next error causes an event again.
    eventually(lambda: connection.selector.poll(10) or connection.selector.completed_receives)
    assert connection.heartbeat.answered(FIRST_ID + 1)
    connection.answer(connection.read_beat(), error_code=25)
    assert events_until(connection, HeartbeatEvent.ERROR_ANSWER) is HeartbeatEvent.ERROR_ANSWER
    assert connection.heartbeat.error_code == 25


def test_an_error_is_reported_long_before_the_next_beat(manual: Connection) -> None:
    manual.begin(interval_ms=6000)
    manual.heartbeat.advance(6000)
    manual.answer(manual.read_beat(), error_code=27)
    manual.heartbeat.advance(50)
    assert manual.heartbeat.run(0) is HeartbeatEvent.ERROR_ANSWER
    assert manual.heartbeat.sent_count == 1


def test_silence_for_a_session_is_reported_once(manual: Connection) -> None:
    manual.begin(interval_ms=10, session_timeout_ms=100)
    manual.heartbeat.advance(10)
    manual.answer(manual.read_beat())
    manual.heartbeat.advance(50)
    assert manual.heartbeat.last_answer_ms == 60
    manual.heartbeat.advance(99)
    assert manual.heartbeat.run(0) == HeartbeatEvent(0)
    manual.heartbeat.advance(1)
    assert manual.heartbeat.run(0) is HeartbeatEvent.SILENT
    assert manual.heartbeat.is_silent
    manual.heartbeat.advance(150)
    assert manual.heartbeat.run(0) == HeartbeatEvent(0)
    manual.answer(manual.read_beat())
    manual.heartbeat.advance(10)
    assert not manual.heartbeat.is_silent
    # The coordinator can become silent a second time.
    manual.heartbeat.advance(100)
    assert manual.heartbeat.run(0) is HeartbeatEvent.SILENT


def test_answers_that_are_read_keep_the_session(manual: Connection) -> None:
    manual.begin(interval_ms=10, session_timeout_ms=500)
    for _ in range(100):
        manual.heartbeat.advance(10)
        manual.answer(manual.read_beat())
        manual.selector.poll(BUDGET_MS)
        (answer,) = manual.selector.completed_receives
        assert manual.heartbeat.answered(int.from_bytes(bytes(answer.payload)[:4], "big"))
    assert manual.heartbeat.run(0) == HeartbeatEvent(0)


def test_half_a_frame_that_was_read_is_no_silence(manual: Connection) -> None:
    manual.deliver(b"\0\0\x10\0half")
    manual.selector.poll(0)
    manual.begin(interval_ms=10, session_timeout_ms=2_000)
    manual.deliver(b"and more of it")
    manual.heartbeat.advance(10)
    assert manual.heartbeat.run(0) is HeartbeatEvent.UNREAD
    manual.heartbeat.advance(2_500)
    assert manual.heartbeat.run(0) == HeartbeatEvent(0)


def test_much_that_lies_unread_is_told_and_again_after_a_read(connection: Connection) -> None:
    connection.begin(interval_ms=5)
    beat = connection.read_beat()
    for _ in range(2):
        connection.peer.sendall(answer_to(beat) * 200)
        assert events_until(connection, HeartbeatEvent.UNREAD) is HeartbeatEvent.UNREAD
        eventually(lambda: connection.selector.poll(10) or connection.selector.completed_receives)


@pytest.mark.parametrize(
    "hostile",
    [b"\xff\xff\xff\xffxxxx", b"\0\0\0\0" * 50, b"\x7f\xff\xff\xff" + bytes(9000), b"\0\0\0\x02ab", b"\0\0"],
)
def test_bytes_that_are_no_answer_keep_no_beat_from_going_out(connection: Connection, hostile: bytes) -> None:
    connection.begin(interval_ms=2)
    connection.peer.sendall(hostile)
    connection.read_beat()
    # The ids start again after the last one, so count the heartbeats.
    before = len(connection.received)
    eventually(lambda: connection.read_beat() and len(connection.received) >= before + 10)
    assert HeartbeatEvent.DISCONNECTED not in connection.heartbeat.run(0)


@pytest.mark.parametrize("body", [answer_to(FIRST_ID)[4:10], answer_to(FIRST_ID)[4:8] + b"\1" * 10])
def test_an_answer_of_another_shape_is_left_to_who_can_read_it(connection: Connection, body: bytes) -> None:
    connection.begin(interval_ms=5)
    connection.read_beat()
    connection.peer.sendall(len(body).to_bytes(4, "big") + body)
    assert events_until(connection, HeartbeatEvent.UNREAD) is HeartbeatEvent.UNREAD


def test_a_peer_that_goes_is_told_before_the_next_beat(connection: Connection) -> None:
    connection.begin(interval_ms=LONG_MS)
    connection.peer.close()
    assert events_until(connection, HeartbeatEvent.DISCONNECTED) is HeartbeatEvent.DISCONNECTED
    assert not connection.heartbeat.is_beating
    assert connection.heartbeat.run(50) == HeartbeatEvent(0)


def test_a_connection_that_is_closed_here_is_told(connection: Connection) -> None:
    connection.begin(interval_ms=LONG_MS)
    connection.selector.close(NAME)
    assert connection.heartbeat.run(0) is HeartbeatEvent.DISCONNECTED
    assert not connection.heartbeat.is_attached


def test_no_beat_goes_out_when_the_application_has_not_polled_in_time(manual: Connection) -> None:
    manual.heartbeat.polled(1_500)
    manual.begin(interval_ms=500)
    for _ in range(3):
        manual.heartbeat.advance(499)
        manual.heartbeat.advance(1)
    assert manual.heartbeat.run(0) is HeartbeatEvent.POLL_OVERDUE
    assert manual.heartbeat.sent_count == 2
    manual.heartbeat.advance(500)
    assert manual.heartbeat.run(0) == HeartbeatEvent(0)
    assert manual.heartbeat.sent_count == 2
    manual.heartbeat.polled(float("inf"))
    manual.heartbeat.advance(500)
    assert manual.heartbeat.sent_count == 3


def test_an_answer_to_a_beat_before_the_beginning_is_none_of_ours(manual: Connection) -> None:
    manual.begin(interval_ms=5)
    manual.heartbeat.advance(5)
    old = manual.read_beat()
    manual.heartbeat.end()
    assert not manual.heartbeat.answered(old)
    manual.begin(interval_ms=5)
    manual.answer(old, error_code=25)
    for _ in range(20):
        manual.heartbeat.advance(5)
    assert manual.heartbeat.sent_count == 21
    assert not manual.heartbeat.answered(old)
    assert not manual.heartbeat.answered(FIRST_ID + manual.heartbeat.sent_count + 100)
    assert not manual.heartbeat.answered(3)
    assert manual.heartbeat.answered(FIRST_ID + manual.heartbeat.sent_count - 1)
    assert manual.heartbeat.run(0) == HeartbeatEvent(0)


def test_a_wakeup_ends_the_wait_that_runs_and_the_next(connection: Connection) -> None:
    connection.heartbeat.wakeup()
    assert connection.heartbeat.run() is HeartbeatEvent.WOKEN
    waker = threading.Thread(target=connection.heartbeat.wakeup)
    waker.start()
    assert connection.heartbeat.run() is HeartbeatEvent.WOKEN
    waker.join()


# ---- Close and fork --------------------------------------------------------------------------------


def test_a_closed_line_ends_every_wait_and_begins_no_more(connection: Connection) -> None:
    waited: list[HeartbeatEvent] = []
    waiter = threading.Thread(target=lambda: waited.append(connection.heartbeat.run()))
    waiter.start()
    connection.begin()
    connection.heartbeat.close()
    connection.heartbeat.close()
    waiter.join(BUDGET_S)
    assert HeartbeatEvent.CLOSED in waited[0]
    assert connection.heartbeat.run() is HeartbeatEvent.CLOSED
    with pytest.raises(IllegalStateError):
        connection.begin()


def test_a_line_that_is_dropped_while_it_beats_ends_its_thread() -> None:
    threads = len(os.listdir("/proc/self/task"))
    for _ in range(20):
        connection = Connection()
        connection.begin()
        connection.heartbeat = NativeHeartbeat(FIRST_ID, ID_COUNT)
        connection.close()
    eventually(lambda: len(os.listdir("/proc/self/task")) <= threads)


def test_connections_that_close_under_beats_mix_no_bytes_into_what_is_opened_then(
    connection: Connection,
) -> None:
    for number in range(300):
        connection.heartbeat.begin(FRAME, 1e-6, LONG_MS, error_at=ERROR_AT)
        name = f"again {number}"
        connection.selector.close(NAME if number == 0 else f"again {number - 1}")
        # These sockets probably reuse the file descriptor of the closed connection.
        one, other = socket.socketpair()
        peer = connection.connect(name)
        connection.peer.close()
        connection.peer = peer
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.recv(1)
        one.close()
        other.close()
        assert connection.selector.attach_heartbeat(name, connection.heartbeat)
    # The heartbeat's thread may not have run since the last begin().
    connection.heartbeat.begin(FRAME, 1e-6, LONG_MS, error_at=ERROR_AT)
    eventually(lambda: connection.heartbeat.sent_count > 0)


def test_beats_move_to_another_connection(connection: Connection) -> None:
    connection.begin()
    other = connection.connect("other")
    assert connection.selector.attach_heartbeat("other", connection.heartbeat)
    assert connection.heartbeat.run(0) is HeartbeatEvent.DISCONNECTED
    connection.begin()
    assert connection.selector.channel_ids() == [NAME, "other"]
    assert other.recv(MIB)
    other.close()


def test_a_connection_that_beats_leave_in_the_middle_of_one_is_closed(
    make: Callable[..., Connection],
) -> None:
    connection = make(send_buffer_bytes=16 * 1024)
    large = struct.pack(">ihhi", 8 + MIB, 12, 4, -1) + bytes(MIB)
    connection.heartbeat.begin(large, 1.0, LONG_MS, error_at=ERROR_AT)
    eventually(lambda: connection.heartbeat.sent_count)
    other = connection.connect("other")
    assert connection.selector.attach_heartbeat("other", connection.heartbeat)
    connection.selector.poll(0)
    assert "heartbeat" in connection.selector.disconnected[NAME].reason
    other.close()


def test_a_connection_takes_one_line_and_the_same_one_twice(connection: Connection) -> None:
    assert connection.selector.attach_heartbeat(NAME, connection.heartbeat)
    other = NativeHeartbeat(FIRST_ID, ID_COUNT)
    with pytest.raises(IllegalStateError):
        connection.selector.attach_heartbeat(NAME, other)
    assert not connection.selector.attach_heartbeat("unknown", other)
    other.close()


def test_a_forked_child_writes_nothing_and_can_end(connection: Connection) -> None:
    connection.begin(interval_ms=5)
    connection.read_beat()
    child = os.fork()
    if child == 0:
        os._exit(_life_of_a_child(connection))
    assert os.waitpid(child, 0)[1] == 0
    connection.read_beat()
    before = len(connection.received)
    eventually(lambda: connection.read_beat() and len(connection.received) > before + 5)
    # The ids start again after the last one if the child takes long.
    numbers = [correlation_id(each) - FIRST_ID for each in connection.received]
    assert numbers == [each % ID_COUNT for each in range(len(numbers))]


def _life_of_a_child(connection: Connection) -> int:
    """Use the heartbeat in a forked child, and return the exit status: 0 for success."""
    heartbeat = connection.heartbeat
    heartbeat.end()
    heartbeat.wakeup()
    if heartbeat.run() is not HeartbeatEvent.CLOSED or heartbeat.answered(FIRST_ID) or heartbeat.is_beating:
        return 1
    try:
        connection.begin()
    except IllegalStateError:
        connection.close()
        return 0
    return 2
