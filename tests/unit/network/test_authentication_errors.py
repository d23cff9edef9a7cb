"""Authenticators and reauthentications that raise: only the affected connection fails."""

from __future__ import annotations

import math
import socket
import struct
import threading

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually

from kafkacore.errors import IllegalSaslStateError, KafkaProtocolError
from kafkacore.network import ChannelBuilder, ConnectionPhase, MemoryPool, NetworkSend, Selector
from kafkacore.security.authenticator import Authenticator
from kafkacore.testing.clock import VirtualClock


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Scripted(Authenticator):
    """An authenticator that completes after ``rounds`` frames and can raise an error at a given step."""

    def __init__(self, raises_at: str = "", error: BaseException | None = None, rounds: int = 1) -> None:
        self.is_complete = False
        self.raises_at, self.error, self.rounds = raises_at, error, rounds

    def _at(self, step: str) -> None:
        if step == self.raises_at and self.error is not None:
            raise self.error

    def begin(self) -> list[bytes] | None:
        self._at("begin")
        return None

    def expects(self, payload: memoryview) -> bool:
        self._at("expects")
        return not self.is_complete

    def receive(self, payload: memoryview) -> list[bytes] | None:
        self._at("receive")
        self.rounds -= 1
        self.is_complete = self.rounds == 0
        return None

    def begin_reauthentication(self, payload: memoryview | None) -> list[bytes] | None:
        self._at("begin_reauthentication")
        self.is_complete, self.rounds, self.reauthenticate_at_ms = False, 1, math.inf
        return [b"again"]


def builder_of(*authenticators: Authenticator) -> ChannelBuilder:
    waiting = list(authenticators)
    return ChannelBuilder(is_server=True, authenticator=lambda host: waiting.pop(0))


ERRORS = (
    RuntimeError("a bug"),
    KafkaProtocolError("no sense"),
    MemoryError(),
    IllegalSaslStateError("not now"),
)


