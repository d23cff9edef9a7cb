"""Generate the reference of metrics from the registries of clients and the metrics text of the broker."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from kafkacore.admin.lag_collector import ERRORS, GAUGES
from kafkacore.broker.status.prometheus_text import prometheus_text
from kafkacore.client.client_metrics import ClientMetrics
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.consumer.metrics import ConsumerMetrics
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.metrics import Metrics
from kafkacore.metrics.prometheus import prometheus_name
from kafkacore.producer._buffer_pool import BufferPool
from kafkacore.producer.sender_metrics import ProducerMetrics
from kafkacore.spark.monitor import DESCRIPTIONS, GROUP
from kafkacore.structs import TopicPartition

#: Placeholders in labels and descriptions for any topic, partition and node.
_TOPIC, _PARTITION, _NODE = "TOPIC", 0, 0


class _Metric(NamedTuple):
    group: str
    name: str
    exported: str
    meaning: str


def metrics(of: str) -> str:
    """Return tables of the metrics of ``producer``, ``consumer``, ``broker``, ``spark`` or ``lag``."""
    if of == "broker":
        return "\n".join(_table(("metric", "type", "labels", "meaning"), _broker_rows()))
    if of == "lag":
        exported = [(name, "gauge", *of_metric) for name, of_metric in GAUGES.items()]
        exported.append((f"{ERRORS[0]}_total", "counter", *ERRORS[1:]))
        rows = (
            (f"`{name}`", kind, ", ".join(f"`{each}`" for each in labels), text)
            for name, kind, text, labels in exported
        )
        return "\n".join(_table(("metric", "type", "labels", "meaning"), rows))
    if of == "spark":
        rows = ((f"`{name}`", _kind(name), text) for name, text in DESCRIPTIONS.items())
        return "\n".join([f"Group `{GROUP}`:", "", *_table(("metric", "type", "meaning"), rows)])
    found = _producer() if of == "producer" else _consumer()
    groups: dict[str, list[_Metric]] = {}
    for metric in found:
        groups.setdefault(metric.group, []).append(metric)
    parts: list[str] = []
    for group, members in groups.items():
        rows = ((f"`{each.name}`", _kind(each.name), f"`{each.exported}`", each.meaning) for each in members)
        parts += [f"### `{group}`", "", *_table(("metric", "type", "in Prometheus", "meaning"), rows), ""]
    return "\n".join(parts)


def _kind(name: str) -> str:
    return "counter" if name.endswith(("-total", "_total")) else "gauge"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return lines + [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]


# ---- Clients -------------------------------------------------------------------------------------------


def _producer() -> list[_Metric]:
    registry = Metrics()
    connections = ClientMetrics(registry, "producer", int, int)
    connections._register_node(_NODE)
    pool = BufferPool(1, SYSTEM_CLOCK)
    ProducerMetrics(registry, SYSTEM_CLOCK, pool, (), lambda now_ms: 0.0)._register_topic(_TOPIC)
    return _registered(registry)


def _consumer() -> list[_Metric]:
    config = {
        "metrics_enabled": True,
        "metric_group_prefix": "consumer",
        "metrics_num_samples": 1,
        "metrics_sample_window_ms": 1,
        "client_id": "",
        "metric_reporters": (),
    }
    client: Any = SimpleNamespace(
        connection_count=int, in_flight_request_count=int, selector=SimpleNamespace(), metrics=None
    )
    made = ConsumerMetrics(config, SYSTEM_CLOCK, client, SubscriptionState())
    assert made.fetch is not None
    assert made.registry is not None
    made.fetch._register_topic(_TOPIC)
    made.fetch._register_partition(TopicPartition(_TOPIC, _PARTITION))
    client.metrics._register_node(_NODE)
    return _registered(made.registry)


def _registered(registry: Metrics) -> list[_Metric]:
    found = []
    for metric_name in registry.metrics:
        own = [tag for tag in metric_name.tags if tag != "client-id"]
        group = ".".join([metric_name.group.replace(f"node-{_NODE}", "node-N"), *map(str.upper, own)])
        meaning = re.sub(rf"\bnode-{_NODE}\b", "the node", metric_name.description)
        meaning = meaning.replace(f"{_TOPIC}-{_PARTITION}", "the partition")
        meaning = meaning.replace(f"topic {_TOPIC}", "the topic")
        found.append(_Metric(group, metric_name.name, prometheus_name(metric_name), meaning))
    return found


# ---- Broker --------------------------------------------------------------------------------------------


def _broker_rows() -> Iterable[tuple[str, ...]]:
    text = prometheus_text(_snapshot())
    labels: dict[str, list[str]] = {}
    for name, found in re.findall(r"^(\w+)\{(.*)\} ", text, re.MULTILINE):
        labels[re.sub(r"_(?:sum|count)$", "", name)] = re.findall(r"(\w+)=", found)
    helps = dict(re.findall(r"^# HELP (\w+) (.*)$", text, re.MULTILINE))
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE):
        yield (f"`{name}`", kind, ", ".join(f"`{each}`" for each in labels.get(name, ())), helps[name])


def _snapshot() -> Any:
    """Return the status of a broker with one topic, API and group, in which every number is 0."""

    def zeros(**given: object) -> Mapping[str, object]:
        return defaultdict(int, given)

    partition = zeros(partition=0, end=0)
    return zeros(
        broker=zeros(version="", cluster_id="", flush=""),
        totals=zeros(),
        flush=zeros(),
        authentications=zeros(),
        transactions=zeros(),
        topics=[zeros(name=_TOPIC, partitions=[partition])],
        apis=[zeros(name="Produce", errors={"NONE": 0})],
        waiting={"Produce": 0},
        groups=[zeros(group_id="", state="", lag=0)],
        group_counts=[zeros(type="classic", state=""), zeros(type="consumer", state="")],
        rebalances=zeros(),
    )
