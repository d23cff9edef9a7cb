"""Partitions: add them, look up offsets, delete records, elect leaders and reassign replicas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, TypedDict

from kafkacore.admin.arguments import (
    broker_ids,
    by_partition,
    integer,
    listed,
    mapping,
    numbers_by_topic,
    partitions,
    text,
)
from kafkacore.admin.driver import LEADERS, TO_CONTROLLER, Driver, raised_first, to_broker
from kafkacore.admin.requester import CONTROLLER
from kafkacore.admin.responses import as_member, by_topic, error_of
from kafkacore.admin.time_limit import TimeLimit
from kafkacore.admin.topics import TopicAdmin
from kafkacore.errors import (
    BrokerResponseError,
    ElectionNotNeededError,
    KafkaError,
    NotControllerError,
    PolicyViolationError,
    ThrottlingQuotaExceededError,
    UnsupportedVersionError,
    for_code,
)
from kafkacore.protocol import RequestBuilder
from kafkacore.protocol.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kafkacore.protocol.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from kafkacore.protocol.generated.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kafkacore.protocol.generated.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkacore.protocol.generated.list_partition_reassignments import ListPartitionReassignmentsRequest
from kafkacore.structs import IsolationLevel, OffsetAndTimestamp, OffsetSpec, TopicPartition, partition_name

#: Partitions of topics: a mapping, names of whole topics, or ``None`` for all.
TopicPartitions: TypeAlias = Mapping[str, Iterable[int]] | Iterable[str] | None
#: First version of ListOffsets that supports each of these special offsets.
_SPEC_FROM: Final = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
}
_SPECS: Final = frozenset(map(int, OffsetSpec))
_ISOLATION_FROM: Final = 2
#: First version of ElectLeaders that has a type of election (KIP-460).
_ELECTION_TYPE_FROM: Final = 1


@dataclass(frozen=True)
class NewPartitions:
    """The number of partitions that a topic is to have.

    Parameters
    ----------
    total_count:
        Total number of partitions, including those that exist.
    new_assignments:
        Ids of the brokers of each new partition; by default the broker chooses.
    """

    total_count: int
    new_assignments: Sequence[Sequence[int]] | None = None


class OffsetTimestamp(int):
    """A timestamp in milliseconds since the epoch, for arguments in which a plain ``int`` is an offset."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"OffsetTimestamp({int(self)})"


class DeletedRecords(TypedDict):
    """The outcome of ``delete_records`` for one partition."""

    partition_index: int
    low_watermark: int
    error_code: int


class Reassignment(TypedDict):
    """A partition in the result of ``list_partition_reassignments``. The lists contain ids of brokers."""

    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


