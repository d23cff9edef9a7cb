"""Fetch: records from an offset on, waiting for ``min_bytes`` no longer than ``max_wait_ms``.

Versions 0 to 18, topics by name (to 12) and by id (from 13). Sessions from 7 on (KIP-227). From 12 on a
response has the diverging epoch for a client that sends its last fetched epoch (KIP-595), from 16 on the
current leader for a client that asks another node (KIP-951). The first batch comes whole, however small the
limits are (KIP-74); before version 3 what is larger than a partition's limit is cut there, as it was then.

Versions 0 to 3, which Kafka 4 has removed, get messages of format 0 (0 and 1) or 1, without headers and in
the codec they were written with; zstd is refused (KIP-110). Another thread converts them. Such an answer has
at most half a megabyte, and partitions have their turn by chance before version 3, whose clients do not see
to that.

Gaps: no aborted transactions, because transactions are not served; no preferred read replica, because every
node reads the same log; replicas are served as consumers. Old clients that need more than Fetch, ListOffsets
and Metadata are not served: Produce begins at version 3, groups at the versions that Kafka 4 has.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    FetchServices,
    Request,
)
from kafkacore.broker.purgatory.change_queue import Change
from kafkacore.broker.replica.current_leader import CurrentLeaders
from kafkacore.broker.replica.fetch_partition import (
    FetchParams,
    FetchPartition,
    FetchPartitionResult,
    PartitionResults,
)
from kafkacore.broker.replica.fetch_session import FetchAsk, PartitionKey
from kafkacore.broker.requests.authorization import allowed, allowed_on_cluster
from kafkacore.broker.requests.long_work import answer_after
from kafkacore.broker.requests.removed_versions import decode_fetch, encode_fetch
from kafkacore.errors import (
    CorruptRecordError,
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpochError,
    KafkaStorageError,
    NotLeaderForPartitionError,
    TopicAuthorizationFailedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
)
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.protocol.message import Records
from kafkacore.record._legacy_builder import down_convert_some
from kafkacore.record.compression import CODECS
from kafkacore.structs import ACLOperation, IsolationLevel, ResourceType

FIRST_VERSION_WITH_TIMESTAMPS = 2
FIRST_VERSION_WITH_MAX_BYTES = 3
FIRST_VERSION_WITH_BATCHES = 4
FIRST_VERSION_BY_ID = 13
#: By ``compression.type``; below it a client cannot read what the topic has.
_FIRST_VERSION_WITH_CODEC = {codec.name: codec.min_fetch_version for codec in CODECS.values()}
FIRST_VERSION_WITH_ALL_CODECS = max(_FIRST_VERSION_WITH_CODEC.values())
FIRST_VERSION_WITH_LEADER = 16
#: Clients that speak no later version do not know KAFKA_STORAGE_ERROR for one to retry.
LAST_VERSION_WITHOUT_STORAGE_ERROR = 5
_NOT_LOOKED_FOR = (
    UnknownTopicOrPartitionError.errno,
    UnknownTopicIdError.errno,
    TopicAuthorizationFailedError.errno,
)
_NOT_CONVERTED = (UnsupportedCompressionTypeError.errno,)
#: Of records that are converted for one answer, as they are in the log.
MAX_CONVERTED_BYTES = 512 * 1024
#: Of the same records, decompressed; the batch with which there are so many is the last one in the answer.
MAX_CONVERTED_PLAIN_BYTES = 4 * 1024 * 1024

_PartitionData = FetchResponse.PartitionData
_TopicResponse = FetchResponse.FetchableTopicResponse
_SESSION_ERRORS = (FetchSessionIdNotFoundError, FetchSessionTopicIdError, InvalidFetchSessionEpochError)


class _Fetch:
    """One Fetch on its way: whose session it is of, and how to answer it."""

    def __init__(self, request: Request, services: FetchServices) -> None:
        self.request = request
        self.services = services
        self.read_committed = request.message.isolation_level == IsolationLevel.READ_COMMITTED
        self.context = services.fetch_sessions.new_context(_ask(request, services))

    def params(self) -> FetchParams:
        message = self.request.message
        max_bytes = min(max(message.max_bytes, 0), self.services.config.fetch_max_bytes)
        if self.request.version < FIRST_VERSION_WITH_BATCHES:
            max_bytes = min(max_bytes, MAX_CONVERTED_BYTES)
        if self.request.quotas is not None:
            allowed = self.request.quotas.max_fetch_bytes(self.request)
            max_bytes = max_bytes if allowed is None else min(max_bytes, int(allowed))
        return FetchParams(
            self.request.node_id,
            message.max_wait_ms,
            min(message.min_bytes, max_bytes),
            max_bytes,
            self.read_committed,
            self._may_read(),
        )

    def _may_read(self) -> Callable[[str], bool] | None:
        """Whether a topic may be read; asked whenever it is, so that a session goes on with what it may."""
        request, services = self.request, self.services
        if services.authorizer is None:
            return None
        if _is_replica(request.message):
            return lambda _: allowed_on_cluster(request, services, ACLOperation.CLUSTER_ACTION)
        return lambda name: allowed(request, services, ACLOperation.READ, ResourceType.TOPIC, name)

    def respond(self, results: PartitionResults) -> None:
        quotas = self.request.quotas
        if quotas is not None:
            size = sum(len(result.records) for _, result in results)
            throttle_ms = quotas.fetch_throttle_ms(self.request, size)
            if throttle_ms:
                # The client sends the same request again after the pause; its session has not changed.
                self.request.respond(
                    FetchResponse(throttle_time_ms=throttle_ms, session_id=self.context.session_id)
                )
                return
        if self.request.version < FIRST_VERSION_WITH_BATCHES:
            answer_after(self.request, self.services, self._converted(results))
        else:
            self.request.respond(self._response(results))

    def _converted(self, results: PartitionResults) -> Change[FetchResponse]:
        """The response for a client that knows no format 2 (KIP-283)."""
        limit = self.services.config.max_decompressed_batch_bytes
        converted: PartitionResults = []
        plain_bytes = MAX_CONVERTED_PLAIN_BYTES
        for partition, result in results:
            if len(result.records) and not self._error(partition, result):
                conversion = _Conversion(self.request.version, partition, result.records, limit, plain_bytes)
                try:
                    yield conversion
                except (CorruptRecordError, UnsupportedCompressionTypeError) as error:
                    result = result._replace(error=error.errno)
                else:
                    result = result._replace(records=conversion.converted)
                    plain_bytes -= conversion.plain_bytes
            converted.append((partition, result))
        return self._response(converted)

    def _response(self, results: PartitionResults) -> FetchResponse:
        try:
            included = self.context.update_and_generate(results)
        except InvalidFetchSessionEpochError as error:
            return FetchResponse(error_code=error.errno, session_id=self.context.session_id)
        leaders = CurrentLeaders(self.services.cluster)
        responses: list[_TopicResponse] = []
        if any(result.error in _NOT_LOOKED_FOR for _, result in included):
            # As in Kafka, which does not look for them in the logs.
            included = sorted(included, key=lambda each: each[1].error in _NOT_LOOKED_FOR)
        for partition, result in included:
            if not responses or (responses[-1].topic_id, responses[-1].topic) != (
                partition.topic_id,
                partition.name,
            ):
                responses.append(_TopicResponse(topic=partition.name, topic_id=partition.topic_id))
            data = self._partition_data(partition, result)
            if data.error_code and self.request.version >= FIRST_VERSION_WITH_LEADER:
                leader = leaders.returned_with(data.error_code, partition.topic_partition)
                if leader is not None:
                    data.current_leader = FetchResponse.LeaderIdAndEpoch(
                        leader_id=leader[0], leader_epoch=leader[1]
                    )
            responses[-1].partitions.append(data)
        return FetchResponse(
            session_id=self.context.session_id,
            responses=responses,
            node_endpoints=[
                FetchResponse.NodeEndpoint(
                    node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
                )
                for node in leaders.endpoints(self.request.context.listener_name)
            ],
        )

    def _partition_data(self, partition: FetchPartition, result: FetchPartitionResult) -> _PartitionData:
        error = self._error(partition, result)
        if error:
            return _refusal(partition, error)
        data = _PartitionData(
            partition_index=partition.partition,
            high_watermark=result.high_watermark,
            last_stable_offset=result.last_stable_offset,
            log_start_offset=result.log_start_offset,
            aborted_transactions=[] if self.read_committed else None,
            records=result.records,
        )
        if result.diverging_epoch is not None:
            epoch, end_offset = result.diverging_epoch
            data.diverging_epoch = FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return data

    def _error(self, partition: FetchPartition, result: FetchPartitionResult) -> int:
        version = self.request.version
        if result.error == KafkaStorageError.errno and version <= LAST_VERSION_WITHOUT_STORAGE_ERROR:
            return NotLeaderForPartitionError.errno
        if version < FIRST_VERSION_WITH_ALL_CODECS and not result.error:
            topic = self.services.topics.get(partition.name)
            codec = "" if topic is None else topic.configs.get("compression.type", "")
            if version < _FIRST_VERSION_WITH_CODEC.get(codec, 0):
                return UnsupportedCompressionTypeError.errno
        return result.error


class _Conversion:
    """The records of one partition for an old client; called by another thread.

    Attributes
    ----------
    converted:
        The records for the client.
    plain_bytes:
        What the conversion has read, decompressed.
    """

    def __init__(
        self, version: int, partition: FetchPartition, records: Records, limit: int, max_plain_bytes: int
    ) -> None:
        self._version = version
        self._partition = partition
        self._records = records
        self._limit = limit
        self._max_plain_bytes = max_plain_bytes
        self.converted: Records = b""
        self.plain_bytes = 0

    def __call__(self) -> None:
        if self._max_plain_bytes <= 0:
            return
        magic = 1 if self._version >= FIRST_VERSION_WITH_TIMESTAMPS else 0
        self.converted, self.plain_bytes = down_convert_some(
            bytes(self._records), magic, self._partition.fetch_offset, self._limit, self._max_plain_bytes
        )
        if self._version < FIRST_VERSION_WITH_MAX_BYTES:
            # A message that does not fit is cut: by that the client knows that its limit is too small.
            self.converted = self.converted[: max(self._partition.max_bytes, 0)]


def _refusal(partition: FetchPartition, error: int) -> _PartitionData:
    return _PartitionData(
        partition_index=partition.partition,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=[] if error in _NOT_LOOKED_FOR or error in _NOT_CONVERTED else None,
        records=b"",
    )


def handle(request: Request[FetchRequest], services: FetchServices) -> FetchResponse | AnsweredLater:
    try:
        fetch = _Fetch(request, services)
    except _SESSION_ERRORS as error:
        return FetchResponse(error_code=error.errno)
    request.operation = services.replica_manager.fetch_messages(fetch.params(), fetch.context, fetch.respond)
    return ANSWERED_LATER


def _ask(request: Request, services: FetchServices) -> FetchAsk:
    message = request.message
    by_id = request.version >= FIRST_VERSION_BY_ID
    partitions: dict[PartitionKey, FetchPartition] = {}
    for topic in message.topics:
        if by_id:
            topic_key, topic_id, name = (
                topic.topic_id,
                topic.topic_id,
                services.topics.name_of(topic.topic_id),
            )
        else:
            topic_key, topic_id, name = topic.topic, ZERO_UUID, topic.topic
        for asked in topic.partitions:
            partitions[topic_key, asked.partition] = FetchPartition(
                name,
                topic_id,
                asked.partition,
                asked.fetch_offset,
                asked.partition_max_bytes,
                asked.current_leader_epoch,
                asked.last_fetched_epoch,
            )
    if request.version < FIRST_VERSION_WITH_MAX_BYTES and partitions:
        # Whoever comes first may get all there is room for.
        first = services.clock.random.randrange(len(partitions))
        items = list(partitions.items())
        partitions = dict(items[first:] + items[:first])
    return FetchAsk(
        request.node_id,
        message.session_id,
        message.session_epoch,
        partitions,
        [
            (topic.topic_id if by_id else topic.topic, partition)
            for topic in message.forgotten_topics_data
            for partition in topic.partitions
        ],
        by_id,
        _is_replica(message),
    )


def _is_replica(message: FetchRequest) -> bool:
    return max(message.replica_id, message.replica_state.replica_id) >= 0


HANDLER = ApiHandler(FetchRequest, 0, 18, handle, decode_fetch, encode_fetch)