@pytest.mark.parametrize("step", ["begin", "expects", "receive", "begin_reauthentication"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_one_authenticator_raises_ends_its_channel_and_no_other(step: str, error: Exception) -> None:
    selector = Selector(VirtualClock())
    bad, good = Scripted(step, error), Scripted()
    ends = {name: socket.socketpair() for name in ("bad", "good")}
    builder = builder_of(bad, good)
    for name, (ours, theirs) in ends.items():
        selector.register(name, ours, builder)
        theirs.sendall(frame(b"me"))
    ended: dict[str, object] = {}
    for _ in range(5):
        selector.poll(1)
        ended |= selector.disconnected
    if step == "begin_reauthentication":
        bad.reauthenticate_at_ms = 0
        selector.send(NetworkSend("bad", [b"to the bad one"]))
    selector.send(NetworkSend("good", [b"to the good one"]))
    for _ in range(5):
        selector.poll(1)
        ended |= selector.disconnected
    assert list(ended) == ["bad"]
    assert str(error) in ended["bad"].reason
    assert ends["good"][1].recv(100) == frame(b"to the good one")
    assert selector.channel("bad") is None
    selector.close_all()
    for _, theirs in ends.values():
        theirs.close()


def poll_and_collect(selector: Selector, received: list[bytes], count: int = 5) -> None:
    for _ in range(count):
        selector.poll(1)
        received += [bytes(receive.payload) for receive in selector.completed_receives]


@pytest.mark.parametrize("step", ["begin", "receive", "begin_reauthentication"])
def test_ctrl_c_in_an_authenticator_is_raised_when_the_others_are_served(step: str) -> None:
    selector = Selector(VirtualClock())
    bad = Scripted(step, KeyboardInterrupt())
    ends = {name: socket.socketpair() for name in ("bad", "plain")}
    selector.register("plain", ends["plain"][0])
    selector.register("bad", ends["bad"][0], builder_of(bad))
    ends["bad"][1].sendall(frame(b"me"))
    if step == "begin_reauthentication":
        selector.poll(1)
        selector.poll(0)
        bad.reauthenticate_at_ms = 0
        selector.send(NetworkSend("bad", [b"to the bad one"]))
    selector.send(NetworkSend("plain", [b"to the plain one"]))
    ends["plain"][1].sendall(frame(b"an answer"))
    received = []
    with pytest.raises(KeyboardInterrupt):
        poll_and_collect(selector, received)
    assert selector.channel("bad") is None
    assert ends["plain"][1].recv(100) == frame(b"to the plain one")
    # The next poll reports the results of the interrupted one.
    poll_and_collect(selector, received, 1)
    assert received == [b"an answer"]
    assert selector.disconnected["bad"].phase is ConnectionPhase.LOCAL_CLOSE
    selector.close_all()
    for _, theirs in ends.values():
        theirs.close()


def test_a_large_frame_behind_the_last_word_of_a_login_is_read_when_there_is_memory() -> None:
    pool = MemoryPool(300_000)
    selector = Selector(VirtualClock(), max_receive_size=250_000, memory_pool=pool)
    (first, one), (second, other) = socket.socketpair(), socket.socketpair()
    selector.register("first", first)
    one.sendall(frame(bytes(200_000)))
    held = []
    while not held:
        selector.poll(1)
        held += selector.completed_receives
    selector.register("second", second, builder_of(Scripted()))
    other.sendall(frame(b"me") + frame(bytes(150_000)))
    for _ in range(5):
        selector.poll(1)
    assert selector.is_channel_ready("second")
    assert not selector.completed_receives
    held.clear()
    for _ in range(20):
        selector.poll(1)
        held += selector.completed_receives
    assert [len(receive.payload) for receive in held] == [150_000]
    held.clear()
    selector.close_all()
    one.close()
    other.close()


@pytest.mark.parametrize("said", [b"", frame(b"me")[:3]], ids=["nothing", "a part"])
def test_first_login_must_be_over_in_time_from_accept(said: bytes) -> None:
    clock = VirtualClock()
    selector = Selector(clock, setup_timeout_ms=400)
    ours, theirs = socket.socketpair()
    selector.register("peer", ours, builder_of(Scripted()))
    theirs.sendall(said)
    selector.poll(0)
    clock.advance(399)
    selector.poll(0)
    assert not selector.disconnected
    clock.advance(1)
    selector.poll(0)
    assert selector.disconnected["peer"].reason == "the connection was not authenticated within 400 ms"
    selector.close_all()
    theirs.close()


def test_the_time_for_a_second_login_begins_with_it() -> None:
    clock = VirtualClock()
    selector = Selector(clock, setup_timeout_ms=400)
    ours, theirs = socket.socketpair()
    selector.register("peer", ours, builder_of(Scripted()))
    theirs.sendall(frame(b"me"))
    while not selector.connected:
        selector.poll(1)
    clock.advance(300)
    selector.reauthenticate("peer", memoryview(b"again"))
    for _ in range(4):
        clock.advance(99)
        selector.poll(0)
        assert not selector.disconnected
    clock.advance(5)
    selector.poll(0)
    assert "was not authenticated within 400 ms" in selector.disconnected["peer"].reason
    selector.close_all()
    theirs.close()


def reauthenticating(selector: Selector) -> socket.socket:
    """Return the peer of an authenticated channel whose next frame needs a reauthentication."""
    authenticator = Scripted()
    ours, theirs = socket.socketpair()
    theirs.settimeout(BUDGET_S)
    selector.register("again", ours, builder_of(authenticator))
    theirs.sendall(frame(b"me"))
    eventually(lambda: selector.is_channel_ready("again"), step=lambda: selector.poll(1))
    authenticator.reauthenticate_at_ms = 0
    return theirs


@pytest.mark.parametrize("is_early", [True, False], ids=["at once", "during the poll"])
def test_one_poll_reauthenticates_and_writes_the_frame_that_waited(is_early: bool) -> None:
    selector = Selector(VirtualClock())
    peer = reauthenticating(selector)

    def answer() -> None:
        assert peer.recv(100) == frame(b"again")
        peer.sendall(frame(b"ok"))

    thread = threading.Thread(target=answer)
    if is_early:
        peer.sendall(frame(b"ok"))
    else:
        thread.start()
    send = NetworkSend("again", [b"request"])
    selector.send(send)
    # Without a frame to report, this would last until the time-out of the test.
    selector.poll(1000 * BUDGET_MS)
    assert selector.completed_sends == [send]
    if not is_early:
        thread.join(BUDGET_S)
    selector.close_all()
    peer.close()


def test_a_flush_that_begins_a_reauthentication_keeps_what_it_has_received() -> None:
    selector = Selector(VirtualClock())
    peer = reauthenticating(selector)
    peer.sendall(frame(b"ok") + frame(b"response"))
    selector.send(NetworkSend("again", [b"request"]))
    selector.flush()
    selector.poll(0)
    assert [bytes(receive.payload) for receive in selector.completed_receives] == [b"response"]
    selector.close_all()
    peer.close()


def test_a_flush_to_a_closed_connection_keeps_what_the_peer_sent_before() -> None:
    selector = Selector(VirtualClock())
    ours, theirs = socket.socketpair()
    selector.register("peer", ours)
    theirs.sendall(frame(b"last response"))
    theirs.close()
    selector.send(NetworkSend("peer", [b"request"]))
    selector.flush()
    selector.poll(0)
    assert [bytes(receive.payload) for receive in selector.completed_receives] == [b"last response"]
    assert "peer" in selector.disconnected
    selector.close_all()
