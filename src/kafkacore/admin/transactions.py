"""Transactions and producers: list, describe, abort and fence them (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypedDict

from kafkacore.admin import arguments
from kafkacore.admin.arguments import integer, integers, members, names
from kafkacore.admin.driver import (
    BY_BROKER_ID,
    LEADERS,
    TRANSACTION_COORDINATORS,
    Driver,
    raised_first,
    to_broker,
)
from kafkacore.admin.responses import by_topic, error_of
from kafkacore.admin.time_limit import TimeLimit
from kafkacore.errors import (
    ConcurrentTransactionsError,
    KafkaError,
    UnsupportedVersionError,
)
from kafkacore.protocol import RequestBuilder
from kafkacore.protocol.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from kafkacore.protocol.generated.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacore.protocol.generated.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kafkacore.protocol.generated.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kafkacore.structs import EnumHelper, TopicPartition, partition_name

#: First version of ListTransactions that can filter by duration (KIP-994).
_DURATION_FROM: Final = 1
#: First version of ListTransactions that can filter by a pattern for transactional ids (KIP-1152).
_PATTERN_FROM: Final = 2
#: A transaction hangs if it has been open for the maximum transaction timeout plus this time.
#: kafka-transactions.sh uses the same value.
_HANGING_SLACK_MS: Final = 5 * 60_000


class TransactionState(EnumHelper, StrEnum):
    """State of a transaction at its coordinator."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    UNKNOWN = "Unknown"


#: States in which a transaction may have records that are neither committed nor aborted.
_OPEN_STATES: Final = frozenset(
    {
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
        TransactionState.PREPARE_EPOCH_FENCE,
        TransactionState.UNKNOWN,
    }
)


class TransactionListing(NamedTuple):
    """A transaction in the result of ``list_transactions``."""

    transactional_id: str
    producer_id: int
    state: TransactionState


class TransactionDescription(NamedTuple):
    """A transaction in the result of ``describe_transactions``. Times are milliseconds since the epoch."""

    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int
    topic_partitions: set[TopicPartition]


class ProducerState(NamedTuple):
    """An active producer of a partition."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_transaction_start_offset: int


class PartitionProducerState(NamedTuple):
    """The active producers of a partition in the result of ``describe_producers``."""

    active_producers: list[ProducerState]


class AbortTransactionSpec(NamedTuple):
    """The transaction that ``abort_transaction`` aborts on one partition.

    With ``coordinator_epoch=-1`` the leader does not check the epoch of the coordinator.
    """

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int = -1


class HangingTransaction(TypedDict):
    """A transaction in the result of ``find_hanging_transactions``."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    age_ms: int
    coordinator_id: int
    topic_partitions: list[TopicPartition]


class FencedProducer(NamedTuple):
    """The producer id and epoch of a transactional id after ``fence_producers``."""

    producer_id: int
    producer_epoch: int


