"""A snapshot of the broker in the text format of Prometheus, version 0.0.4.

Names are those of Apache Kafka's JMX exporter, so that existing dashboards work. Topics beyond the limit are
summed up under one name that no topic can have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from kafkacore.broker.group.classic_group import CLASSIC
from kafkacore.broker.group.consumer.consumer_group import CONSUMER
from kafkacore.broker.server.metrics import ApiFigures
from kafkacore.broker.status.snapshot import (
    AuthenticationFigures,
    GroupCountFigures,
    Snapshot,
    TopicFigures,
    TransactionsFigures,
)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: Maximum number of topics, and of partitions, that get separate metrics.
MAX_TOPICS: Final = 200
MAX_PARTITIONS: Final = 1000
_REST: Final = "(other topics)"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

#: Each tuple describes one metric. It has the variable part of the metric's name, the help text, and the key
#: in the counts of topics and of the broker.
_TRAFFIC: Final[tuple[tuple[str, str, Literal["bytes_in", "messages_in", "bytes_out"]], ...]] = (
    ("bytesin", "Bytes that producers have written", "bytes_in"),
    ("messagesin", "Records that producers have written", "messages_in"),
    ("bytesout", "Bytes that consumers have fetched", "bytes_out"),
)
_OF_PARTITIONS: Final[
    tuple[tuple[str, str, Literal["size", "segments", "start", "end", "high_watermark"]], ...]
] = (
    ("kafka_log_log_size", "Size of a partition in bytes.", "size"),
    ("kafka_log_log_numlogsegments", "Number of segments of a partition.", "segments"),
    ("kafka_log_log_logstartoffset", "Log start offset of a partition.", "start"),
    ("kafka_log_log_logendoffset", "Log end offset of a partition.", "end"),
    (
        "kafkacore_broker_high_watermark",
        "High watermark of a partition: consumers read up to this offset.",
        "high_watermark",
    ),
)
_TIMES: Final[tuple[tuple[str, Literal["total_ms", "local_ms", "remote_ms", "queue_ms"], str], ...]] = (
    ("totaltimems", "total_ms", "from the start of handling until the response"),
    ("localtimems", "local_ms", "in the request handler"),
    ("remotetimems", "remote_ms", "that were delayed, for records, the disk or a group"),
    ("requestqueuetimems", "queue_ms", "before handling"),
)
_AUTHENTICATIONS: Final[
    tuple[tuple[str, str, Literal["succeeded", "succeeded_again", "failed_again"]], ...]
] = (
    ("successful_authentication", "Successful authentications with TLS or SASL.", "succeeded"),
    ("successful_reauthentication", "Successful re-authentications with SASL.", "succeeded_again"),
    ("failed_reauthentication", "Failed re-authentications.", "failed_again"),
)


class _Text:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(
        self, name: str, kind: str, help_text: str, samples: Iterable[tuple[Mapping[str, object], float]]
    ) -> None:
        """Add a metric family, unless it has no samples."""
        samples = list(samples)
        if samples:
            self.lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
        for labels, value in samples:
            self._sample(name, labels, value)

    def summary(
        self, name: str, help_text: str, figures: Iterable[tuple[Mapping[str, object], int, float]]
    ) -> None:
        """Add a metric of type summary, which consists of a count and a sum."""
        figures = list(figures)
        if figures:
            self.lines += [f"# HELP {name} {help_text}", f"# TYPE {name} summary"]
            for labels, count, total in figures:
                self._sample(f"{name}_sum", labels, total)
                self._sample(f"{name}_count", labels, count)

    def _sample(self, name: str, labels: Mapping[str, object], value: float) -> None:
        shown = ",".join(f'{label}="{str(of).translate(_ESCAPES)}"' for label, of in labels.items())
        number = f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
        self.lines.append(f"{name}{{{shown}}} {number}" if shown else f"{name} {number}")

    def one(self, name: str, kind: str, help_text: str, value: float) -> None:
        self.add(name, kind, help_text, [({}, value)])


def prometheus_text(snapshot: Snapshot) -> str:
    """Return the metrics of a snapshot as text."""
    text = _Text()
    _process(text, snapshot)
    _topics(text, snapshot["topics"])
    _requests(text, snapshot["apis"])
    _waiting(text, snapshot)
    _groups(text, snapshot)
    _transactions(text, snapshot["transactions"])
    return "\n".join(text.lines) + "\n"


def _process(text: _Text, snapshot: Snapshot) -> None:
    broker, totals, flush = snapshot["broker"], snapshot["totals"], snapshot["flush"]
    about = {"version": broker["version"], "cluster_id": broker["cluster_id"], "flush": broker["flush"]}
    text.add(
        "kafkacore_broker_info", "gauge", "Version, cluster id and flush mode of the broker.", [(about, 1)]
    )
    text.one(
        "kafkacore_broker_uptime_seconds",
        "gauge",
        "Seconds since the start of the broker.",
        broker["uptime_ms"] / 1000,
    )
    text.one(
        "process_resident_memory_bytes",
        "gauge",
        "Resident memory of the process in bytes.",
        broker["resident_bytes"],
    )
    if broker["open_files"] >= 0:
        text.one("process_open_fds", "gauge", "Number of open file descriptors.", broker["open_files"])
    text.one(
        "kafka_server_socket_server_metrics_connection_count",
        "gauge",
        "Open connections.",
        totals["connections"],
    )
    text.one(
        "kafka_server_socket_server_metrics_connection_creation_total",
        "counter",
        "Accepted connections.",
        snapshot["accepted_count"],
    )
    text.one(
        "kafkacore_broker_connections_refused_total",
        "counter",
        "Connections that were refused because of max.connections.",
        snapshot["refused_count"],
    )
    text.one(
        "kafka_server_socket_server_metrics_failed_authentication_total",
        "counter",
        "Failed authentications with TLS or SASL.",
        snapshot["failed_authentication_count"],
    )
    _authentications(text, snapshot["authentications"])
    text.one(
        "kafka_server_socket_server_metrics_expired_connections_killed_count",
        "counter",
        "Connections that were closed because their SASL session expired.",
        snapshot["expired_count"],
    )
    for name, help_text, key in _TRAFFIC:
        text.one(
            f"kafka_server_brokertopicmetrics_{name}_total",
            "counter",
            f"{help_text}, in all topics.",
            totals[key],
        )
    text.one(
        "kafka_controller_kafkacontroller_globaltopiccount", "gauge", "Number of topics.", totals["topics"]
    )
    text.one(
        "kafka_controller_kafkacontroller_globalpartitioncount",
        "gauge",
        "Number of partitions.",
        totals["partitions"],
    )
    text.one(
        "kafka_server_replicamanager_offlinereplicacount",
        "gauge",
        "Partitions that are offline because of corrupt files or a failed disk.",
        totals["offline_partitions"],
    )
    text.one("kafkacore_broker_log_size_bytes", "gauge", "Size of all logs in bytes.", totals["size"])
    text.one("kafkacore_broker_log_segments", "gauge", "Number of segments of all logs.", totals["segments"])
    name = "kafka_log_logflushstats_logflushtimems"
    text.summary(
        name, "Duration of log syncs to the disk in milliseconds.", [({}, flush["count"], flush["total_ms"])]
    )
    text.one(f"{name}_max", "gauge", "Maximum of the last minute in milliseconds.", flush["largest_ms"])


def _topics(text: _Text, topics: list[TopicFigures]) -> None:
    for name, help_text, key in _TRAFFIC:
        samples = [({"topic": topic["name"]}, topic[key]) for topic in topics[:MAX_TOPICS]]
        if topics[MAX_TOPICS:]:
            samples.append(({"topic": _REST}, sum(topic[key] for topic in topics[MAX_TOPICS:])))
        text.add(f"kafka_server_brokertopicmetrics_topic_{name}_total", "counter", f"{help_text}.", samples)
    partitions = [
        ({"topic": topic["name"], "partition": partition["partition"]}, partition)
        for topic in topics
        for partition in topic["partitions"]
        if "end" in partition
    ][:MAX_PARTITIONS]
    for name, help_text, figure in _OF_PARTITIONS:
        text.add(name, "gauge", help_text, [(labels, partition[figure]) for labels, partition in partitions])


def _requests(text: _Text, apis: list[ApiFigures]) -> None:
    name = "kafka_network_requestmetrics"
    text.add(
        f"{name}_requests_total",
        "counter",
        "Requests by API.",
        [({"request": api["name"]}, api["requests"]) for api in apis],
    )
    text.add(
        f"{name}_errors_total",
        "counter",
        "Errors in responses by API and code. Each topic and partition counts.",
        [
            ({"request": api["name"], "error": error}, count)
            for api in apis
            for error, count in api["errors"].items()
        ],
    )
    for part, key, help_text in _TIMES:
        text.summary(
            f"{name}_{part}",
            f"Milliseconds of requests {help_text}.",
            [({"request": api["name"]}, api["requests"], api[key]) for api in apis],
        )
    text.add(
        f"{name}_totaltimems_max",
        "gauge",
        "Maximum of the last minute in milliseconds.",
        [({"request": api["name"]}, api["largest_ms"]) for api in apis],
    )


def _waiting(text: _Text, snapshot: Snapshot) -> None:
    text.add(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "gauge",
        "Delayed requests in the purgatories.",
        [({"delayedOperation": name}, count) for name, count in snapshot["waiting"].items()],
    )

    text.one(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "gauge",
        "Number of incremental fetch sessions.",
        snapshot["fetch_session_count"],
    )
    text.summary(
        "kafkacore_broker_throttle_milliseconds",
        "Milliseconds for which quotas have throttled connections.",
        [({}, snapshot["throttled_count"], snapshot["throttled_ms"])],
    )


def _authentications(text: _Text, counted: AuthenticationFigures) -> None:
    for name, help_text, key in _AUTHENTICATIONS:
        text.one(f"kafka_server_socket_server_metrics_{name}_total", "counter", help_text, counted[key])
    text.summary(
        "kafka_server_socket_server_metrics_reauthentication_latency",
        "Duration of re-authentications in milliseconds.",
        [({}, counted["succeeded_again"], counted["latency_ms"])],
    )


def _by_state(counts: list[GroupCountFigures], kind: str) -> list[tuple[Mapping[str, object], float]]:
    return [({"state": one["state"]}, one["count"]) for one in counts if one["type"] == kind]


def _groups(text: _Text, snapshot: Snapshot) -> None:
    counts, groups, rebalances = snapshot["group_counts"], snapshot["groups"], snapshot["rebalances"]
    text.add(
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
        "gauge",
        "Number of classic groups by state.",
        _by_state(counts, CLASSIC),
    )
    text.add(
        "kafka_server_group_coordinator_metrics_consumer_group_count",
        "gauge",
        "Number of groups of the consumer protocol by state.",
        _by_state(counts, CONSUMER),
    )
    text.add(
        "kafka_server_group_coordinator_metrics_group_count",
        "gauge",
        "Number of groups by protocol.",
        [
            ({"protocol": kind}, sum(one["count"] for one in counts if one["type"] == kind))
            for kind in (CLASSIC, CONSUMER)
        ],
    )
    text.one(
        "kafka_server_group_coordinator_metrics_group_completed_rebalance_count",
        "counter",
        "Rebalances of classic groups that ended with an assignment.",
        rebalances["classic_completed"],
    )
    text.one(
        "kafka_server_group_coordinator_metrics_consumer_group_rebalance_count",
        "counter",
        "Rebalances of consumer groups, counted when they start.",
        rebalances["consumer"],
    )
    text.add(
        "kafkacore_broker_group_lag",
        "gauge",
        "Lag of a group: number of records after its committed offsets.",
        [({"group": group["group_id"]}, group["lag"]) for group in groups if group["lag"] is not None],
    )


def _transactions(text: _Text, transactions: TransactionsFigures) -> None:
    text.one(
        "kafkacore_broker_transactional_ids",
        "gauge",
        "Number of transactional ids.",
        transactions["id_count"],
    )
    text.one(
        "kafkacore_broker_open_transactions",
        "gauge",
        "Number of open transactions.",
        transactions["open_count"],
    )
    text.one(
        "kafkacore_broker_oldest_open_transaction_seconds",
        "gauge",
        "Seconds since the oldest open transaction began; 0 if none is open.",
        transactions["oldest_open_ms"] / 1000,
    )
