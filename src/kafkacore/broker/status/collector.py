"""Snapshots of a running broker, as plain numbers and text.

The calling thread reads the logs, which any thread may do. Connections, groups and delayed requests belong to
the network thread, so that thread reads them. A snapshot has a limited number of topics, clients and groups,
but its totals include all of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.server.metrics import ApiFigures, BrokerMetrics
from kafkacore.broker.status.groups import shown_counts, shown_groups, shown_rebalances
from kafkacore.broker.status.history import TOTALS, Counts, History, rate, rates
from kafkacore.broker.status.network_thread_state import NetworkThreadState, short
from kafkacore.broker.status.snapshot import (
    AboutBroker,
    AuthenticationFigures,
    BrokerFigures,
    ClientFigures,
    FlushFigures,
    PartitionFigures,
    Snapshot,
    TopicFigures,
    Totals,
    TransactionsFigures,
)
from kafkacore.clock import Clock
from kafkacore.installed_version import installed_version
from kafkacore.process_statistics import open_files, resident_bytes
from kafkacore.structs import TopicPartition
from kafkacore.wire import Uuid

if TYPE_CHECKING:
    from kafkacore.broker.log import LogManager, TopicState, UnifiedLog
    from kafkacore.broker.server.socket_server import SocketServer
    from kafkacore.broker.transaction.transaction_coordinator import TransactionFigures

MAX_TOPICS: Final = 500
MAX_PARTITIONS: Final = 2000
MAX_CLIENTS: Final = 200
#: A snapshot is reused for this many milliseconds, and at least for FRESH_FOR_TIMES times the time that it
#: took to create it. Therefore snapshots use at most a tenth of the processor.
FRESH_MS: Final = 200.0
FRESH_FOR_TIMES: Final = 10.0
#: Maximum time to wait for the network thread, in seconds.
LOOK_TIMEOUT_S: Final = 2.0
#: Pause before retrying a sample that was due while a snapshot was taken.
RETRY_MS: Final = 100.0
#: Counts of a new topic.
NOTHING: Final = (0, 0, 0)


class _Grown:
    """Sums of the counts of all topics. The sums do not decrease when a topic is deleted."""

    def __init__(self) -> None:
        self.totals = [0, 0, 0]
        #: Counts of each topic at the last call of :meth:`look`, and the sum of the topic's end offsets at
        #: the first call.
        self._seen: dict[Uuid, tuple[int, int, int]] = {}
        self._first_ends: dict[Uuid, int] = {}

    def look(self, topics: Mapping[Uuid, tuple[int, int, int]], is_first: bool) -> dict[Uuid, list[int]]:
        """Return the counts of each topic since the first call.

        Parameters
        ----------
        topics:
            Bytes in, sum of the end offsets, and bytes out of each topic, by topic id.
        """
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


class _NetworkThreadState(NamedTuple):
    """State that only the network thread may read."""

    clients: list[ClientFigures]
    connection_count: int
    state: NetworkThreadState


class StatusCollector:
    """Takes snapshots on request, on any thread.

    Parameters
    ----------
    about:
        Facts that do not change: cluster id, address and so on.
    own_of_thread:
        Function that reads the state of the network thread. It is called on that thread.
    """

    def __init__(
        self,
        about: AboutBroker,
        config: BrokerConfig,
        clock: Clock,
        log_manager: LogManager,
        server: SocketServer,
        metrics: BrokerMetrics,
        own_of_thread: Callable[[], NetworkThreadState],
    ) -> None:
        self._about = about
        self._config = config
        self._clock = clock
        self._log_manager = log_manager
        self._server = server
        self._metrics = metrics
        self._own_of_thread = own_of_thread
        self._began_ms = clock.monotonic_ms()
        self._grown = _Grown()
        self._lock = Lock()
        self._last: Snapshot | None = None
        self._fresh_until_ms = 0.0
        # Take the first counts before clients send requests, so that records from earlier runs are not
        # counted.
        self._history = History(self._counts(is_first=True))

    def snapshot(self) -> Snapshot | None:
        """Return a snapshot, or ``None`` if the network thread does not respond."""
        with self._lock:
            now_ms = self._clock.monotonic_ms()
            if self._last is not None and now_ms < self._fresh_until_ms:
                return self._last
            network = self._server.call(self._network_thread_state, LOOK_TIMEOUT_S)
            if network is None:
                return None
            counts = self._counts()
            base = self._history.base(now_ms)
            span_ms = counts.at_ms - base.at_ms
            topics = self._topics(counts, base)
            apis = self._metrics.figures()
            for api in apis:
                name = api["name"]
                api["rate"] = rate(counts.apis.get(name, 0), base.apis.get(name, 0), span_ms)
            totals = _totals(topics, counts, apis, network.connection_count)
            self._last = {
                "rates": rates(TOTALS, counts.totals, base.totals, span_ms),
                "history": self._history.shown(),
                "at_ms": now_ms,
                "broker": self._broker(now_ms),
                "totals": totals,
                "apis": apis,
                "flush": self._flush(now_ms),
                "topics": _bounded(topics),
                "clients": network.clients,
                "connection_count": network.connection_count,
                "accepted_count": self._server.accepted_count,
                "refused_count": self._server.refused_count,
                "failed_authentication_count": self._server.failed_authentication_count,
                "authentications": self._authentications(),
                "expired_count": self._server.expired_count,
                "throttled_count": self._server.throttled_count,
                "throttled_ms": self._server.throttled_ms,
                "waiting": network.state.waiting,
                "group_count": sum(network.state.group_figures.counts.values()),
                "group_counts": shown_counts(network.state.group_figures),
                "rebalances": shown_rebalances(network.state.group_figures),
                "fetch_session_count": network.state.fetch_session_count,
                "transactions": self._transactions(network.state.transactions),
                "groups": shown_groups(network.state.groups, self._high_watermarks()),
            }
            took_ms = self._clock.monotonic_ms() - now_ms
            self._fresh_until_ms = now_ms + max(FRESH_MS, FRESH_FOR_TIMES * took_ms)
            return self._last

    def sample(self) -> float:
        """Add a sample to the history if a sample is due.

        Return the monotonic time in milliseconds at which the next sample is due.

        The method never blocks. If a snapshot is being taken, the sample is postponed to the next call.
        """
        now_ms = self._clock.monotonic_ms()
        if not self._lock.acquire(blocking=False):
            return now_ms + RETRY_MS
        try:
            if now_ms >= self._history.due_ms:
                self._history.add(self._counts(), self._clock.monotonic_ms() - now_ms)
            return self._history.due_ms
        finally:
            self._lock.release()

    def is_alive(self) -> bool:
        """Return whether the network thread responds."""
        return self._server.call(lambda: True, LOOK_TIMEOUT_S) is True

    # ---- State of the network thread --------------------------------------------------------------------

    def _network_thread_state(self) -> _NetworkThreadState:
        contexts = self._server.contexts()
        clients: list[ClientFigures] = [
            {
                "address": context.connection_id.rpartition("-")[0],
                "client_id": short(context.client_id or ""),
                "principal": short(str(context.principal)),
                "listener": context.listener_name,
                "software": short(f"{context.software_name} {context.software_version}".strip()),
                "node": context.node_id,
            }
            for context in contexts[:MAX_CLIENTS]
        ]
        return _NetworkThreadState(clients, len(contexts), self._own_of_thread())

    # ---- State that any thread may read ------------------------------------------------------------------

    def _counts(self, *, is_first: bool = False) -> Counts:
        """Return the counts so far, from a few attributes of each log."""
        find = self._log_manager.find
        counted: dict[Uuid, tuple[int, int, int]] = {}
        for topic in self._log_manager.topics().values():
            bytes_in = ends = bytes_out = 0
            for number in range(topic.partition_count):
                log = find(TopicPartition(topic.name, number))
                if log is not None:
                    bytes_in += log.appended_bytes
                    ends += log.log_end_offset
                    bytes_out += log.fetched_bytes
            counted[topic.topic_id] = (bytes_in, ends, bytes_out)
        since_start = self._grown.look(counted, is_first)
        apis = {stats.name: stats.total.count for stats in self._metrics.apis.values()}
        totals = (*self._grown.totals, sum(apis.values()))
        return Counts(self._clock.monotonic_ms(), totals, since_start, apis)

    def _topics(self, counts: Counts, base: Counts) -> list[TopicFigures]:
        by_name, logs = self._log_manager.topics(), self._log_manager.logs()
        offline, span_ms = self._log_manager.offline, counts.at_ms - base.at_ms
        topics = []
        for topic in by_name.values():
            # A topic that was just created has no counts yet.
            since_start = counts.topics.get(topic.topic_id, NOTHING)
            before = base.topics.get(topic.topic_id, NOTHING)
            topics.append(_topic(topic, _partitions(topic, logs, offline), since_start, before, span_ms))
        topics.sort(key=lambda topic: (topic["is_internal"], topic["name"]))
        return topics

    def _high_watermarks(self) -> dict[TopicPartition, int]:
        return {partition: log.high_watermark for partition, log in self._log_manager.logs().items()}

    def _transactions(self, seen: TransactionFigures) -> TransactionsFigures:
        oldest_ms = seen.oldest_start_ms
        return {
            "id_count": seen.id_count,
            "open_count": seen.open_count,
            "oldest_open_ms": 0 if oldest_ms is None else max(self._clock.wall_ms() - oldest_ms, 0),
        }

    def _authentications(self) -> AuthenticationFigures:
        counted = self._server.authentications
        return {
            "succeeded": counted.succeeded.count,
            "succeeded_again": counted.succeeded_again.count,
            "failed_again": counted.failed_again.count,
            "latency_ms": counted.latency.total,
        }

    def _flush(self, now_ms: float) -> FlushFigures:
        times = self._log_manager.flush_times
        return {
            "count": times.count,
            "total_ms": times.total,
            "average_ms": times.average(now_ms),
            "largest_ms": times.largest(now_ms) if times.occurrence_rate(now_ms) else 0.0,
        }

    def _broker(self, now_ms: float) -> BrokerFigures:
        return {
            **self._about,
            "version": installed_version(),
            "python": ".".join(map(str, sys.version_info[:3])),
            "pid": os.getpid(),
            "flush": self._config.flush,
            "data_dir": str(self._config.data_dir),
            "time_ms": self._clock.wall_ms(),
            "uptime_ms": round(now_ms - self._began_ms),
            "resident_bytes": resident_bytes(),
            "open_files": open_files(),
        }


def _partitions(
    topic: TopicState, logs: Mapping[TopicPartition, UnifiedLog], offline: Mapping[TopicPartition, str]
) -> list[PartitionFigures]:
    partitions: list[PartitionFigures] = []
    for number in range(topic.partition_count):
        topic_partition = TopicPartition(topic.name, number)
        log = logs.get(topic_partition)
        if log is None:
            why = offline.get(topic_partition)
            if why is not None:
                partitions.append({"partition": number, "offline": why})
            continue
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
    return partitions


def _topic(
    topic: TopicState,
    partitions: list[PartitionFigures],
    since_start: Sequence[int],
    before: Sequence[int],
    span_ms: float,
) -> TopicFigures:
    bytes_in, messages_in, bytes_out = since_start
    return {
        "name": topic.name,
        "is_internal": topic.name.startswith("__"),
        "partition_count": topic.partition_count,
        "offline_count": sum(partition["offline"] is not None for partition in partitions),
        "records": sum(each.get("high_watermark", 0) - each.get("start", 0) for each in partitions),
        "size": sum(each.get("size", 0) for each in partitions),
        "segments": sum(each.get("segments", 0) for each in partitions),
        "partitions": partitions,
        "bytes_in": bytes_in,
        "messages_in": messages_in,
        "bytes_out": bytes_out,
        "rates": rates(TOTALS[:3], since_start, before, span_ms),
    }


def _totals(
    topics: Sequence[TopicFigures], counts: Counts, apis: Iterable[ApiFigures], connection_count: int
) -> Totals:
    bytes_in, messages_in, bytes_out, requests = counts.totals
    return {
        "topics": len(topics),
        "partitions": sum(topic["partition_count"] for topic in topics),
        "offline_partitions": sum(topic["offline_count"] for topic in topics),
        "size": sum(topic["size"] for topic in topics),
        "segments": sum(topic["segments"] for topic in topics),
        "bytes_in": bytes_in,
        "messages_in": messages_in,
        "bytes_out": bytes_out,
        "requests": requests,
        "errors": sum(sum(api["errors"].values()) for api in apis),
        "connections": connection_count,
    }


def _bounded(topics: Sequence[TopicFigures]) -> list[TopicFigures]:
    """Return the first ``MAX_TOPICS`` topics, with at most ``MAX_PARTITIONS`` partitions in total."""
    left = MAX_PARTITIONS
    shown = list(topics[:MAX_TOPICS])
    for topic in shown:
        topic["partitions"] = topic["partitions"][: max(left, 0)]
        left -= len(topic["partitions"])
    return shown
