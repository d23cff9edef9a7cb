"""Authentications of connections, counted by Kafka's names: their ends in, metrics out.

Does not know: who authenticates whom, how. Source of the names: Kafka's ``Selector.SelectorMetrics``.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkacore.metrics._sensor import Sensor
from kafkacore.metrics.registry import Metrics


class Authentications:
    """Of all connections of a client or of a broker. Written by one thread, read by any.

    Parameters
    ----------
    sensor:
        Makes a sensor of a name.
    """

    def __init__(self, sensor: Callable[[str], Sensor]) -> None:
        self.succeeded, self.failed = sensor("successful-authentication"), sensor("failed-authentication")
        self.succeeded_again = sensor("successful-reauthentication")
        self.failed_again = sensor("failed-reauthentication")
        #: Milliseconds of those that have succeeded again.
        self.latency = sensor("reauthentication-latency")

    def note(self, is_again: bool, is_success: bool, took_ms: float, now_ms: float) -> None:
        """One has come to its end."""
        if not is_again:
            (self.succeeded if is_success else self.failed).record(1.0, now_ms)
        elif is_success:
            self.succeeded_again.record(1.0, now_ms)
            self.latency.record(took_ms, now_ms)
        else:
            self.failed_again.record(1.0, now_ms)

    def register(self, metrics: Metrics, group: str) -> None:
        """Make metrics of them."""
        for sensor, name, what in (
            (self.succeeded, "successful-authentication", "Connections that authenticated by TLS or SASL"),
            (self.failed, "failed-authentication", "Connections that failed to"),
            (self.succeeded_again, "successful-reauthentication", "Sessions that were renewed by SASL"),
            (self.failed_again, "failed-reauthentication", "Sessions that could not be renewed"),
        ):
            metrics.add(f"{name}-rate", group, f"{what}, per second.", sensor.occurrence_rate)
            metrics.add(f"{name}-total", group, f"{what}.", sensor.occurrences)
        for suffix, what, measure in (
            ("avg", "Average", self.latency.average),
            ("max", "Longest", self.latency.largest),
        ):
            metrics.add(
                f"reauthentication-latency-{suffix}", group, f"{what} ms of renewing a session.", measure
            )
