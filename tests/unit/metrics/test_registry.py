"""Metrics: names, reporters, and snapshots of all values."""

from __future__ import annotations

import gc
import logging
from itertools import count
from typing import Any

import kafka.metrics
import pytest

from kafkacore.metrics import DictReporter, MetricConfig, MetricName, Metrics
from kafkacore.testing import VirtualClock


class Listens:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def init(self, metrics: list[Any]) -> None:
        self.calls.append("init")

    def metric_change(self, metric: Any) -> None:
        self.calls.append(metric.metric_name.name)

    def metric_removal(self, metric: Any) -> None:
        raise AssertionError("no metric may be removed")

    def close(self) -> None:
        self.calls.append("close")


class Breaks(Listens):
    def metric_change(self, metric: Any) -> None:
        raise RuntimeError("full")


def test_snapshot_has_groups_names_and_figures() -> None:
    clock = VirtualClock()
    metrics = Metrics(MetricConfig(2, 1000), clock=clock)
    sensor = metrics.sensor("requests")
    metrics.add("request-rate", "g", "Requests per second.", sensor.occurrence_rate)
    metrics.add("now", "h", "The current time.", lambda now_ms: now_ms)
    sensor.record(1.0, clock.monotonic_ms())
    clock.advance(1000)
    assert metrics.snapshot() == {
        "kafka-metrics-count": {"count": 3},
        "g": {"request-rate": pytest.approx(1.0)},
        "h": {"now": clock.monotonic_ms()},
    }


def test_raw_metrics_are_asked_one_by_one_and_have_the_clients_tags() -> None:
    metrics = Metrics(MetricConfig(tags={"client-id": "c"}), clock=VirtualClock())
    metrics.add("m", "g", "A sentence.", lambda now_ms: 7.0, {"more": "x"})
    metric = metrics.metrics[MetricName("m", "g", tags={"client-id": "c", "more": "x"})]
    assert metric.value() == 7.0
    assert metric.metric_name.description == "A sentence."
    assert metric.metric_name.tags == {"client-id": "c", "more": "x"}


def test_names_differ_by_name_group_and_tags_alone() -> None:
    name = MetricName("m", "g", "one", {"a": "1"})
    assert name == MetricName("m", "g", "another", {"a": "1"})
    assert hash(name) == hash(MetricName("m", "g", tags={"a": "1"}))
    others = [
        MetricName("n", "g", tags={"a": "1"}),
        MetricName("m", "h", tags={"a": "1"}),
        MetricName("m", "g"),
    ]
    assert name not in others
    assert name != "m"
    with pytest.raises(ValueError, match="name and a group"):
        MetricName("", "g")


def test_sensor_and_metric_of_a_name_are_made_once() -> None:
    metrics = Metrics(clock=VirtualClock())
    assert metrics.sensor("s") is metrics.sensor("s")
    metrics.add("m", "g", "", lambda now_ms: 1.0)
    metrics.add("m", "g", "", lambda now_ms: 2.0)
    assert metrics.snapshot()["g"] == {"m": 1.0}


def test_reporters_hear_of_every_metric_and_of_the_end() -> None:
    listens = Listens()
    metrics = Metrics(reporters=[listens], clock=VirtualClock())
    metrics.add("m", "g", "", lambda now_ms: 1.0)
    metrics.close()
    metrics.close()
    assert listens.calls == ["init", "count", "m", "close"]
    assert metrics.snapshot() == {}


def test_reporter_that_raises_is_logged_and_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    listens = Listens()
    with caplog.at_level(logging.ERROR):
        metrics = Metrics(reporters=[Breaks(), listens], clock=VirtualClock())
    assert "Breaks" in caplog.text
    assert listens.calls == ["init", "count"]
    assert metrics.snapshot()["kafka-metrics-count"] == {"count": 1}


@pytest.mark.parametrize("reporter_class", [DictReporter, kafka.metrics.DictReporter])
def test_reporter_of_ours_and_of_kafka_python_keep_a_dictionary(reporter_class: Any) -> None:
    reporter = reporter_class("app")
    metrics = Metrics(MetricConfig(tags={"b": "2", "a": "1"}), [reporter], clock=VirtualClock())
    metrics.add("m", "g", "", lambda now_ms: 5.0)
    assert reporter.snapshot()["app.g.a=1,b=2"] == {"m": 5.0}
    for metric in metrics.metrics.values():
        reporter.metric_removal(metric)
    assert reporter.snapshot() == {}
    reporter.init(metrics.metrics.values())
    assert len(reporter.snapshot()) == 2
    metrics.close()


def test_metrics_of_a_tag_are_removed_together_and_reporters_told() -> None:
    reporter = DictReporter()
    metrics = Metrics(MetricConfig(tags={"client-id": "c"}), [reporter], clock=VirtualClock())
    before = metrics.sensor("a.s")
    for topic in ("a", "b"):
        for name in ("m", "n"):
            metrics.add(name, "g", "", lambda now_ms: 1.0, {"topic": topic})
    metrics.add("m", "g", "", lambda now_ms: 2.0)
    assert metrics.snapshot()["g"] == {"m": 2.0}
    assert metrics.snapshot()["g.a"] == {"m": 1.0, "n": 1.0}
    metrics.remove("g", {"topic": "a"})
    metrics.remove_sensor("a.s")
    metrics.remove_sensor("a.s")
    assert set(metrics.snapshot()) == {"kafka-metrics-count", "g", "g.b"}
    assert set(reporter.snapshot()) == {
        "kafka-metrics-count.client-id=c",
        "g.client-id=c",
        "g.client-id=c,topic=b",
    }
    assert metrics.sensor("a.s") is not before


def test_reporter_is_readable_while_a_finalizer_adds_metrics() -> None:
    """In Python 3.11, the garbage collector may run finalizers while a dictionary is copied to a list."""
    reporter = DictReporter()
    metrics = Metrics(reporters=[reporter], clock=VirtualClock())
    numbers = count()

    def add(phase: str = "start", _: object = None) -> None:
        number = next(numbers)
        metrics.add(f"m{number}", "g", "", lambda now_ms: 1.0)
        metrics.add("m", f"g{number}", "", lambda now_ms: 1.0)

    for _ in range(50):
        add()
    before = gc.get_threshold()
    gc.callbacks.append(add)
    gc.set_threshold(1)
    try:
        found = reporter.snapshot()
    finally:
        gc.callbacks.remove(add)
        gc.set_threshold(*before)
    assert len(found["g"]) >= 50
