"""Ctrl-C and errors in Python code inside a poll: the remaining channels are still served."""

from __future__ import annotations

import math
import os
import socket
import ssl
from typing import Any

import pytest
from eventually import eventually
from unit.network.test_authentication_errors import Scripted, builder_of, frame
from unit.network.test_tls import Certificates, Ends

from kafkacore.network import ConnectionPhase, MemoryPool, NetworkSend, Selector
from kafkacore.testing.clock import VirtualClock

#: Maximum bytes that a channel reads per poll.
SHARE = 1024 * 1024
GOOD = ("one", "two", "three")


class InterruptingClock(VirtualClock):
    """A clock that raises KeyboardInterrupt at one of its readings."""

    def __init__(self) -> None:
        super().__init__()
        self.looks_left = math.inf

    def monotonic_ms(self) -> float:
        self.looks_left -= 1
        if self.looks_left == 0:
            raise KeyboardInterrupt
        return super().monotonic_ms()


class Many:
    """Several plain channels, and one channel that must reauthenticate before its next frame."""

    def __init__(self) -> None:
        self.clock = InterruptingClock()
        self.selector = Selector(self.clock)
        self.selector.on_authenticated = lambda *arguments: None
        self.again = Scripted()
        self.peers: dict[str, socket.socket] = {}
        for name in ("one", "again", "two", "three"):
            ours, self.peers[name] = socket.socketpair()
            self.selector.register(name, ours, builder_of(self.again) if name == "again" else None)
        self.received: list[tuple[str, bytes]] = []
        self.ended: list[str] = []
        self.interrupts = 0
        self.peers["again"].sendall(frame(b"me"))
        while not self.selector.is_channel_ready("again"):
            self.poll()
        self.again.reauthenticate_at_ms = 0
        self.peers["again"].sendall(frame(b"still me"))

    def poll(self) -> None:
        try:
            self.selector.poll(1)
        except KeyboardInterrupt:
            self.interrupts += 1
            if self.selector.is_interrupted:
                return
        self.received += [(one.source_id, bytes(one.payload)) for one in self.selector.completed_receives]
        self.ended += self.selector.disconnected

    def close(self) -> None:
        self.selector.close_all()
        for peer in self.peers.values():
            peer.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def test_ctrl_c_at_any_look_at_the_clock_loses_no_frame_of_any_channel() -> None:
    looks = 0
    while True:
        looks += 1
        many = Many()
        for name, peer in many.peers.items():
            many.selector.send(NetworkSend(name, [b"to ", name.encode()]))
            if name != "again":
                peer.sendall(frame(b"from " + name.encode()))
        many.clock.looks_left = looks
        for _ in range(10):
            many.poll()
        assert sorted(many.received) == sorted((name, b"from " + name.encode()) for name in GOOD)
        for name, peer in many.peers.items():
            peer.setblocking(False)
            greeting = frame(b"again") if name == "again" else b""
            assert peer.recv(1000) == greeting + frame(b"to " + name.encode()), (looks, name)
        assert not many.ended
        many.close()
        if not many.interrupts:
            break
    assert looks > 10