class TransactionAdmin:
    """The transaction operations of the admin client.

    Parameters
    ----------
    driver:
        Sends the requests to coordinators and leaders.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def listings(
        self,
        broker_ids: Iterable[int] | None,
        producer_ids: Iterable[int] | None,
        states: Iterable[object] | None,
        duration_ms: int | None,
        pattern: str | None,
        timeout_ms: float,
    ) -> dict[int, list[TransactionListing]]:
        """Ask every broker for the transactions that it coordinates."""
        state_filters = [each.value for each in members("state_filters", states or (), TransactionState)]
        ids = integers("producer_id_filters", producer_ids or (), "producer ids")
        limit = TimeLimit(self._driver.requester.clock, timeout_ms)
        brokers = (
            self._driver.requester.broker_ids(timeout_ms)
            if broker_ids is None
            else arguments.broker_ids("broker_ids", broker_ids)
        )

        def build(version: int) -> ListTransactionsRequest:
            if (duration_ms is not None and version < _DURATION_FROM) or (
                pattern is not None and version < _PATTERN_FROM
            ):
                raise UnsupportedVersionError(
                    "the broker is too old: a filter by duration needs Kafka 3.8, by pattern Kafka 4.1"
                )
            return ListTransactionsRequest(
                state_filters=state_filters,
                producer_id_filters=ids,
                duration_filter=-1 if duration_ms is None else int(duration_ms),
                transactional_id_pattern=pattern,
            )

        def read(
            response: ListTransactionsResponse, asked: Sequence[int]
        ) -> Iterable[tuple[int, list[TransactionListing]]]:
            if response.error_code:
                raise error_of(response.error_code, None, f"transactions of broker {asked[0]}")
            yield (
                asked[0],
                [
                    TransactionListing(
                        each.transactional_id, each.producer_id, _state(each.transaction_state)
                    )
                    for each in response.transaction_states
                ],
            )

        request = RequestBuilder(ListTransactionsRequest, build)
        return raised_first(
            self._driver.run(BY_BROKER_ID, brokers, lambda asked: request, read, limit.left_ms)
        )

    def describe(
        self, transactional_ids: Iterable[str], timeout_ms: float
    ) -> dict[str, TransactionDescription]:
        """Describe transactions, each on its coordinator."""
        lookup = _RecordingLookup()

        def read(
            response: DescribeTransactionsResponse, asked: Sequence[str]
        ) -> Iterable[tuple[str, TransactionDescription | KafkaError]]:
            for each in response.transaction_states:
                name = each.transactional_id
                if each.error_code:
                    yield name, error_of(each.error_code, None, f"transactional id {name!r}")
                    continue
                yield (
                    name,
                    TransactionDescription(
                        lookup.nodes.get(name, -1),
                        _state(each.transaction_state),
                        each.producer_id,
                        each.producer_epoch,
                        each.transaction_timeout_ms,
                        each.transaction_start_time_ms,
                        {
                            TopicPartition(topic.topic, number)
                            for topic in each.topics
                            for number in topic.partitions
                        },
                    ),
                )

        return raised_first(
            self._driver.run(
                lookup,
                names("transactional_ids", transactional_ids),
                lambda ids: DescribeTransactionsRequest(transactional_ids=list(ids)),
                read,
                timeout_ms,
            )
        )

    def find_hanging(
        self, broker_ids: Iterable[int] | None, max_transaction_timeout_ms: int, timeout_ms: float
    ) -> list[HangingTransaction]:
        """Find transactions that have been open for longer than the brokers permit."""
        limit = TimeLimit(self._driver.requester.clock, timeout_ms)
        listed = self.listings(broker_ids, None, None, None, None, timeout_ms)
        ids = sorted({each.transactional_id for listings in listed.values() for each in listings})
        now_ms = self._driver.requester.clock.wall_ms()
        hanging: list[HangingTransaction] = []
        for name, described in self.describe(ids, limit.left_ms).items() if ids else ():
            age_ms = now_ms - described.transaction_start_time_ms
            if described.state not in _OPEN_STATES or described.transaction_start_time_ms < 0:
                continue
            if age_ms >= max_transaction_timeout_ms + _HANGING_SLACK_MS:
                hanging.append(
                    {
                        "transactional_id": name,
                        "producer_id": described.producer_id,
                        "producer_epoch": described.producer_epoch,
                        "state": described.state.value,
                        "age_ms": age_ms,
                        "coordinator_id": described.coordinator_id,
                        "topic_partitions": sorted(described.topic_partitions),
                    }
                )
        return hanging

    def describe_producers(
        self, partitions: Iterable[TopicPartition], broker_id: int | None, timeout_ms: float
    ) -> dict[TopicPartition, PartitionProducerState]:
        """Ask the leaders of partitions, or one replica, for the active producers."""
        lookup = LEADERS if broker_id is None else to_broker(integer("broker_id", broker_id))
        wanted = arguments.partitions("partitions", partitions)
        return raised_first(
            self._driver.run(lookup, wanted, _describe_producers, _described_producers, timeout_ms)
        )

    def abort(self, spec: AbortTransactionSpec, timeout_ms: float) -> None:
        """Write an abort marker for a transaction that hangs on one partition."""
        marker_class = WriteTxnMarkersRequest.WritableTxnMarker
        if not isinstance(spec, AbortTransactionSpec):
            raise TypeError(f"spec: {spec!r} is not an AbortTransactionSpec")
        tp = arguments.partition("spec", spec.topic_partition)
        request = WriteTxnMarkersRequest(
            markers=[
                marker_class(
                    producer_id=spec.producer_id,
                    producer_epoch=spec.producer_epoch,
                    transaction_result=False,
                    topics=[
                        WriteTxnMarkersRequest.WritableTxnMarkerTopic(
                            name=tp.topic, partition_indexes=[tp.partition]
                        )
                    ],
                    coordinator_epoch=spec.coordinator_epoch,
                )
            ]
        )
        raised_first(self._driver.run(LEADERS, [tp], lambda asked: request, _aborted, timeout_ms))

    def fence(self, transactional_ids: Iterable[str], timeout_ms: float) -> dict[str, FencedProducer]:
        """Fence the producers of transactional ids, which aborts their open transactions."""
        return raised_first(
            self._driver.run(
                TRANSACTION_COORDINATORS,
                names("transactional_ids", transactional_ids),
                _fence,
                _fenced,
                timeout_ms,
                retried=(ConcurrentTransactionsError,),
            )
        )


class _RecordingLookup:
    """Finds the coordinators of transactions, and keeps the coordinators' node ids for the result."""

    is_fixed = False

    def __init__(self) -> None:
        self.nodes: dict[str, int] = {}

    def __call__(
        self, requester: Any, keys: Sequence[str], deadline_ms: float
    ) -> Mapping[Any, int | KafkaError]:
        found = TRANSACTION_COORDINATORS(requester, keys, deadline_ms)
        self.nodes.update({key: node for key, node in found.items() if isinstance(node, int)})
        return found


