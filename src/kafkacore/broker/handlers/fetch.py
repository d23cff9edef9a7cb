"""Fetch: return records from given offsets, waiting up to ``max_wait_ms`` for ``min_bytes``.

Versions 0 to 18, with topic names up to version 12 and topic IDs from version 13. Fetch sessions are
supported from version 7 (KIP-227), diverging epochs from version 12 (KIP-595), and the current leader in
errors from version 16 (KIP-951). The first batch is returned whole even if it exceeds the limits (KIP-74).
Before version 3, the batch is cut at the partition's limit, as in Kafka at that time.

Kafka 4 has removed versions 0 to 3. Here, these versions return messages of format 0 (versions 0 and 1) or 1
(versions 2 and 3), without headers, in the codec of the batch; zstd is rejected (KIP-110). Another thread
converts the records. Such a response has at most 512 KiB. Before version 3 the response starts at a random
partition, because clients of these versions do not rotate the partitions themselves.

From version 4 on, a read-committed fetch gets the aborted transactions among the returned records, and no
records after the last stable offset. The preferred read replica is never set, because all nodes read the same
log. Requests of replicas are served like those of consumers. Old clients can use only Fetch, ListOffsets and
Metadata: Produce starts at version 3, and group APIs at the versions of Kafka 4.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.handlers.removed_versions import decode_fetch, encode_fetch
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    FetchServices,
    Request,
)
from kafkacore.broker.log.transaction_index import AbortedTransaction
from kafkacore.broker.purgatory.change_queue import Change
from kafkacore.broker.replica._fetch_call import FetchAnswer, FetchCall, is_plain
from kafkacore.broker.replica.current_leader import CurrentLeaders
from kafkacore.broker.replica.fetch_partition import (
    FetchParams,
    FetchPartition,
    FetchPartitionResult,
    PartitionResults,
)
from kafkacore.broker.replica.fetch_session import FetchAsk
from kafkacore.broker.requests.authorization import allowed, allowed_on_cluster
from kafkacore.broker.requests.long_work import answer_after
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
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.protocol.message import Records
from kafkacore.record._legacy_builder import down_convert_some
from kafkacore.record.compression import CODECS
from kafkacore.structs import IsolationLevel

FIRST_VERSION_WITH_TIMESTAMPS = 2
FIRST_VERSION_WITH_MAX_BYTES = 3
FIRST_VERSION_WITH_BATCHES = 4
FIRST_VERSION_BY_ID = 13
#: Minimum version by ``compression.type``. Clients with a lower version cannot decompress the topic's
#: records.
_FIRST_VERSION_WITH_CODEC = {codec.name: codec.min_fetch_version for codec in CODECS.values()}
FIRST_VERSION_WITH_ALL_CODECS = max(_FIRST_VERSION_WITH_CODEC.values())
FIRST_VERSION_WITH_LEADER = 16
#: Clients up to this version do not treat KAFKA_STORAGE_ERROR as retriable.
LAST_VERSION_WITHOUT_STORAGE_ERROR = 5
_LOOKUP_ERRORS = (
    UnknownTopicOrPartitionError.errno,
    UnknownTopicIdError.errno,
    TopicAuthorizationFailedError.errno,
)
_CONVERSION_ERRORS = (UnsupportedCompressionTypeError.errno,)
#: Maximum bytes of log records that are converted for one response.
MAX_CONVERTED_BYTES = 512 * 1024
#: Maximum bytes of the records that are converted for one response, after decompression. The batch that
#: reaches the limit is the last batch of the response.
MAX_CONVERTED_PLAIN_BYTES = 4 * 1024 * 1024

_PartitionData = FetchResponse.PartitionData
_TopicResponse = FetchResponse.FetchableTopicResponse
_SESSION_ERRORS = (FetchSessionIdNotFoundError, FetchSessionTopicIdError, InvalidFetchSessionEpochError)


class _Fetch:
    """A Fetch request in progress and its session."""

    def __init__(self, request: Request[FetchCall], services: FetchServices) -> None:
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
        """Return a function that checks read access to a topic, or ``None`` if clients may read every topic.

        The check runs at each read, so that a session continues with the topics that remain allowed.
        """
        request, services = self.request, self.services
        if services.authorizer is None:
            return None
        if request.message.replica_id >= 0:
            return lambda _: allowed_on_cluster(request, services, ACLOperation.CLUSTER_ACTION)
        return lambda name: allowed(request, services, ACLOperation.READ, ResourceType.TOPIC, name)

    def respond(self, results: PartitionResults) -> None:
        quotas = self.request.quotas
        if quotas is not None:
            size = sum(len(result.records) for _, result in results)
            throttle_ms = quotas.fetch_throttle_ms(self.request, size)
            if throttle_ms:
                # Return no records. The client repeats the request after the throttle time, and its fetch
                # session has not changed.
                self.request.respond(
                    FetchResponse(throttle_time_ms=throttle_ms, session_id=self.context.session_id)
                )
                return
        if self.request.version < FIRST_VERSION_WITH_BATCHES:
            answer_after(self.request, self.services, self._converted(results))
        else:
            self.request.respond(self._response(results))

    def _converted(self, results: PartitionResults) -> Change[FetchResponse | FetchAnswer]:
        """Return the response for a client that does not support record format 2 (KIP-283)."""
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

    def _response(self, results: PartitionResults) -> FetchResponse | FetchAnswer:
        try:
            included = self.context.update_and_generate(results)
        except InvalidFetchSessionEpochError as error:
            return FetchResponse(error_code=error.errno, session_id=self.context.session_id)
        if self.request.version >= FIRST_VERSION_WITH_ALL_CODECS and is_plain(included):
            return FetchAnswer(self.context.session_id, included, self.read_committed)
        leaders = CurrentLeaders(self.services.cluster)
        responses: list[_TopicResponse] = []
        if any(result.error in _LOOKUP_ERRORS for _, result in included):
            # As in Kafka, partitions that are unknown or that the client may not read come last.
            included = sorted(included, key=lambda each: each[1].error in _LOOKUP_ERRORS)
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
            aborted_transactions=(
                [_aborted(one) for one in result.aborted_transactions] if self.read_committed else None
            ),
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
    """The conversion of one partition's records for an old client; it runs on another thread.

    Attributes
    ----------
    converted:
        The converted records.
    plain_bytes:
        Bytes of the converted batches after decompression.
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
            # A truncated message tells the client that its limit is too small.
            self.converted = self.converted[: max(self._partition.max_bytes, 0)]


