"""An interrupted poll of the selector under a NetworkClient: its results are handled once."""

from __future__ import annotations

from itertools import chain

import pytest

from kafkacore.network import NetworkReceive
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.mock_client import MockClient, MockSelector


class Interrupted(MockSelector):
    """A selector that can raise KeyboardInterrupt at the end of a poll, like Ctrl-C in a TLS engine."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.is_to_raise = False
        self._kept: list[NetworkReceive] = []

    def poll(self, timeout_ms: float, return_on_completed_sends: bool = True) -> None:
        super().poll(timeout_ms, return_on_completed_sends)
        self.completed_receives = [*self._kept, *self.completed_receives]
        self.is_interrupted, self.is_to_raise = self.is_to_raise, False
        self._kept = list(self.completed_receives) if self.is_interrupted else []
        if self.is_interrupted:
            raise KeyboardInterrupt


def test_answers_that_an_interrupted_poll_has_read_are_handled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkacore.testing.mock_client.MockSelector", Interrupted)
    mock = MockClient(max_in_flight_requests_per_connection=5)
    selector = mock.selector
    assert isinstance(selector, Interrupted)
    mock.connect()
    ended = []
    for _ in range(3):
        ended.append(mock.send(0, ListOffsetsRequest()))
        mock.poll()
    for _ in range(2):
        mock.respond(ListOffsetsResponse(throttle_time_ms=0))
    selector.is_to_raise = True
    with pytest.raises(KeyboardInterrupt):
        mock.poll()
    mock.poll()
    mock.poll()
    assert [len(each) for each in ended] == [1, 1, 0]
    assert not any(response.disconnected for response in chain(*ended))
    mock.respond(ListOffsetsResponse(throttle_time_ms=0))
    mock.poll()
    assert [response.disconnected for response in chain(*ended)] == [False] * 3
    assert not selector.closed