def test_ctrl_c_in_the_goodbye_of_a_channel_does_not_hide_its_end(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = Ends(certificates.server(), certificates.client())
    ends.until(lambda: len(ends.ready) == 2)
    channel = ends.server.channel("server")
    ends.client.close("client")
    monkeypatch.setattr(ssl.SSLObject, "unwrap", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        ends.until(lambda: ends.ended)
    assert channel.sock.fileno() == -1
    ends.until(lambda: ends.ended)
    assert ends.ended["server"].phase is ConnectionPhase.READY
    ends.close()


def test_ctrl_c_in_the_goodbye_of_a_channel_keeps_no_other_open(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = Ends(certificates.server(), certificates.client())
    ends.until(lambda: len(ends.ready) == 2)
    ours, theirs = socket.socketpair()
    ends.server.register("behind it", ours)
    channels = [ends.server.channel(name) for name in ("server", "behind it")]
    monkeypatch.setattr(ssl.SSLObject, "unwrap", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        ends.server.close_all()
    assert [channel.sock.fileno() for channel in channels] == [-1, -1]
    monkeypatch.undo()
    ends.close()
    theirs.close()


def _interrupted(engine: ssl.SSLObject) -> None:
    raise KeyboardInterrupt


def test_an_authenticator_that_cannot_be_closed_ends_its_channel_and_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Bad(Scripted):
        def close(self) -> None:
            raise RuntimeError("a bug")

    selector = Selector(VirtualClock())
    ends = {name: socket.socketpair() for name in ("bad", "good")}
    builder = builder_of(Bad(), Scripted())
    for name, (ours, theirs) in ends.items():
        selector.register(name, ours, builder)
        theirs.sendall(frame(b"me"))
    ends["bad"][1].close()
    ended: dict[str, Any] = {}
    for _ in range(5):
        selector.poll(1)
        ended |= selector.disconnected
    assert list(ended) == ["bad"]
    assert ends["bad"][0].fileno() == -1
    assert "failed to close the authenticator of bad" in caplog.text
    assert selector.is_channel_ready("good")
    selector.close_all()
    ends["good"][1].close()


def test_a_connection_that_could_not_be_registered_is_not_ended_later() -> None:
    """The kernel refuses a closed descriptor, as epoll refuses any descriptor at the limit of watches."""

    class Refused:
        def __init__(self, fd: int) -> None:
            self.fileno = lambda: fd

        def setblocking(self, flag: bool) -> None: ...

        def close(self) -> None: ...

    clock = VirtualClock()
    selector = Selector(clock, setup_timeout_ms=400)
    fd = os.open(os.devnull, os.O_RDONLY)
    os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        selector.register("refused", Refused(fd), builder_of(Scripted()))
    clock.advance(500)
    for _ in range(2):
        selector.poll(0)
        assert not selector.disconnected
    selector.close_all()


def test_who_waits_for_memory_amid_a_second_login_and_goes_leaves_nobody_waiting() -> None:
    """A closed channel must leave the list of waiters, or the slow channel is closed to free memory for it.

    The channel used to be listed twice, and once after it was closed.
    """
    clock, pool = VirtualClock(), MemoryPool(300_000)
    selector = Selector(clock, max_receive_size=250_000, memory_pool=pool)
    pairs = {name: socket.socketpair() for name in ("slow", "again")}
    again = Scripted()
    selector.register("slow", pairs["slow"][0])
    selector.register("again", pairs["again"][0], builder_of(again))
    pairs["slow"][1].sendall(frame(bytes(200_000))[:10_000])
    pairs["again"][1].sendall(frame(b"me"))
    for _ in range(5):
        selector.poll(1)
    pairs["again"][1].sendall(frame(b"once more") + frame(bytes(150_000)))
    while not selector.completed_receives:
        selector.poll(1)
    again.begin_reauthentication = lambda payload: setattr(again, "is_complete", False)  # type: ignore[method-assign]
    selector.reauthenticate("again", selector.completed_receives[0].payload)
    selector.close("again")
    for _ in range(3):
        selector.poll(0)
        clock.advance(6_000)
    selector.poll(0)
    assert selector.channel("slow") is not None
    selector.close_all()
    for _, theirs in pairs.values():
        theirs.close()


def test_a_channel_that_is_muted_and_unmuted_again_and_again_has_no_more_than_its_share_of_a_poll(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer sends as fast as the channel reads."""
    read, clients = ssl.SSLObject.read, []

    def be_sent_more_and_read(engine: ssl.SSLObject, *arguments: Any) -> Any:
        if engine.server_side:
            for client in 3 * clients:
                client.poll(0)
                if not client.channel("client").has_send:
                    client.send(NetworkSend("client", [bytes(10_000)]))
        return read(engine, *arguments)

    monkeypatch.setattr(ssl.SSLObject, "read", be_sent_more_and_read)
    ends = Ends(certificates.server(), certificates.client())
    ends.until(lambda: len(ends.ready) == 2)
    clients.append(ends.client)
    ends.client.send(NetworkSend("client", [bytes(10_000)]))

    def poll() -> int:
        for _ in range(10):
            ends.server.mute("server")
            ends.server.unmute("server")
        ends.server.poll(0)
        size = sum(len(one.payload) for one in ends.server.completed_receives)
        # One share for the socket, and one for the bytes buffered in the TLS engine.
        assert size < 3 * SHARE
        ends.client.poll(0)
        return size

    sizes = [poll() for _ in range(10)]
    # A poll reads less than its share if the kernel delivers late.
    eventually(lambda: max(sizes) > SHARE, step=lambda: sizes.append(poll()))
    ends.close()
