"""Open-loop sending: latency counts from the time at which a record should have been sent."""

from __future__ import annotations

import pytest

from kafkacore.bench import pacing
from kafkacore.bench.pacing import Pacer, latencies_ms, percentiles
from kafkacore.testing import VirtualClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    clock = VirtualClock()
    monkeypatch.setattr(pacing, "SYSTEM_CLOCK", clock)
    return clock


def test_records_leave_at_the_rate(clock):
    pacer = Pacer(100.0, 5)
    left = []
    pacer.begin()
    pacer.send_all(lambda index: left.append(clock.monotonic_ms() - pacer.start_ms), clock.sleep_ms)
    assert left == pytest.approx([0, 10, 20, 30, 40])


def test_client_that_stalls_pays_for_all_that_had_to_wait(clock):
    pacer = Pacer(100.0, 4)

    def send(index: int) -> None:
        clock.sleep_ms(35 if index == 0 else 0)
        pacer.done(index)

    pacer.begin()
    pacer.send_all(send, clock.sleep_ms)
    assert pacer.latencies_ms() == pytest.approx([35, 25, 15, 5])


def test_record_that_was_never_acknowledged_has_no_latency(clock):
    pacer = Pacer(1000.0, 3)
    pacer.begin()
    pacer.done(1)
    pacer.fail()
    assert len(pacer.latencies_ms()) == 1
    assert pacer.failed == 1


def test_latency_of_a_receiver_counts_from_the_senders_schedule():
    assert latencies_ms(100.0, 10.0, [(0, 101.0), (2, 125.0), (1, 112.5)]) == [1.0, 5.0, 2.5]


def test_percentiles_are_by_nearest_rank():
    found = percentiles([float(number) for number in range(1000, 0, -1)])
    assert found == {"p50": 500.0, "p99": 990.0, "p99.9": 999.0, "max": 1000.0}
    assert percentiles([7.0]) == {"p50": 7.0, "p99": 7.0, "p99.9": 7.0, "max": 7.0}
    assert percentiles([]) == {}
