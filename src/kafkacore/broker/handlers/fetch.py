"""Fetch: records from an offset on, waiting for ``min_bytes`` no longer than ``max_wait_ms``.

Versions 4 to 18, topics by name (to 12) and by id (from 13). Gaps: no incremental fetch sessions (every
answer has session id 0, with which clients go on sending full requests: KIP-227); no aborted transactions,
because transactions are not served; replicas other than consumers are served as consumers.
"""

from __future__ import annotations

from typing import Any

from kafkacore.broker.delayed_operation import DelayedFetch
from kafkacore.broker.replica_manager import FetchPartition, FetchPartitionResult
from kafkacore.broker.request import ANSWERED_LATER, ApiHandler, BrokerServices, Request
from kafkacore.errors import (
    FetchSessionIdNotFoundError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.structs import IsolationLevel, TopicPartition

FIRST_VERSION_BY_ID = 13
_OUT_OF_REACH = TopicPartition("", -1)

_PartitionData = FetchResponse.PartitionData
_TopicResponse = FetchResponse.FetchableTopicResponse


class _Fetch:
    """One Fetch on its way: what it asks, and how to answer it."""

    def __init__(self, request: Request, services: BrokerServices) -> None:
        message = request.message
        self.request = request
        self.services = services
        self.read_committed = message.isolation_level == IsolationLevel.READ_COMMITTED
        self.max_bytes = min(max(message.max_bytes, 0), services.config.fetch_max_bytes)
        self.min_bytes = min(message.min_bytes, self.max_bytes)
        self.partitions = _asked_partitions(message, request.version, services)

    def is_satisfied(self) -> bool:
        return self.services.replica_manager.has_bytes(
            self.partitions, self.request.node_id, self.min_bytes, self.max_bytes, self.read_committed
        )

    def response(self) -> Any:
        results = iter(
            self.services.replica_manager.read(
                self.partitions, self.request.node_id, self.max_bytes, self.read_committed
            )
        )
        return FetchResponse(
            responses=[
                _TopicResponse(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=[
                        _partition_data(asked.partition, next(results), self.read_committed)
                        for asked in topic.partitions
                    ],
                )
                for topic in self.request.message.topics
            ]
        )

    def answer(self) -> None:
        self.request.respond(self.response())


def handle(request: Request, services: BrokerServices) -> Any:
    message = request.message
    if message.session_id != 0:
        # No session was ever handed out, so this client talks of one from before a restart of another broker.
        return FetchResponse(error_code=FetchSessionIdNotFoundError.errno)
    fetch = _Fetch(request, services)
    if message.max_wait_ms <= 0 or message.min_bytes <= 0 or not fetch.partitions or fetch.is_satisfied():
        return fetch.response()
    request.operation = DelayedFetch(
        services.clock.monotonic_ms() + message.max_wait_ms, fetch.is_satisfied, fetch.answer
    )
    services.replica_manager.fetch_purgatory.try_complete_else_watch(
        request.operation, {partition.topic_partition for partition in fetch.partitions}
    )
    return ANSWERED_LATER


def _asked_partitions(message: Any, version: int, services: BrokerServices) -> list[FetchPartition]:
    asked = []
    for topic in message.topics:
        error, name = 0, topic.topic
        if version >= FIRST_VERSION_BY_ID:
            name = services.topics.name_of(topic.topic_id)
            error = 0 if name is not None else UnknownTopicIdError.errno
        elif services.topics.get(name) is None:
            error = UnknownTopicOrPartitionError.errno
        for partition in topic.partitions:
            asked.append(
                FetchPartition(
                    _OUT_OF_REACH if error else TopicPartition(name, partition.partition),
                    partition.fetch_offset,
                    partition.partition_max_bytes,
                    partition.current_leader_epoch,
                    error,
                )
            )
    return asked


def _partition_data(partition: int, result: FetchPartitionResult, read_committed: bool) -> Any:
    return _PartitionData(
        partition_index=partition,
        error_code=result.error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=[] if read_committed and not result.error else None,
        records=result.records,
    )


HANDLER = ApiHandler(FetchRequest, 4, 18, handle)
