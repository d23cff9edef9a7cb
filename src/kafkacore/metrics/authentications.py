"""Metrics of authentications, with the names in Kafka's ``Selector.SelectorMetrics``."""

from __future__ import annotations

from collections.abc import Callable

from kafkacore.metrics._sensor import Sensor
from kafkacore.metrics.registry import Metrics


class Authentications:
    """Sensors for the authentications of a client or a broker. One thread writes; any thread may read.

    Parameters
    ----------
    sensor:
        Function that returns the sensor with a given name.
    """

    def __init__(self, sensor: Callable[[str], Sensor]) -> None:
        self.succeeded, self.failed = sensor("successful-authentication"), sensor("failed-authentication")
        self.succeeded_again = sensor("successful-reauthentication")
        self.failed_again = sensor("failed-reauthentication")
        #: Milliseconds that successful re-authentications took.
        self.latency = sensor("reauthentication-latency")

    def note(self, is_again: bool, is_success: bool, took_ms: float, now_ms: float) -> None:
        """Record a completed or failed authentication."""
        if not is_again:
            (self.succeeded if is_success else self.failed).record(1.0, now_ms)
        elif is_success:
            self.succeeded_again.record(1.0, now_ms)
            self.latency.record(took_ms, now_ms)
        else:
            self.failed_again.record(1.0, now_ms)

    def register(self, metrics: Metrics, group: str) -> None:
        """Add the metrics of these authentications to the metric group ``group``."""
        for sensor, name, what in (
            (self.succeeded, "successful-authentication", "Successful authentications with TLS or SASL"),
            (self.failed, "failed-authentication", "Failed authentications"),
            (self.succeeded_again, "successful-reauthentication", "Successful re-authentications with SASL"),
            (self.failed_again, "failed-reauthentication", "Failed re-authentications"),
        ):
            metrics.add(f"{name}-rate", group, f"{what}, per second.", sensor.occurrence_rate)
            metrics.add(f"{name}-total", group, f"{what}.", sensor.occurrences)
        for suffix, what, measure in (
            ("avg", "Average", self.latency.average),
            ("max", "Maximum", self.latency.largest),
        ):
            metrics.add(
                f"reauthentication-latency-{suffix}", group, f"{what} ms of a re-authentication.", measure
            )
