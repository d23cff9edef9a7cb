"""A look at the broker as Prometheus reads it: a snapshot in, text of the exposition format 0.0.4 out.

Names are those that Apache Kafka's JMX exporter commonly gives, so that dashboards find them. Of more topics
than are shown one by one the rest is a single one, whose name no topic can have. Does not know: HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from kafkacore.broker.server.metrics import ApiFigures
from kafkacore.broker.status.snapshot import AuthenticationFigures, GroupFigures, Snapshot, TopicFigures

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: Topics with figures of their own, and partitions likewise.
MAX_TOPICS: Final = 200
MAX_PARTITIONS: Final = 1000
_REST: Final = "(other topics)"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

#: Part of a name, help, key in the figures of a topic and of the broker.
_TRAFFIC: Final[tuple[tuple[str, str, Literal["bytes_in", "messages_in", "bytes_out"]], ...]] = (
    ("bytesin", "Bytes taken", "bytes_in"),
    ("messagesin", "Records taken", "messages_in"),
    ("bytesout", "Bytes given", "bytes_out"),
)
_OF_PARTITIONS: Final[
    tuple[tuple[str, str, Literal["size", "segments", "start", "end", "high_watermark"]], ...]
] = (
    ("kafka_log_log_size", "Size of a partition, bytes.", "size"),
    ("kafka_log_log_numlogsegments", "Segments of a partition.", "segments"),
    ("kafka_log_log_logstartoffset", "The first offset of a partition.", "start"),
    ("kafka_log_log_logendoffset", "The offset behind the last record of a partition.", "end"),
    ("kafkacore_broker_high_watermark", "Up to where consumers read.", "high_watermark"),
)
_TIMES: Final[tuple[tuple[str, Literal["total_ms", "local_ms", "remote_ms", "queue_ms"], str], ...]] = (
    ("totaltimems", "total_ms", "from its handling to its answer"),
    ("localtimems", "local_ms", "being handled"),
    ("remotetimems", "remote_ms", "waiting for records or for the disk"),
    ("requestqueuetimems", "queue_ms", "waiting for the thread"),
)
_AUTHENTICATIONS: Final[
    tuple[tuple[str, str, Literal["succeeded", "succeeded_again", "failed_again"]], ...]
] = (
    ("successful_authentication", "Connections that authenticated by TLS or SASL.", "succeeded"),
    ("successful_reauthentication", "Sessions that were renewed by SASL.", "succeeded_again"),
    ("failed_reauthentication", "Sessions that could not be renewed.", "failed_again"),
)


class _Text:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(
        self, name: str, kind: str, help_text: str, samples: Iterable[tuple[Mapping[str, object], float]]
    ) -> None:
        """One family; none if there are no samples."""
        samples = list(samples)
        if samples:
            self.lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
        for labels, value in samples:
            self._sample(name, labels, value)

    def summary(
        self, name: str, help_text: str, figures: Iterable[tuple[Mapping[str, object], int, float]]
    ) -> None:
        """How many there were, and the sum over them."""
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
    """The figures of a snapshot."""
    text = _Text()
    _process(text, snapshot)
    _topics(text, snapshot["topics"])
    _requests(text, snapshot["apis"])
    _waiting(text, snapshot)
    _groups(text, snapshot["groups"])
    return "\n".join(text.lines) + "\n"


def _process(text: _Text, snapshot: Snapshot) -> None:
    broker, totals, flush = snapshot["broker"], snapshot["totals"], snapshot["flush"]
    about = {"version": broker["version"], "cluster_id": broker["cluster_id"], "flush": broker["flush"]}
    text.add("kafkacore_broker_info", "gauge", "Which broker this is.", [(about, 1)])
    text.one("kafkacore_broker_uptime_seconds", "gauge", "Since its start.", broker["uptime_ms"] / 1000)
    text.one("process_resident_memory_bytes", "gauge", "Memory that it has.", broker["resident_bytes"])
    if broker["open_files"] >= 0:
        text.one("process_open_fds", "gauge", "Files that it has open.", broker["open_files"])
    text.one(
        "kafka_server_socket_server_metrics_connection_count", "gauge", "Connections.", totals["connections"]
    )
    text.one(
        "kafka_server_socket_server_metrics_connection_creation_total",
        "counter",
        "Connections ever accepted.",
        snapshot["accepted_count"],
    )
    text.one(
        "kafkacore_broker_connections_refused_total",
        "counter",
        "Connections refused for max.connections.",
        snapshot["refused_count"],
    )
    text.one(
        "kafka_server_socket_server_metrics_failed_authentication_total",
        "counter",
        "Connections that failed TLS or SASL.",
        snapshot["failed_authentication_count"],
    )
    _authentications(text, snapshot["authentications"])
    text.one(
        "kafka_server_socket_server_metrics_expired_connections_killed_count",
        "counter",
        "Connections closed because their session was over.",
        snapshot["expired_count"],
    )
    for name, help_text, key in _TRAFFIC:
        text.one(
            f"kafka_server_brokertopicmetrics_{name}_total",
            "counter",
            f"{help_text}, all topics.",
            totals[key],
        )
    text.one("kafka_controller_kafkacontroller_globaltopiccount", "gauge", "Topics.", totals["topics"])
    text.one(
        "kafka_controller_kafkacontroller_globalpartitioncount", "gauge", "Partitions.", totals["partitions"]
    )
    text.one(
        "kafka_server_replicamanager_offlinereplicacount",
        "gauge",
        "Partitions whose files are damaged or whose disk has failed.",
        totals["offline_partitions"],
    )
    text.one("kafkacore_broker_log_size_bytes", "gauge", "Size of all logs.", totals["size"])
    text.one("kafkacore_broker_log_segments", "gauge", "Segments of all logs.", totals["segments"])
    name = "kafka_log_logflushstats_logflushtimems"
    text.summary(
        name, "Milliseconds of syncs of logs to the disk.", [({}, flush["count"], flush["total_ms"])]
    )
    text.one(f"{name}_max", "gauge", "The longest of the last minute, ms.", flush["largest_ms"])


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
        "Requests answered.",
        [({"request": api["name"]}, api["requests"]) for api in apis],
    )
    text.add(
        f"{name}_errors_total",
        "counter",
        "Errors told, of partitions and topics one by one.",
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
        "The longest of the last minute, ms.",
        [({"request": api["name"]}, api["largest_ms"]) for api in apis],
    )


def _waiting(text: _Text, snapshot: Snapshot) -> None:
    text.add(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "gauge",
        "Requests that wait.",
        [({"delayedOperation": name}, count) for name, count in snapshot["waiting"].items()],
    )

    text.one(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "gauge",
        "Clients whose fetches are remembered.",
        snapshot["fetch_session_count"],
    )
    text.summary(
        "kafkacore_broker_throttle_milliseconds",
        "Milliseconds that connections were paused for, by quotas.",
        [({}, snapshot["throttled_count"], snapshot["throttled_ms"])],
    )


def _authentications(text: _Text, counted: AuthenticationFigures) -> None:
    for name, help_text, key in _AUTHENTICATIONS:
        text.one(f"kafka_server_socket_server_metrics_{name}_total", "counter", help_text, counted[key])
    text.summary(
        "kafka_server_socket_server_metrics_reauthentication_latency",
        "Milliseconds that renewing a session took.",
        [({}, counted["succeeded_again"], counted["latency_ms"])],
    )


def _groups(text: _Text, groups: list[GroupFigures]) -> None:
    states: dict[str, int] = {}
    for group in groups:
        states[group["state"]] = states.get(group["state"], 0) + 1
    text.add(
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
        "gauge",
        "Groups by state.",
        [({"state": state}, count) for state, count in states.items()],
    )
    text.add(
        "kafkacore_broker_group_lag",
        "gauge",
        "Records that a group has still to read.",
        [({"group": group["group_id"]}, group["lag"]) for group in groups if group["lag"] is not None],
    )
