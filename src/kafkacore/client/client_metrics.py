"""Metrics of a network client, for each connection and for all connections together.

The metrics are those of kafka-python. Metrics that kafka-python lacks, such as metrics whose names end in
``-total``, are Apache Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkacore.client._request_counter import ConnectionSensors, RequestCounter
from kafkacore.clock import Clock
from kafkacore.metrics import Authentications, MetricConfig, Metrics, Sensor
from kafkacore.settings import Config


def metrics_registry(config: Config, clock: Clock) -> Metrics | None:
    """Create the registry of a client's metrics from its settings; ``None`` if they are disabled."""
    if not config["metrics_enabled"]:
        return None
    metric_config = MetricConfig(
        config["metrics_num_samples"],
        config["metrics_sample_window_ms"],
        {"client-id": config["client_id"]},
    )
    return Metrics(metric_config, [reporter() for reporter in config["metric_reporters"]], clock)


class ClientMetrics:
    """The network metrics of one client. Only the polling thread may call the methods.

    Parameters
    ----------
    metrics:
        Registry of the metrics.
    prefix:
        Prefix of the names of metric groups, such as "producer".
    connection_count, in_flight_count:
        Functions that return the current number of connections and of requests in flight.

    Attributes
    ----------
    requests:
        Recorder of requests, responses and waits.
    """

    def __init__(
        self,
        metrics: Metrics,
        prefix: str,
        connection_count: Callable[[], int],
        in_flight_count: Callable[[], int],
    ) -> None:
        waits = metrics.sensor("select-time")
        self.requests = RequestCounter(self._register_node, waits)
        self._metrics = metrics
        self._prefix = prefix
        group = f"{prefix}-metrics"
        self._operations = metrics.sensor("bytes-sent-received")
        self._all = self._register("", group, "all brokers", None)
        metrics.add(
            "network-io-rate",
            group,
            "Requests sent plus responses received per second, on all connections.",
            self._operations.occurrence_rate,
        )
        self._created = metrics.sensor("connections-created")
        self._closed = metrics.sensor("connections-closed")
        for sensor, name, what in (
            (self._created, "connection-creation", "Connections established"),
            (self._closed, "connection-close", "Connections closed"),
        ):
            metrics.add(f"{name}-rate", group, f"{what} per second.", sensor.occurrence_rate)
            metrics.add(f"{name}-total", group, f"{what}.", sensor.occurrences)
        metrics.add(
            "connection-count",
            group,
            "Number of connections that are open or being established.",
            lambda now_ms: connection_count(),
        )
        metrics.add(
            "requests-in-flight", group, "Number of requests in flight.", lambda now_ms: in_flight_count()
        )
        self._register_waits(group, waits)
        self.authentications = Authentications(metrics.sensor)
        self.authentications.register(metrics, group)

    def _register_waits(self, group: str, waits: Sensor) -> None:
        add = self._metrics.add
        add(
            "select-rate",
            group,
            "Number of times per second that the client checked or waited for network I/O.",
            waits.occurrence_rate,
        )
        add(
            "io-wait-time-ns-avg",
            group,
            "Average time that the client waited for network I/O, in nanoseconds per check.",
            lambda now_ms: waits.average(now_ms) * 1e6,
        )
        add(
            "io-wait-ratio",
            group,
            "Fraction of the time that the client spent waiting for network I/O, from 0 to 1.",
            lambda now_ms: waits.rate(now_ms) / 1000.0,
        )

    def _register(
        self, name: str, group: str, what: str, parent: ConnectionSensors | None
    ) -> ConnectionSensors:
        metrics = self._metrics
        made = ConnectionSensors(
            metrics.sensor(f"{name}bytes-sent", (parent.sent,) if parent else (self._operations,)),
            metrics.sensor(f"{name}bytes-received", (parent.received,) if parent else (self._operations,)),
            metrics.sensor(f"{name}request-latency", (parent.latency,) if parent else ()),
            metrics.sensor(f"{name}throttle-time", (parent.throttle,) if parent else ()),
        )
        sent, received, latency, throttle = made.sent, made.received, made.latency, made.throttle
        for of, description, measure in (
            ("outgoing-byte-rate", f"Bytes sent to {what} per second.", sent.rate),
            ("outgoing-byte-total", f"Bytes sent to {what}.", sent.sum),
            ("request-rate", f"Requests sent to {what} per second.", sent.occurrence_rate),
            ("request-total", f"Requests sent to {what}.", sent.occurrences),
            ("request-size-avg", f"Average size of a request to {what}, in bytes.", sent.average),
            ("request-size-max", f"Size of the largest request to {what}, in bytes.", sent.largest),
            ("incoming-byte-rate", f"Bytes received from {what} per second.", received.rate),
            ("incoming-byte-total", f"Bytes received from {what}.", received.sum),
            ("response-rate", f"Responses received from {what} per second.", received.occurrence_rate),
            ("response-total", f"Responses received from {what}.", received.occurrences),
            (
                "request-latency-avg",
                f"Average latency of requests to {what}, in milliseconds.",
                latency.average,
            ),
            (
                "request-latency-max",
                f"Maximum latency of requests to {what}, in milliseconds.",
                latency.largest,
            ),
            (
                "throttle-time-avg",
                f"Average throttle time of responses from {what}, in milliseconds.",
                throttle.average,
            ),
            (
                "throttle-time-max",
                f"Maximum throttle time of responses from {what}, in milliseconds.",
                throttle.largest,
            ),
        ):
            metrics.add(of, group, description, measure)
        return made

    def _register_node(self, node_id: int) -> ConnectionSensors:
        name = f"node-{node_id}"
        return self._register(f"{name}.", f"{self._prefix}-node-metrics.{name}", name, self._all)

    def connection_created(self, now_ms: float) -> None:
        self._created.record(1.0, now_ms)

    def connection_closed(self, now_ms: float) -> None:
        self._closed.record(1.0, now_ms)
