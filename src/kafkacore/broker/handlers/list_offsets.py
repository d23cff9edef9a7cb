"""ListOffsets: return the offset for a timestamp, or for a special timestamp such as "latest".

Versions 0 to 11. Version 0, which Kafka 4 has removed, returns one offset by the same rules as the later
versions. In Kafka, version 0 returned the start offsets of segments. Tiered storage is not supported, so
"latest tiered" (-5) and "earliest pending upload" (-6) are unknown, and "earliest local" (-4) is the earliest
offset.
"""

from __future__ import annotations

from functools import partial

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.handlers.removed_versions import decode_list_offsets, encode_list_offsets
from kafkacore.broker.handlers.services import AnsweredLater, ApiHandler, Request, TopicServices
from kafkacore.broker.log import TimestampAndOffset, UnifiedLog
from kafkacore.broker.purgatory.change_queue import Change, run_here
from kafkacore.broker.requests.authorization import require
from kafkacore.broker.requests.long_work import answer_after
from kafkacore.errors import InvalidRequestError, UnsupportedVersionError
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkacore.structs import IsolationLevel, OffsetSpec, TopicPartition, partition_name

EARLIEST_PENDING_UPLOAD = -6
UNKNOWN = -1
#: Replica ID of Kafka's tools that compare the replicas of a partition. These tools may also ask a follower.
DEBUGGING_REPLICA_ID = -2
FIRST_VERSION_WITH_EPOCH = 4

#: Special timestamp → first version that supports it.
_FIRST_VERSION = {
    OffsetSpec.LATEST: 0,
    OffsetSpec.EARLIEST: 0,
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

_Partition = ListOffsetsResponse.ListOffsetsPartitionResponse
_Topic = ListOffsetsResponse.ListOffsetsTopicResponse


def handle(
    request: Request[ListOffsetsRequest], services: TopicServices
) -> ListOffsetsResponse | AnsweredLater:
    seen: set[TopicPartition] = set()
    repeated: set[TopicPartition] = set()
    for topic in request.message.topics:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            (repeated if topic_partition in seen else seen).add(topic_partition)
    answers = _answers(request, repeated, services)
    topics = request.message.topics
    asks_by_time = any(
        _is_searched(requested.timestamp) for topic in topics for requested in topic.partitions
    )
    return answer_after(request, services, answers) if asks_by_time else run_here(answers)


def _answers(
    request: Request[ListOffsetsRequest], repeated: set[TopicPartition], services: TopicServices
) -> Change[ListOffsetsResponse]:
    response = ListOffsetsResponse(topics=[])
    for topic in request.message.topics:
        answered = _Topic(name=topic.name, partitions=[])
        for requested in topic.partitions:
            answered.partitions.append(
                (yield from _answer(topic.name, requested, request, repeated, services))
            )
        response.topics.append(answered)
    return response


def _answer(
    name: str,
    requested: ListOffsetsRequest.ListOffsetsPartition,
    request: Request[ListOffsetsRequest],
    repeated: set[TopicPartition],
    services: TopicServices,
) -> Change[_Partition]:
    topic_partition, version = TopicPartition(name, requested.partition_index), request.version
    read_committed = request.message.isolation_level == IsolationLevel.READ_COMMITTED
    try:
        require(request, services, ACLOperation.DESCRIBE, ResourceType.TOPIC, name)
        if topic_partition in repeated:
            raise InvalidRequestError(f"{partition_name(topic_partition)} occurs twice in the request")
        if requested.timestamp < 0 and version < _FIRST_VERSION.get(requested.timestamp, version + 1):
            raise UnsupportedVersionError(
                f"ListOffsets v{version} does not support the timestamp {requested.timestamp}"
            )
        log = _asked_log(topic_partition, requested.current_leader_epoch, request, services)
        found: list[TimestampAndOffset] = []
        search = partial(_search, log, requested.timestamp, read_committed, found)
        if _is_searched(requested.timestamp):
            yield search
        else:
            search()
        timestamp, offset, epoch = found[0]
    except Exception as error:  # noqa: BLE001 - fails this partition only; error_code logs bugs
        return _Partition(partition_index=requested.partition_index, error_code=error_code(error))
    return _Partition(
        partition_index=requested.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch if version >= FIRST_VERSION_WITH_EPOCH else UNKNOWN,
    )


def _asked_log(
    topic_partition: TopicPartition,
    epoch: int,
    request: Request[ListOffsetsRequest],
    services: TopicServices,
) -> UnifiedLog:
    """Return the log of a partition. Only a debugging tool may ask a node that is not the leader."""
    if request.message.replica_id == DEBUGGING_REPLICA_ID:
        return services.cluster.hosted_log(topic_partition, request.node_id)
    return services.cluster.led_log(topic_partition, request.node_id, epoch)


def _is_searched(timestamp: int) -> bool:
    """Whether the search must decompress batches, which can take too long for the network thread."""
    return timestamp >= 0 or timestamp == OffsetSpec.MAX_TIMESTAMP


def _search(log: UnifiedLog, timestamp: int, read_committed: bool, found: list[TimestampAndOffset]) -> None:
    found.append(offset_of(log, timestamp, read_committed))


_NOTHING = TimestampAndOffset(UNKNOWN, UNKNOWN, UNKNOWN)


def offset_of(log: UnifiedLog, timestamp: int, read_committed: bool) -> TimestampAndOffset:
    """Return the first record at or after ``timestamp``, or the offset that a special timestamp stands for.

    All fields are -1 if there is no such record, or if consumers cannot read the record yet, as in Kafka's
    ``fetchOffsetForTimestamp``.
    """
    limit = log.last_stable_offset if read_committed else log.high_watermark
    if timestamp == OffsetSpec.LATEST:
        return TimestampAndOffset(UNKNOWN, limit, log.leader_epoch)
    if timestamp in (OffsetSpec.EARLIEST, OffsetSpec.EARLIEST_LOCAL):
        return TimestampAndOffset(UNKNOWN, log.log_start_offset, log.epoch_at(log.log_start_offset))
    if timestamp in (OffsetSpec.LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _NOTHING
    if timestamp == OffsetSpec.MAX_TIMESTAMP:
        found = log.offset_of_max_timestamp()
    else:
        found = log.offset_for_timestamp(timestamp)
    return _NOTHING if found is None or found.offset >= limit else found


HANDLER = ApiHandler(ListOffsetsRequest, 0, 11, handle, decode_list_offsets, encode_list_offsets)