def _state(name: str) -> TransactionState:
    try:
        return TransactionState(name)
    except ValueError:
        return TransactionState.UNKNOWN


def _describe_producers(partitions: Sequence[TopicPartition]) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[
            DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
    )


def _described_producers(
    response: DescribeProducersResponse, asked: Sequence[TopicPartition]
) -> Iterable[tuple[TopicPartition, PartitionProducerState | KafkaError]]:
    for topic in response.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code:
                yield (
                    tp,
                    error_of(
                        partition.error_code,
                        partition.error_message,
                        f"producers of {partition_name(tp)}",
                    ),
                )
                continue
            states = [
                ProducerState(
                    each.producer_id,
                    each.producer_epoch,
                    each.last_sequence,
                    each.last_timestamp,
                    each.coordinator_epoch,
                    each.current_txn_start_offset,
                )
                for each in partition.active_producers
            ]
            yield tp, PartitionProducerState(states)


def _aborted(
    response: WriteTxnMarkersResponse, asked: Sequence[TopicPartition]
) -> Iterable[tuple[TopicPartition, KafkaError | None]]:
    for marker in response.markers:
        for topic in marker.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                error = (
                    error_of(partition.error_code, None, f"abort marker of {partition_name(tp)}")
                    if partition.error_code
                    else None
                )
                yield tp, error


def _fence(transactional_ids: Sequence[str]) -> RequestBuilder[InitProducerIdResponse]:
    def build(version: int) -> InitProducerIdRequest:
        if len(transactional_ids) > 1:
            raise UnsupportedVersionError("InitProducerId takes only one transactional id")
        # Like Kafka's Java client, fence with the shortest transaction timeout that is permitted.
        return InitProducerIdRequest(transactional_id=transactional_ids[0], transaction_timeout_ms=1)

    return RequestBuilder(InitProducerIdRequest, build)


def _fenced(
    response: InitProducerIdResponse, asked: Sequence[str]
) -> Iterable[tuple[str, FencedProducer | KafkaError]]:
    if response.error_code:
        yield asked[0], error_of(response.error_code, None, f"transactional id {asked[0]!r}")
    else:
        yield asked[0], FencedProducer(response.producer_id, response.producer_epoch)
