"""Export the metrics of clients to Prometheus, through a collector or an HTTP endpoint.

This module needs the extra ``kafkacore[prometheus]``. It exports every metric of a client. Metrics whose
names end in ``-total`` are counters, all others are gauges.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, Protocol, TypeGuard

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kafkacore.metrics.metric import KafkaMetric, MetricName
from kafkacore.metrics.registry import COUNT_GROUP

#: Matches a metric group whose name ends with the value of a label, as in kafka-python:
#: ``producer-topic-metrics.orders``.
_OF_TOPIC = re.compile(r"(?P<kind>\w+)-topic-metrics\.(?P<value>.+)", re.DOTALL)
_OF_NODE = re.compile(r"(?P<kind>\w+)-node-metrics\.node-(?P<value>.+)", re.DOTALL)


class _Client(Protocol):
    def metrics(self, raw: Literal[True]) -> Mapping[MetricName, KafkaMetric] | None: ...


class KafkaMetricsCollector(Collector):
    """A Prometheus collector: ``REGISTRY.register(KafkaMetricsCollector(producer))``.

    Parameters
    ----------
    clients:
        A producer or consumer, or an iterable of clients. The collector holds only weak references to the
        clients. A closed client has no metrics.

    Raises
    ------
    TypeError
        If an object has no ``metrics()`` method.

    Notes
    -----
    ``record-send-rate`` of ``producer-metrics`` becomes ``kafkacore_producer_record_send_rate``, with the
    label ``client_id``. Metrics per topic and per node become ``kafkacore_producer_topic_…`` with the label
    ``topic``, and ``kafkacore_producer_node_…`` with the label ``node``. A consumer's fetch metrics become
    ``kafkacore_consumer_fetch_manager_…``: per topic ``…_fetch_manager_topic_…``, and per partition
    ``…_fetch_manager_partition_…`` with the labels ``topic`` and ``partition``.
    """

    def __init__(self, clients: object) -> None:
        self._clients = [weakref.ref(client) for client in _listed(clients)]

    def collect(self) -> Iterator[Metric]:
        """Yield the current values of all metrics."""
        families: dict[str, Metric] = {}
        for reference in self._clients:
            client = reference()
            metrics = {} if client is None else client.metrics(raw=True) or {}
            for metric_name, metric in metrics.items():
                name, labels = _name_and_labels(metric_name)
                family = families.get(name)
                if family is None:
                    family = families[name] = _family(name, metric_name.description, labels)
                family.add_sample(name, labels, metric.value())
        yield from families.values()


def _listed(clients: object) -> list[_Client]:
    # Check for a client first, because a consumer is iterable, too, and iterating it would consume records.
    several = [clients] if _is_client(clients) or not isinstance(clients, Iterable) else list(clients)
    found: list[_Client] = []
    for client in several:
        if not _is_client(client):
            raise TypeError(f"clients must be producers and consumers, not {type(client).__name__}")
        found.append(client)
    return found


def _is_client(candidate: object) -> TypeGuard[_Client]:
    return callable(getattr(candidate, "metrics", None)) and not isinstance(candidate, type)


def _family(name: str, description: str, labels: dict[str, str]) -> Metric:
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    return kind(name, description or name, labels=list(labels))


def _name_and_labels(metric_name: MetricName) -> tuple[str, dict[str, str]]:
    group = metric_name.group
    labels = {_word(tag): value for tag, value in metric_name.tags.items()}
    for label, pattern in (("topic", _OF_TOPIC), ("node", _OF_NODE)):
        match = pattern.fullmatch(group)
        if match is not None:
            labels[label] = match["value"]
            group = f"{match['kind']}_{label}"
            break
    if group == COUNT_GROUP:
        return "kafkacore_metrics_count", labels
    group = group.removesuffix("-metrics")
    # Metrics per topic or per partition get names of their own, so that a sum over one name does not count a
    # value twice.
    part = next((tag for tag in ("partition", "topic") if tag in metric_name.tags), None)
    return f"kafkacore_{_word(f'{group}_{part}' if part else group)}_{_word(metric_name.name)}", labels


def prometheus_name(metric_name: MetricName) -> str:
    """Return the name under which a metric is exported."""
    return _name_and_labels(metric_name)[0]


def _word(text: str) -> str:
    return re.sub(r"\W", "_", text, flags=re.ASCII)


class Exporter:
    """A running HTTP endpoint with metrics.

    Attributes
    ----------
    port:
        The port on which the endpoint listens.
    """

    def __init__(self, collector: Collector, port: int, addr: str) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(collector)
        self._server, self._thread = start_http_server(port, addr, registry)
        self.port: int = self._server.server_port

    def close(self) -> None:
        """Stop the endpoint and wait for its thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def start_exporter(clients: object, port: int, addr: str = "127.0.0.1") -> Exporter:
    """Serve the metrics of ``clients`` on ``http://addr:port/metrics``, in a daemon thread.

    Parameters
    ----------
    clients:
        One or more clients, as for :class:`KafkaMetricsCollector`.
    port:
        Port to listen on. 0 selects a free port: see the attribute ``port`` of the exporter.
    addr:
        Address to listen on. The default accepts connections from this machine only.

    Returns
    -------
    Exporter
        The running endpoint, to be closed with ``close()`` or a ``with`` block.

    Raises
    ------
    OSError
        If the port is in use.
    """
    return Exporter(KafkaMetricsCollector(clients), port, addr)
