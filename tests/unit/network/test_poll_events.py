"""A poll for a caller that itself waits for events."""

from __future__ import annotations

import socket

import pytest

from kafkacore.network import NetworkSend, Selector
from kafkacore.testing import VirtualClock


@pytest.mark.parametrize(("return_on_completed_sends", "wait_ms"), [(True, -1.0), (False, 5000.0)])
def test_a_completed_send_is_only_reported_if_wanted(return_on_completed_sends: bool, wait_ms: float) -> None:
    ours, peer = socket.socketpair()
    selector = Selector(VirtualClock())
    with peer:
        selector.register("peer", ours)
        selector.send(NetworkSend("peer", [b"\x00\x00\x00\x01x"]))
        assert selector.poll_events(5000.0, return_on_completed_sends) == wait_ms
        assert len(selector.completed_sends) == 1
        assert selector.poll_events(5000.0) == 5000.0
        peer.send(b"\x00\x00\x00\x01y")
        assert selector.poll_events(5000.0, return_on_completed_sends) == -1.0
        selector.close_all()