class PartitionAdmin:
    """The partition operations of the admin client.

    Parameters
    ----------
    driver:
        Sends the requests to the leaders of partitions or to the controller.
    topics:
        Lists the partitions of topics.
    """

    def __init__(self, driver: Driver, topics: TopicAdmin) -> None:
        self._driver = driver
        self._topics = topics

    def create(
        self,
        topic_partitions: Mapping[str, int | Mapping[str, Any] | NewPartitions],
        timeout_ms: float,
        validate_only: bool,
        raise_errors: bool,
    ) -> CreatePartitionsResponse:
        """Add partitions to topics. Each topic succeeds or fails independently."""
        wanted = {
            text("topic_partitions", topic): _new_partitions(topic, count)
            for topic, count in mapping("topic_partitions", topic_partitions, "topics to counts").items()
        }

        def build(topics: Sequence[str]) -> CreatePartitionsRequest:
            return CreatePartitionsRequest(
                topics=[wanted[topic] for topic in topics],
                timeout_ms=int(timeout_ms),
                validate_only=validate_only,
            )

        results = raised_first(
            self._driver.run(
                TO_CONTROLLER,
                wanted,
                build,
                _created,
                timeout_ms,
                retried=(NotControllerError, ThrottlingQuotaExceededError),
            )
        )
        for result in results.values():
            if result.error_code and raise_errors:
                raise error_of(result.error_code, result.error_message, f"topic {result.name!r}")
        return CreatePartitionsResponse(results=list(results.values()))

    def delete_records(
        self, records: Mapping[TopicPartition, int], leader_id: int | None, timeout_ms: float
    ) -> dict[TopicPartition, DeletedRecords]:
        """Delete the records before an offset of each partition."""
        request_class = DeleteRecordsRequest
        records = by_partition("records_to_delete", records, "offsets")
        for tp, offset in records.items():
            integer(f"records_to_delete: offset of {partition_name(tp)}", offset)

        def build(partitions: Sequence[TopicPartition]) -> DeleteRecordsRequest:
            return request_class(
                topics=[
                    request_class.DeleteRecordsTopic(
                        name=topic,
                        partitions=[
                            request_class.DeleteRecordsPartition(
                                partition_index=number, offset=records[TopicPartition(topic, number)]
                            )
                            for number in numbers
                        ],
                    )
                    for topic, numbers in by_topic(partitions).items()
                ],
                timeout_ms=int(timeout_ms),
            )

        results = self._driver.run(
            LEADERS if leader_id is None else to_broker(integer("partition_leader_id", leader_id)),
            records,
            build,
            _deleted,
            timeout_ms,
        )
        failed = {tp: result for tp, result in results.items() if isinstance(result, KafkaError)}
        if len(failed) > 1:
            raise BrokerResponseError(
                "records of several partitions were not deleted: "
                + ", ".join(str(error) for error in failed.values())
            )
        return raised_first(results)

    def offsets(
        self,
        specs: Mapping[TopicPartition, OffsetSpec | int],
        isolation_level: object,
        timeout_ms: float,
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Look up offsets by name or timestamp, each on the leader of its partition."""
        return raised_first(self.offset_of_each(specs, isolation_level, timeout_ms))

    def offset_of_each(
        self,
        specs: Mapping[TopicPartition, OffsetSpec | int],
        isolation_level: object,
        timeout_ms: float,
    ) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError]:
        """Return the offset of each partition, or the partition's error."""
        level = as_member(IsolationLevel, isolation_level)
        specs = by_partition("topic_partition_specs", specs, "OffsetSpec members or timestamps")
        for tp, spec in specs.items():
            if not isinstance(spec, int) or isinstance(spec, bool):
                raise TypeError(
                    f"{partition_name(tp)}: {spec!r} is not an OffsetSpec or a timestamp in milliseconds"
                )
            if spec < 0 and spec not in _SPECS:
                raise ValueError(f"{partition_name(tp)}: {spec} is neither a timestamp nor an OffsetSpec")
        return self._driver.run(
            LEADERS,
            specs,
            lambda partitions: RequestBuilder(
                ListOffsetsRequest, partial(_list_offsets, specs, level, partitions, timeout_ms)
            ),
            _listed,
            timeout_ms,
        )

    def elect_leaders(
        self, election_type: int, topic_partitions: TopicPartitions, timeout_ms: float, raise_errors: bool
    ) -> ElectLeadersResponse:
        """Elect the preferred replicas, or any replicas, as leaders."""
        integer("election_type", election_type)
        limit = TimeLimit(self._driver.requester.clock, timeout_ms)
        wanted = self.partitions(topic_partitions, timeout_ms)

        def build(version: int) -> ElectLeadersRequest:
            if election_type and version < _ELECTION_TYPE_FROM:
                raise UnsupportedVersionError("the broker is too old: it can elect only preferred leaders")
            return ElectLeadersRequest(
                election_type=election_type,
                topic_partitions=[
                    ElectLeadersRequest.TopicPartitions(topic=topic, partitions=numbers)
                    for topic, numbers in wanted.items()
                ],
                timeout_ms=int(timeout_ms),
            )

        def read(
            response: ElectLeadersResponse, asked: Sequence[int]
        ) -> Iterable[tuple[int, ElectLeadersResponse]]:
            if response.error_code:
                raise error_of(response.error_code, None, "the election of leaders")
            yield asked[0], response

        response = raised_first(
            self._driver.run(
                TO_CONTROLLER,
                [0],
                lambda asked: RequestBuilder(ElectLeadersRequest, build),
                read,
                limit.left_ms,
                retried=(NotControllerError,),
            )
        )[0]
        for topic in response.replica_election_results:
            for partition in topic.partition_result:
                error = for_code(partition.error_code)
                if partition.error_code and raise_errors and not issubclass(error, ElectionNotNeededError):
                    tp = TopicPartition(topic.topic, partition.partition_id)
                    raise error(partition.error_message or partition_name(tp))
        return response

    def alter_reassignments(
        self, reassignments: Mapping[TopicPartition, Iterable[int] | None], timeout_ms: float
    ) -> dict[TopicPartition, type[BrokerResponseError] | None]:
        """Set the replicas of partitions, or cancel reassignments that are in progress."""
        wanted = {
            tp: _replicas(tp, replicas)
            for tp, replicas in by_partition("reassignments", reassignments, "ids of brokers").items()
        }
        request_class = AlterPartitionReassignmentsRequest

        def build(partitions: Sequence[TopicPartition]) -> AlterPartitionReassignmentsRequest:
            return request_class(
                timeout_ms=int(timeout_ms),
                topics=[
                    request_class.ReassignableTopic(
                        name=topic,
                        partitions=[
                            request_class.ReassignablePartition(
                                partition_index=number, replicas=wanted[TopicPartition(topic, number)]
                            )
                            for number in numbers
                        ],
                    )
                    for topic, numbers in by_topic(partitions).items()
                ],
            )

        def read(
            response: AlterPartitionReassignmentsResponse, asked: Sequence[TopicPartition]
        ) -> Iterable[tuple[TopicPartition, type[BrokerResponseError] | KafkaError | None]]:
            if response.error_code:
                raise error_of(response.error_code, response.error_message, "the reassignment")
            for topic in response.responses:
                for partition in topic.partitions:
                    error = for_code(partition.error_code) if partition.error_code else None
                    yield TopicPartition(topic.name, partition.partition_index), error

        return raised_first(
            self._driver.run(TO_CONTROLLER, wanted, build, read, timeout_ms, retried=(NotControllerError,))
        )

    def list_reassignments(
        self,
        topic_partitions: Mapping[str, Iterable[int]] | Iterable[TopicPartition] | None,
        timeout_ms: float,
    ) -> dict[TopicPartition, Reassignment]:
        """List the reassignments that are in progress."""
        request_class = ListPartitionReassignmentsRequest
        wanted = None
        if topic_partitions is not None:
            given = (
                numbers_by_topic("topic_partitions", topic_partitions)
                if isinstance(topic_partitions, Mapping)
                else by_topic(partitions("topic_partitions", topic_partitions))
            )
            wanted = [
                request_class.ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in given.items()
            ]
        response = self._driver.requester.send(
            request_class(timeout_ms=int(timeout_ms), topics=wanted), timeout_ms, CONTROLLER
        )
        if response.error_code:
            raise error_of(response.error_code, response.error_message, "the list of reassignments")
        return {
            TopicPartition(topic.name, partition.partition_index): {
                "replicas": list(partition.replicas),
                "adding_replicas": list(partition.adding_replicas),
                "removing_replicas": list(partition.removing_replicas),
            }
            for topic in response.topics
            for partition in topic.partitions
        }

    def partitions(self, topic_partitions: TopicPartitions, timeout_ms: float) -> dict[str, list[int]]:
        """Return the partition numbers of each topic that is given; ``None`` stands for all topics."""
        if isinstance(topic_partitions, Mapping):
            return numbers_by_topic("topic_partitions", topic_partitions)
        described = self._topics.describe(topic_partitions, timeout_ms)
        for topic in described:
            if topic["error_code"]:
                raise for_code(topic["error_code"])(f"topic {topic['name']!r}")
        return {
            str(topic["name"]): [partition["partition_index"] for partition in topic["partitions"]]
            for topic in described
        }


def _new_partitions(
    topic: str, count: int | Mapping[str, Any] | NewPartitions
) -> CreatePartitionsRequest.CreatePartitionsTopic:
    about = f"topic_partitions[{topic!r}]"
    assignments: Any = None
    total: Any = count
    if isinstance(count, Mapping):
        total = count.get("count")
        assignments = count.get("assignments")
    elif hasattr(total, "total_count"):
        # kafka-python's NewPartitions is accepted as well.
        total, assignments = total.total_count, total.new_assignments
    return CreatePartitionsRequest.CreatePartitionsTopic(
        name=topic,
        count=integer(f"{about}: count", total),
        assignments=None
        if assignments is None
        else [
            CreatePartitionsRequest.CreatePartitionsAssignment(
                broker_ids=broker_ids(f"{about}: assignments", brokers)
            )
            for brokers in listed(f"{about}: assignments", assignments, "lists of broker ids")
        ],
    )


def _created(
    response: CreatePartitionsResponse, asked: Sequence[str]
) -> Iterable[tuple[str, CreatePartitionsResponse.CreatePartitionsTopicResult | KafkaError]]:
    for result in response.results:
        error = for_code(result.error_code)
        if issubclass(error, NotControllerError | ThrottlingQuotaExceededError):
            yield result.name, error(result.error_message or f"topic {result.name!r}")
        else:
            yield result.name, result


def _deleted(
    response: DeleteRecordsResponse, asked: Sequence[TopicPartition]
) -> Iterable[tuple[TopicPartition, DeletedRecords | KafkaError]]:
    for topic in response.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code:
                reason = (
                    ": the cleanup.policy of the topic does not include delete"
                    if partition.error_code == PolicyViolationError.errno
                    else ""
                )
                yield tp, error_of(partition.error_code, None, f"records of {partition_name(tp)}{reason}")
                continue
            yield (
                tp,
                {
                    "partition_index": partition.partition_index,
                    "low_watermark": partition.low_watermark,
                    "error_code": 0,
                },
            )


def _list_offsets(
    specs: Mapping[TopicPartition, OffsetSpec | int],
    level: IsolationLevel,
    partitions: Sequence[TopicPartition],
    timeout_ms: float,
    version: int,
) -> ListOffsetsRequest:
    needed = max(_SPEC_FROM.get(OffsetSpec(int(specs[tp])), 0) if specs[tp] < 0 else 0 for tp in partitions)
    needed = max(needed, _ISOLATION_FROM if level else 0)
    if version < needed:
        raise UnsupportedVersionError(
            f"the broker is too old for this lookup: it needs ListOffsets version {needed}, not {version}"
        )
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(level),
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=number, timestamp=int(specs[TopicPartition(topic, number)])
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(partitions).items()
        ],
        timeout_ms=int(timeout_ms),
    )


def _listed(
    response: ListOffsetsResponse, asked: Sequence[TopicPartition]
) -> Iterable[tuple[TopicPartition, OffsetAndTimestamp | KafkaError]]:
    for topic in response.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code:
                yield tp, error_of(partition.error_code, None, f"offsets of {partition_name(tp)}")
            else:
                yield tp, OffsetAndTimestamp(partition.offset, partition.timestamp, partition.leader_epoch)


def _replicas(tp: TopicPartition, replicas: Iterable[int] | None) -> list[int] | None:
    if replicas is None:
        return None
    ids = listed(f"replicas of {partition_name(tp)}", replicas, "ids of brokers")
    if not ids:
        raise ValueError(
            f"{partition_name(tp)}: the list of replicas is empty; pass None to cancel a reassignment"
        )
    if not all(isinstance(each, int) for each in ids):
        raise ValueError(f"{partition_name(tp)}: replicas are ids of brokers, not {ids!r}")
    return ids
