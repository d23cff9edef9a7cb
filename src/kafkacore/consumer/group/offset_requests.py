"""Builds requests to commit and to fetch a group's offsets, and reads their responses.

Error codes become exceptions, as in the response handlers of Kafka's ``ConsumerCoordinator``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafkacore import errors
from kafkacore.client import Cluster
from kafkacore.consumer.group.generation import Generation
from kafkacore.errors import BrokerResponseError, KafkaError, for_code
from kafkacore.logs import logger_of
from kafkacore.protocol import RequestBuilder
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkacore.protocol.message import ZERO_UUID
from kafkacore.structs import OffsetAndMetadata, TopicPartition, partition_name
from kafkacore.wire import Uuid

logger = logger_of(__name__)

#: First version that identifies topics only by id (KIP-848).
FIRST_VERSION_BY_ID = 10
#: First OffsetFetch version whose requests can name several groups (KIP-709).
_FIRST_VERSION_BY_GROUP = 8
#: First OffsetFetch version with the field ``require_stable`` (KIP-447).
_FIRST_VERSION_STABLE = 7
#: First OffsetFetch version whose requests contain a member epoch (KIP-848).
_FIRST_VERSION_WITH_EPOCH = 9
_NO_OFFSET = -1
#: Maximum number of partitions in a log line or message.
_MOST_SHOWN = 10


class Shown:
    """Partitions as text for a log, with their offsets if known. The text is created only if it is logged."""

    __slots__ = ("_partitions",)

    def __init__(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, Any]) -> None:
        self._partitions = partitions

    def __str__(self) -> str:
        named = sorted(self._partitions)
        offsets = self._partitions if isinstance(self._partitions, Mapping) else {}
        first = [
            partition_name(tp) + (f" at {offsets[tp].offset}" if tp in offsets else "")
            for tp in named[:_MOST_SHOWN]
        ]
        more = f" and {len(named) - _MOST_SHOWN} more" if len(named) > _MOST_SHOWN else ""
        return (", ".join(first) or "nothing") + more


class Topics:
    """Names and ids of the topics of a request and its response.

    Parameters
    ----------
    partitions:
        Partitions of the request.
    cluster:
        Source of the topic ids. With an id, the request cannot affect a topic that was deleted and created
        again under the same name.
    """

    __slots__ = ("_ids", "_names", "max_version")

    def __init__(self, partitions: Iterable[TopicPartition], cluster: Cluster) -> None:
        names = {tp.topic for tp in partitions}
        self._ids = {name: cluster.topic_id(name) or ZERO_UUID for name in names}
        self._names = {topic_id: name for name, topic_id in self._ids.items() if topic_id != ZERO_UUID}
        #: Highest version of the request that can identify all topics; ``None`` if every version can.
        #: Versions that identify topics by id need the id of every topic.
        self.max_version = None if len(self._names) == len(names) else FIRST_VERSION_BY_ID - 1

    def id_of(self, name: str) -> Uuid:
        return self._ids[name]

    def name_of(self, topic: Any) -> str:
        """Return the topic name of an entry in a response. The entry has either the name or the id."""
        return topic.name or self._names.get(getattr(topic, "topic_id", ZERO_UUID), "")


# ---- Commit ----------------------------------------------------------------------------------------------
def commit_request(
    group_id: str,
    generation: Generation,
    group_instance_id: str | None,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    topics: Topics,
) -> OffsetCommitRequest:
    by_topic: dict[str, list[OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
    for tp, committed in offsets.items():
        by_topic.setdefault(tp.topic, []).append(
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=tp.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation.generation_id,
        member_id=generation.member_id,
        group_instance_id=group_instance_id,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=name, topic_id=topics.id_of(name), partitions=partitions
            )
            for name, partitions in by_topic.items()
        ],
    )


def commit_error(
    message: OffsetCommitResponse, offsets: Mapping[TopicPartition, OffsetAndMetadata], topics: Topics
) -> BrokerResponseError | None:
    """Return the first error in a response, or ``None`` if the response has no error.

    If topics are not authorized, a single error names all of them.
    """
    unauthorized: set[str] = set()
    missing = set(offsets)
    for topic in message.topics:
        name = topics.name_of(topic)
        for partition in topic.partitions:
            tp = TopicPartition(name, partition.partition_index)
            if tp not in missing:
                continue
            missing.discard(tp)
            if not partition.error_code:
                continue
            error = for_code(partition.error_code)
            if error is errors.TopicAuthorizationFailedError:
                unauthorized.add(name)
            elif error is errors.OffsetMetadataTooLargeError:
                size = len(offsets[tp].metadata.encode())
                return error(
                    f"commit of {Shown({tp: offsets[tp]})} failed: its metadata of {size:,} bytes exceeds "
                    "the broker's offset.metadata.max.bytes"
                )
            else:
                return error(f"commit of {Shown({tp: offsets[tp]})} failed")
    if unauthorized:
        return _unauthorized(unauthorized)
    if missing:
        return errors.UnknownError(f"the OffsetCommit response has no result for {Shown(missing)}")
    return None


def _unauthorized(topics: Iterable[str]) -> BrokerResponseError:
    return errors.TopicAuthorizationFailedError(f"not authorized to read topic {', '.join(sorted(topics))}")


# ---- Fetch -----------------------------------------------------------------------------------------------
def fetch_request(
    group_id: str, partitions: Iterable[TopicPartition], topics: Topics, generation: Generation
) -> RequestBuilder[OffsetFetchResponse]:
    """Return an OffsetFetch request for one group.

    From version 9, the request contains the member id and member epoch of ``generation``, if it has them. A
    fenced member therefore gets no offsets (KIP-848).

    From version 7, the request requires stable offsets, because the offset of a pending transactional commit
    may still change. Kafka's consumer requires them for every isolation level, too.
    """
    by_topic: dict[str, list[int]] = {}
    for tp in sorted(partitions):
        by_topic.setdefault(tp.topic, []).append(tp.partition)

    def build(version: int) -> OffsetFetchRequest:
        require_stable = version >= _FIRST_VERSION_STABLE
        if version < _FIRST_VERSION_BY_GROUP:
            return OffsetFetchRequest(
                group_id=group_id,
                topics=[
                    OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                    for name, numbers in by_topic.items()
                ],
                require_stable=require_stable,
            )
        is_member = version >= _FIRST_VERSION_WITH_EPOCH and not generation.was_reset()
        group = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=group_id,
            member_id=generation.member_id if is_member else None,
            member_epoch=generation.generation_id if is_member else -1,
            topics=[
                OffsetFetchRequest.OffsetFetchRequestTopics(
                    name=name, topic_id=topics.id_of(name), partition_indexes=numbers
                )
                for name, numbers in by_topic.items()
            ],
        )
        return OffsetFetchRequest(groups=[group], require_stable=require_stable)

    return RequestBuilder(OffsetFetchRequest, build)


def read_committed_response(
    message: Any, group_id: str, requested: Iterable[TopicPartition], topics: Topics
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """Return the committed offset of each requested partition, or ``None`` if the partition has none.

    Raises
    ------
    KafkaError
        The error in the response. The attribute ``retriable`` shows whether to repeat the request.
    """
    answer = _of_group(message, group_id)
    if answer.error_code:
        raise for_code(answer.error_code)(f"could not fetch the committed offsets of group {group_id!r}")
    found: dict[TopicPartition, OffsetAndMetadata | None] = {}
    unauthorized: set[str] = set()
    unstable: list[TopicPartition] = []
    wanted = set(requested)
    for tp, partition in _partitions_of(answer, topics):
        if tp not in wanted:
            continue
        error = for_code(partition.error_code)
        if not partition.error_code:
            found[tp] = _committed(partition)
        elif error is errors.TopicAuthorizationFailedError:
            unauthorized.add(tp.topic)
        elif error is errors.UnstableOffsetCommitError:
            unstable.append(tp)
        else:
            raise _partition_error(error, group_id, tp)
    if unauthorized:
        raise _unauthorized(unauthorized)
    if unstable:
        logger.info(
            "committed offsets of %s are not stable yet: a transaction is open, or they are not replicated",
            Shown(unstable),
        )
        raise errors.UnstableOffsetCommitError(f"committed offsets of {Shown(unstable)} are not stable yet")
    left_out = wanted - found.keys()
    if left_out:
        raise errors.UnknownError(f"the OffsetFetch response has no result for {Shown(left_out)}")
    return found


def _of_group(message: Any, group_id: str) -> Any:
    """Return the part of the response for our group. In old versions this is the whole response."""
    if not message.groups:
        return message
    for group in message.groups:
        if group.group_id == group_id:
            return group
    raise errors.UnknownError(f"the OffsetFetch response has no result for group {group_id!r}")


def _partitions_of(answer: Any, topics: Topics) -> Iterator[tuple[TopicPartition, Any]]:
    for topic in answer.topics:
        name = topics.name_of(topic)
        for partition in topic.partitions:
            yield TopicPartition(name, partition.partition_index), partition


def _committed(partition: Any) -> OffsetAndMetadata | None:
    if partition.committed_offset <= _NO_OFFSET:
        return None
    return OffsetAndMetadata(
        partition.committed_offset, partition.metadata or "", partition.committed_leader_epoch
    )


def _partition_error(error: type[BrokerResponseError], group_id: str, tp: TopicPartition) -> KafkaError:
    if error is errors.UnknownTopicOrPartitionError:
        # The partition does not exist, so do not retry, although this error is retriable in other requests.
        return KafkaError(f"partition {Shown([tp])} does not exist")
    return error(f"could not fetch the committed offset of {Shown([tp])} for group {group_id!r}")
