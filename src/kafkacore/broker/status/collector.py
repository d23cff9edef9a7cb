"""A look at a running broker: everything of interest, as plain numbers and text.

The broker's parts in; one dictionary out, made of nothing but JSON. Logs are looked at from the thread that
asks, since any thread may read them; connections, groups and what waits belong to the network thread, which
is asked for them. Bounded: of more topics, clients or groups than are shown, the numbers are counted all the
same. Does not know: HTTP, pages.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kafkacore.broker.config import BrokerConfig
from kafkacore.broker.metrics import BrokerMetrics
from kafkacore.broker.status.groups import shown_groups
from kafkacore.broker.status.owned import short
from kafkacore.clock import Clock
from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    from kafkacore.broker.log import LogManager, TopicState, UnifiedLog
    from kafkacore.broker.socket_server import SocketServer

MOST_TOPICS: Final = 500
MOST_PARTITIONS: Final = 2000
MOST_CLIENTS: Final = 200
#: A look that is no older is given to the next who asks, too; one that took long, for longer, so that looking
#: never takes more than a part of the processor that requests are handled on.
FRESH_MS: Final = 200.0
FRESH_FOR_TIMES: Final = 10.0
#: How long the network thread may take to come to a look at what it owns.
LOOK_TIMEOUT_S: Final = 2.0
_BYTES_IN, _MESSAGES_IN, _BYTES_OUT = range(3)


class _Grown:
    """Sums of what topics have taken and given, which never become smaller when a topic is deleted."""

    def __init__(self) -> None:
        self.totals = [0, 0, 0]
        #: Topic → what it had taken at its last look; its records before that are those of its first.
        self._seen: dict[UUID, tuple[int, int, int]] = {}
        self._first_ends: dict[UUID, int] = {}

    def look(self, topics: Mapping[UUID, tuple[int, int, int]], is_first: bool) -> dict[UUID, list[int]]:
        """Topic → (bytes in, its ends' sum, bytes out) in; what each has taken since the first look out."""
        since_start = {}
        for topic_id, (bytes_in, ends, bytes_out) in topics.items():
            first_end = self._first_ends.setdefault(topic_id, ends if is_first else 0)
            now = (bytes_in, max(ends - first_end, 0), bytes_out)
            before = self._seen.get(topic_id, (0, 0, 0))
            for at in range(3):
                self.totals[at] += max(now[at] - before[at], 0)
            self._seen[topic_id] = now
            since_start[topic_id] = list(now)
        for topic_id in self._seen.keys() - topics.keys():
            del self._seen[topic_id], self._first_ends[topic_id]
        return since_start


class StatusCollector:
    """Looks when it is asked; any thread.

    Parameters
    ----------
    about:
        What does not change: cluster id, address and so on.
    own_of_thread:
        Run on the network thread: what only it may look at, as further entries of the snapshot.
    """

    def __init__(
        self,
        about: Mapping[str, Any],
        config: BrokerConfig,
        clock: Clock,
        log_manager: LogManager,
        server: SocketServer,
        metrics: BrokerMetrics,
        own_of_thread: Callable[[], dict[str, Any]],
    ) -> None:
        self._about = dict(about)
        self._config = config
        self._clock = clock
        self._log_manager = log_manager
        self._server = server
        self._metrics = metrics
        self._own_of_thread = own_of_thread
        self._began_ms = clock.monotonic_ms()
        self._version = ""
        self._grown = _Grown()
        self._lock = Lock()
        self._last: dict[str, Any] | None = None
        self._fresh_until_ms = 0.0
        # Before the first request: what is there now has not come through this broker's life.
        self._look_at_logs(is_first=True)

    def snapshot(self) -> dict[str, Any] | None:
        """Everything; ``None`` if the network thread does not answer."""
        with self._lock:
            now_ms = self._clock.monotonic_ms()
            if self._last is not None and now_ms < self._fresh_until_ms:
                return self._last
            owned = self._server.call(self._owned, LOOK_TIMEOUT_S)
            if owned is None:
                return None
            topics, totals = self._look_at_logs()
            owned["groups"] = shown_groups(owned.pop("groups_seen"), self._high_watermarks())
            apis = self._metrics.figures()
            totals["requests"] = sum(api["requests"] for api in apis)
            totals["errors"] = sum(sum(api["errors"].values()) for api in apis)
            totals["connections"] = owned["connection_count"]
            self._last = {
                "at_ms": now_ms,
                "broker": self._broker(now_ms),
                "totals": totals,
                "apis": apis,
                "flush": self._flush(now_ms),
                **topics,
                **owned,
            }
            took_ms = self._clock.monotonic_ms() - now_ms
            self._fresh_until_ms = now_ms + max(FRESH_MS, FRESH_FOR_TIMES * took_ms)
            return self._last

    def is_alive(self) -> bool:
        """Whether the network thread answers."""
        return self._server.call(lambda: True, LOOK_TIMEOUT_S) is True

    # ---- What the network thread owns -------------------------------------------------------------------

    def _owned(self) -> dict[str, Any]:
        contexts = self._server.contexts()
        clients = [
            {
                "address": context.connection_id.rpartition("-")[0],
                "client_id": short(context.client_id or ""),
                "principal": short(str(context.principal)),
                "listener": context.listener_name,
                "software": short(f"{context.software_name} {context.software_version}".strip()),
                "node": context.node_id,
            }
            for context in contexts[:MOST_CLIENTS]
        ]
        authentications = self._server.authentications
        return {
            "clients": clients,
            "connection_count": len(contexts),
            "accepted_count": self._server.accepted_count,
            "refused_count": self._server.refused_count,
            "failed_authentication_count": self._server.failed_authentication_count,
            "authentications": {
                "succeeded": authentications.succeeded.count,
                "succeeded_again": authentications.succeeded_again.count,
                "failed_again": authentications.failed_again.count,
                "latency_ms": authentications.latency.total,
            },
            "expired_count": self._server.expired_count,
            "throttled_count": self._server.throttled_count,
            "throttled_ms": self._server.throttled_ms,
            **self._own_of_thread(),
        }

    # ---- What any thread may look at ---------------------------------------------------------------------

    def _look_at_logs(self, *, is_first: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
        by_name, logs = self._log_manager.topics(), self._log_manager.logs()
        offline = self._log_manager.offline
        topics = [self._topic(topic, logs, offline) for topic in by_name.values()]
        grown = self._grown.look({topic["key"]: topic.pop("counted") for topic in topics}, is_first)
        for topic in topics:
            since_start = grown[topic.pop("key")]
            topic["bytes_in"], topic["messages_in"], topic["bytes_out"] = since_start
        topics.sort(key=lambda topic: (topic["is_internal"], topic["name"]))
        totals = {
            "topics": len(topics),
            "partitions": sum(topic["partition_count"] for topic in topics),
            "offline_partitions": sum(topic["offline_count"] for topic in topics),
            "size": sum(topic["size"] for topic in topics),
            "segments": sum(topic["segments"] for topic in topics),
            "bytes_in": self._grown.totals[_BYTES_IN],
            "messages_in": self._grown.totals[_MESSAGES_IN],
            "bytes_out": self._grown.totals[_BYTES_OUT],
        }
        room = MOST_PARTITIONS
        for topic in topics[:MOST_TOPICS]:
            topic["partitions"] = topic["partitions"][: max(room, 0)]
            room -= len(topic["partitions"])
        return {"topics": topics[:MOST_TOPICS]}, totals

    @staticmethod
    def _topic(
        topic: TopicState, logs: Mapping[TopicPartition, UnifiedLog], offline: Mapping[TopicPartition, str]
    ) -> dict[str, Any]:
        partitions: list[dict[str, Any]] = []
        bytes_in = ends = bytes_out = 0
        for number in range(topic.partition_count):
            topic_partition = TopicPartition(topic.name, number)
            log = logs.get(topic_partition)
            if log is None:
                why = offline.get(topic_partition)
                if why is not None:
                    partitions.append({"partition": number, "offline": why})
                continue
            bytes_in += log.appended_bytes
            ends += log.log_end_offset
            bytes_out += log.fetched_bytes
            partitions.append(
                {
                    "partition": number,
                    "start": log.log_start_offset,
                    "end": log.log_end_offset,
                    "high_watermark": log.high_watermark,
                    "size": log.size_in_bytes,
                    "segments": log.segment_count,
                    "epoch": log.leader_epoch,
                    "offline": log.failure,
                }
            )
        return {
            "key": topic.topic_id,
            "counted": (bytes_in, ends, bytes_out),
            "name": topic.name,
            "is_internal": topic.name.startswith("__"),
            "partition_count": topic.partition_count,
            "offline_count": sum(partition["offline"] is not None for partition in partitions),
            "records": sum(each.get("high_watermark", 0) - each.get("start", 0) for each in partitions),
            "size": sum(each.get("size", 0) for each in partitions),
            "segments": sum(each.get("segments", 0) for each in partitions),
            "partitions": partitions,
        }

    def _high_watermarks(self) -> dict[TopicPartition, int]:
        return {partition: log.high_watermark for partition, log in self._log_manager.logs().items()}

    def _flush(self, now_ms: float) -> dict[str, Any]:
        times = self._log_manager.flush_times
        return {
            "count": times.count,
            "total_ms": times.total,
            "average_ms": times.average(now_ms),
            "largest_ms": times.largest(now_ms) if times.occurrence_rate(now_ms) else 0.0,
        }

    def _broker(self, now_ms: float) -> dict[str, Any]:
        self._version = self._version or _version()
        return {
            **self._about,
            "version": self._version,
            "python": ".".join(map(str, sys.version_info[:3])),
            "pid": os.getpid(),
            "flush": self._config.flush,
            "data_dir": str(self._config.data_dir),
            "time_ms": self._clock.wall_ms(),
            "uptime_ms": round(now_ms - self._began_ms),
            "resident_bytes": resident_bytes(),
            "open_files": open_files(),
        }


def _version() -> str:
    # Takes as long as everything else at a start, and is only wanted once somebody looks.
    from importlib import metadata

    try:
        return metadata.version("kafkacore")
    except metadata.PackageNotFoundError:
        return "unknown"


def resident_bytes() -> int:
    """Memory that this process has now; where the system does not say, the most that it has had."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return pages * resource.getpagesize()


def open_files() -> int:
    """Descriptors that this process has open; -1 where the system does not say."""
    for place in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(place))
        except OSError:
            continue
    return -1
