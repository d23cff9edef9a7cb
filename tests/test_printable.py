"""What a peer has put into a name or a message becomes no line of a log, and no sequence of a terminal."""

from __future__ import annotations

import pytest

from kafkacore.client.addresses import resolve_host
from kafkacore.client.connection_states import ClusterConnectionStates
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.errors import for_code
from kafkacore.structs import TopicPartition, partition_name, printable
from kafkacore.testing import VirtualClock

FORGED = "x\n2026 ERROR forged\x1b[31m\r\u202e\0"
WRITTEN_OUT = r"x\n2026 ERROR forged\x1b[31m\r\u202e\x00"


def test_what_prints_nothing_is_written_out_and_the_rest_stays() -> None:
    assert printable(FORGED) == WRITTEN_OUT
    assert printable("Zürich 東京 😀") == "Zürich 東京 😀"


def test_name_of_a_partition_is_one_line() -> None:
    assert partition_name(TopicPartition(FORGED, 3)) == f"{WRITTEN_OUT}-3"


@pytest.mark.parametrize("code", [-1, 2, 3, 37, 44])
def test_words_of_a_broker_in_an_error_are_one_line(code: int) -> None:
    assert str(for_code(code)(FORGED)).endswith(f": {WRITTEN_OUT}")


def test_host_that_a_broker_has_told_is_one_line_that_is_not_too_long() -> None:
    clock = VirtualClock()
    backoff = ExponentialBackoff(clock, 100, 1000, jitter=0.0)
    states = ClusterConnectionStates(backoff, backoff, resolve_host)
    for host in (FORGED, FORGED + "x" * 65_000):
        states.connecting(7, 0.0, host, 70_000)
        endpoint = states.endpoint(7)
        assert endpoint.isprintable()
        assert endpoint.startswith(WRITTEN_OUT)
        assert endpoint.endswith(":70000")
        assert len(endpoint) < 300


@pytest.mark.parametrize("host", ["x" * 65_000, "a..b", "é" * 300, "\ud800"])
def test_host_that_is_none_is_an_os_error_of_one_line(host: str) -> None:
    with pytest.raises(OSError, match="is no host name") as caught:
        resolve_host(host, 9092)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000
