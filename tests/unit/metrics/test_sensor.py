"""Sensor: averages, maxima and rates of recent samples, compared with kafka-python's statistics."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.metrics import MetricConfig
from kafka.metrics.stats import Avg, Count, Max, Rate, Total

from kafkacore.metrics import Sensor

WINDOW_MS = 1000.0


class KafkaPythons:
    """The same statistics by kafka-python, each with its own samples."""

    def __init__(self, samples: int) -> None:
        self.config = MetricConfig(samples=samples, time_window_ms=WINDOW_MS)
        self.stats = [Avg(), Max(), Rate(), Rate(sampled_stat=Count()), Total()]

    def record(self, value: float, now_ms: float) -> None:
        for stat in self.stats:
            stat.record(self.config, value, now_ms)

    def figures(self, now_ms: float) -> list[float]:
        return [stat.measure(self.config, now_ms) for stat in self.stats]


def figures(sensor: Sensor, now_ms: float) -> list[float]:
    measures = [sensor.average, sensor.largest, sensor.rate, sensor.occurrence_rate, sensor.sum]
    return [measure(now_ms) for measure in measures]


STEPS = st.lists(
    st.tuples(
        st.floats(0, 3 * WINDOW_MS),
        st.floats(-1e6, 1e6) | st.none(),
    ),
    min_size=1,
    max_size=60,
)


@given(st.integers(2, 4), st.floats(0, 100), STEPS)
def test_figures_are_kafka_pythons(
    samples: int, first: float, steps: list[tuple[float, float | None]]
) -> None:
    sensor, oracle = Sensor("s", samples, WINDOW_MS), KafkaPythons(samples)
    now_ms = 12_345.0
    # kafka-python starts a sample when a rate is read, so both sides begin with a recorded value.
    sensor.record(first, now_ms)
    oracle.record(first, now_ms)
    for passed_ms, value in steps:
        now_ms += passed_ms
        if value is None:
            assert figures(sensor, now_ms) == pytest.approx(oracle.figures(now_ms))
        else:
            sensor.record(value, now_ms)
            oracle.record(value, now_ms)
    assert figures(sensor, now_ms) == pytest.approx(oracle.figures(now_ms))


def test_nothing_recorded_is_nothing() -> None:
    sensor = Sensor("s")
    assert figures(sensor, 5.0) == [0.0, -math.inf, 0.0, 0.0, 0.0]
    assert sensor.occurrences(5.0) == 0.0


def test_rate_is_per_second_over_all_samples() -> None:
    sensor = Sensor("s", 2, 1000.0)
    for now_ms in range(0, 2000, 100):
        sensor.record(3.0, now_ms)
    assert sensor.rate(2000) == pytest.approx(30.0)
    assert sensor.occurrence_rate(2000) == pytest.approx(10.0)


def test_first_values_make_no_enormous_rate() -> None:
    sensor = Sensor("s", 2, 30_000.0)
    sensor.record(30.0, 0.0)
    assert sensor.rate(0.0) == pytest.approx(1.0)


def test_old_values_are_forgotten_but_not_in_the_totals() -> None:
    sensor = Sensor("s", 2, 1000.0)
    sensor.record(100.0, 0.0)
    assert sensor.largest(1999.0) == 100.0
    assert sensor.largest(2000.0) == -math.inf
    assert (sensor.total, sensor.count) == (100.0, 1)


def test_one_sample_with_no_time_behind_it_has_no_rate() -> None:
    sensor = Sensor("s", 1, 1000.0)
    sensor.record(1.0, 0.0)
    assert sensor.rate(0.0) == 0.0
    assert sensor.occurrence_rate(0.0) == 0.0


def test_parents_are_told_the_same() -> None:
    grandparent = Sensor("g")
    parent = Sensor("p", parents=(grandparent,))
    for child in (Sensor("a", parents=(parent,)), Sensor("b", parents=(parent,))):
        child.record(2.0, 0.0)
        assert child.total == 2.0
    assert (parent.total, grandparent.total, grandparent.count) == (4.0, 4.0, 2)


@pytest.mark.parametrize(("samples", "window_ms"), [(0, 1.0), (-1, 1.0), (1, 0.0), (1, math.nan)])
def test_no_samples_and_no_time_are_refused(samples: int, window_ms: float) -> None:
    with pytest.raises(ValueError, match="samples"):
        Sensor("s", samples, window_ms)


def test_smallest_is_of_the_last_while_and_latest_of_all_time() -> None:
    sensor = Sensor("s", 2, 1000.0)
    assert sensor.smallest(0.0) == math.inf
    assert math.isnan(sensor.latest(0.0))
    sensor.record(3.0, 0.0)
    sensor.record(5.0, 1500.0)
    assert (sensor.smallest(1500.0), sensor.latest(1500.0)) == (3.0, 5.0)
    assert sensor.smallest(2500.0) == 5.0
    assert (sensor.smallest(9000.0), sensor.latest(9000.0)) == (math.inf, 5.0)
