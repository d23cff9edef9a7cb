"""The metrics of clients for Prometheus: clients in, a collector or an HTTP endpoint out.

Needs the extra ``kafkacore[prometheus]``. Does not know: what a client counts; every metric that it has is
passed on, names ending in ``-total`` as counters and all others as gauges.
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

#: Group → what stands in it beside the words: the label that it is of, and the value.
_OF_TOPIC = re.compile(r"(?P<kind>\w+)-topic-metrics\.(?P<value>.+)", re.DOTALL)
_OF_NODE = re.compile(r"(?P<kind>\w+)-node-metrics\.node-(?P<value>.+)", re.DOTALL)


class _Client(Protocol):
    def metrics(self, raw: Literal[True]) -> Mapping[MetricName, KafkaMetric] | None: ...


class KafkaMetricsCollector(Collector):
    """To be registered: ``REGISTRY.register(KafkaMetricsCollector(producer))``.

    Parameters
    ----------
    clients:
        A producer or consumer, or an iterable of them. The collector does not keep them alive. A closed
        client has no metrics.

    Raises
    ------
    TypeError
        Something else was given.

    Notes
    -----
    ``record-send-rate`` of ``producer-metrics`` is ``kafkacore_producer_record_send_rate``, with the label
    ``client_id``; what is counted by topic or by node is ``kafkacore_producer_topic_…`` with the label
    ``topic``, ``kafkacore_producer_node_…`` with ``node``. A consumer's fetches are
    ``kafkacore_consumer_fetch_manager_…``, by topic ``…_fetch_manager_topic_…``, by partition
    ``…_fetch_manager_partition_…`` with the labels ``topic`` and ``partition``.
    """

    def __init__(self, clients: object) -> None:
        self._clients = [weakref.ref(client) for client in _listed(clients)]

    def collect(self) -> Iterator[Metric]:
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
    # A consumer is iterable, and iterating it takes its records: so ask first whether this is a client.
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
    # A sum over what all clients count must not count the parts of it as well.
    part = next((tag for tag in ("partition", "topic") if tag in metric_name.tags), None)
    return f"kafkacore_{_word(f'{group}_{part}' if part else group)}_{_word(metric_name.name)}", labels


def prometheus_name(metric_name: MetricName) -> str:
    """Return the name under which a metric is exported."""
    return _name_and_labels(metric_name)[0]


def _word(text: str) -> str:
    return re.sub(r"\W", "_", text, flags=re.ASCII)


class Exporter:
    """An HTTP endpoint that is being served.

    Attributes
    ----------
    port:
        Where it listens.
    """

    def __init__(self, collector: Collector, port: int, addr: str) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(collector)
        self._server, self._thread = start_http_server(port, addr, registry)
        self.port: int = self._server.server_port

    def close(self) -> None:
        """Serve no more, and wait until the thread has ended."""
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
        A client or several, as for :class:`KafkaMetricsCollector`.
    port:
        0 for any free port; the attribute ``port`` of the exporter has it.
    addr:
        Where to listen: this machine alone, if nothing is said.

    Raises
    ------
    OSError
        The port is taken.
    """
    return Exporter(KafkaMetricsCollector(clients), port, addr)