def _aborted(one: AbortedTransaction) -> FetchResponse.AbortedTransaction:
    return FetchResponse.AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)


def _refusal(partition: FetchPartition, error: int) -> _PartitionData:
    return _PartitionData(
        partition_index=partition.partition,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=[] if error in _LOOKUP_ERRORS or error in _CONVERSION_ERRORS else None,
        records=b"",
    )


def handle(request: Request[FetchCall], services: FetchServices) -> FetchResponse | AnsweredLater:
    try:
        fetch = _Fetch(request, services)
    except _SESSION_ERRORS as error:
        return FetchResponse(error_code=error.errno)
    request.operation = services.replica_manager.fetch_messages(fetch.params(), fetch.context, fetch.respond)
    return ANSWERED_LATER


def _ask(request: Request[FetchCall], services: FetchServices) -> FetchAsk:
    message = request.message
    partitions = message.asked(services.topics)
    if request.version < FIRST_VERSION_WITH_MAX_BYTES and partitions:
        # Start at a random partition, because the first partitions can use up the response's limit.
        first = services.clock.random.randrange(len(partitions))
        items = list(partitions.items())
        partitions = dict(items[first:] + items[:first])
    return FetchAsk(
        request.node_id,
        message.session_id,
        message.session_epoch,
        partitions,
        message.forgotten(),
        request.version >= FIRST_VERSION_BY_ID,
        message.replica_id >= 0,
    )


HANDLER = ApiHandler(FetchRequest, 0, 18, handle, decode_fetch, encode_fetch)
