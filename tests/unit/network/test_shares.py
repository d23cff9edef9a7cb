"""Limits of one channel's share of a poll, so that a busy peer does not delay the others."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from unit.network.test_tls import Certificates
from unit.network.test_tls_hostile import Meeting, frame

from kafkacore.network import Selector
from kafkacore.network._poller import BACKENDS
from kafkacore.testing import VirtualClock

#: Maximum frames per poll: those that fit the shared read buffer, and one that began before.
MOST = 64 * 1024 // len(frame(b"a small request")) + 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_who_sends_tiny_frames_is_left_after_some_thousands_for_the_others(backend: str) -> None:
    selector = Selector(VirtualClock(), backend=backend)
    ours, theirs = socket.socketpair()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    selector.register("peer", ours)
    theirs.setblocking(False)
    sent = theirs.send(8_000 * frame(b"a small request")) // len(frame(b"a small request"))
    assert sent > 2 * MOST
    counts = []
    while sum(counts) < sent:
        selector.poll(1_000)
        counts.append(len(selector.completed_receives))
    assert max(counts) <= MOST
    selector.close_all()
    theirs.close()


def test_who_sends_tiny_frames_by_tls_is_left_as_soon_and_served_without_the_socket(tmp_path: Path) -> None:
    met = Meeting(Certificates(tmp_path), tmp_path)
    met.client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    for number in range(12):
        met.client.sendall(met.keys.record(700 * frame(b"request %7d" % number)))
    counts = []
    while sum(counts) < 12 * 700:
        met.server.poll(1_000)
        counts.append(len(met.server.completed_receives))
        assert not met.server.disconnected
    # One share for the socket, and one for the bytes buffered in the TLS engine.
    assert max(counts) <= 2 * MOST
    met.server.close_all()
    met.client.close()
