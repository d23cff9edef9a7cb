"""Topics: create, delete and describe them, and wait until they can be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypeAlias, TypedDict

from kafkacore.admin.arguments import broker_ids, integer, listed, mapping, names, text
from kafkacore.admin.configs import ConfigEntry, config_source_name
from kafkacore.admin.driver import TO_CONTROLLER, Driver
from kafkacore.admin.new_topic import NewTopic
from kafkacore.admin.responses import complete, operations
from kafkacore.admin.time_limit import TimeLimit
from kafkacore.errors import (
    KafkaError,
    KafkaTimeoutError,
    NotControllerError,
    ThrottlingQuotaExceededError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    for_code,
)
from kafkacore.protocol import RequestBuilder
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkacore.protocol.generated.describe_topic_partitions import DescribeTopicPartitionsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest, MetadataResponse
from kafkacore.protocol.message import ZERO_UUID
from kafkacore.wire import Uuid, as_uuid

if TYPE_CHECKING:
    from uuid import UUID

#: Topics for ``create_topics``: objects, names, or a mapping of names to settings.
NewTopics: TypeAlias = Iterable[NewTopic | str] | Mapping[str, Mapping[str, Any]]
#: First version of DeleteTopics that accepts topic ids (KIP-516).
_IDS_IN_DELETE_FROM: Final = 6
#: First version of Metadata that accepts topic ids (KIP-516).
_IDS_IN_METADATA_FROM: Final = 12
#: Wait between two checks of ``wait_for_topics``, in milliseconds.
_WAIT_FOR_TOPICS_MS: Final = 100.0


class PartitionDescription(TypedDict):
    """A partition in a :class:`TopicDescription`."""

    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    offline_replicas: list[int]
    error_code: int
    eligible_leader_replicas: NotRequired[list[int] | None]
    last_known_elr: NotRequired[list[int] | None]


class TopicDescription(TypedDict):
    """A topic in the result of ``describe_topics``. Without an error, ``error_code`` is 0."""

    error_code: int
    name: str | None
    topic_id: str | None
    is_internal: bool
    partitions: list[PartitionDescription]
    authorized_operations: list[str] | None


class CreatedTopic(TypedDict):
    """The outcome of ``create_topics`` for one topic."""

    name: str
    topic_id: str | None
    error_code: int
    error_message: str | None
    topic_config_error_code: int
    num_partitions: int
    replication_factor: int
    configs: NotRequired[dict[str, ConfigEntry]]


class CreatedTopics(TypedDict):
    """The outcome of ``create_topics``."""

    topics: list[CreatedTopic]


class DeletedTopic(TypedDict):
    """The outcome of ``delete_topics`` for one topic."""

    name: str | None
    topic_id: str | None
    error_code: int
    error_message: str | None


class DeletedTopics(TypedDict):
    """The outcome of ``delete_topics``."""

    topics: list[DeletedTopic]


class TopicPartitionsPage(TypedDict):
    """A page of ``describe_topic_partitions``. Pass ``next_cursor`` to get the next page."""

    topics: list[dict[str, Any]]
    next_cursor: dict[str, Any] | None


class TopicAdmin:
    """The topic operations of the admin client.

    Parameters
    ----------
    driver:
        Sends the requests. Requests that change topics go to the controller.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def names(self, timeout_ms: float) -> list[str]:
        """Return the names of all topics."""
        response = self._metadata(None, timeout_ms)
        return sorted(topic.name for topic in response.topics if topic.name is not None)

    def describe(
        self, topics: Iterable[str | Uuid | UUID] | None, timeout_ms: float
    ) -> list[TopicDescription]:
        """Describe topics by name or id. A topic that does not exist has an error code."""
        if topics is None:
            return [_described(topic) for topic in self._metadata(None, timeout_ms).topics]
        wanted = _names(topics)
        found: dict[str | Uuid, TopicDescription] = {}
        for topic in self._metadata(wanted, timeout_ms).topics:
            # If the request asked for a topic by id, the response may contain its name too.
            key = topic.topic_id if topic.topic_id in wanted else topic.name
            if key in wanted:
                found[key] = _described(topic)
        complete(found, wanted)
        return list(found.values())

    def _metadata(self, wanted: Sequence[str | Uuid] | None, timeout_ms: float) -> MetadataResponse:
        request = RequestBuilder(MetadataRequest, partial(_metadata_request, wanted))
        return self._driver.requester.send(request, timeout_ms)

    def describe_partitions(
        self, topics: Iterable[str], limit: int, cursor: Mapping[str, Any] | None, timeout_ms: float
    ) -> TopicPartitionsPage:
        """Describe a page of partitions with their eligible leader replicas (KIP-966)."""
        request_class = DescribeTopicPartitionsRequest
        response = self._driver.requester.send(
            request_class(
                topics=[request_class.TopicRequest(name=topic) for topic in names("topics", topics)],
                response_partition_limit=integer("response_partition_limit", limit),
                cursor=_cursor(cursor),
            ),
            timeout_ms,
        )
        following = response.next_cursor
        return {
            "topics": [
                {
                    "error_code": topic.error_code,
                    "name": topic.name,
                    "topic_id": None if topic.topic_id == ZERO_UUID else topic.topic_id,
                    "is_internal": topic.is_internal,
                    "partitions": [
                        {
                            **_partition(partition),
                            "eligible_leader_replicas": partition.eligible_leader_replicas or None,
                            "last_known_elr": partition.last_known_elr or None,
                        }
                        for partition in topic.partitions
                    ],
                    "topic_authorized_operations": topic.topic_authorized_operations,
                }
                for topic in response.topics
            ],
            "next_cursor": None
            if following is None
            else {"topic_name": following.topic_name, "partition_index": following.partition_index},
        }

    def create(
        self,
        new_topics: NewTopics,
        timeout_ms: float,
        validate_only: bool,
        raise_errors: bool,
        wait_for_metadata: bool,
    ) -> CreatedTopics:
        """Create topics. Each topic succeeds or fails independently."""
        if validate_only and wait_for_metadata:
            raise ValueError("validate_only creates no topics, so wait_for_metadata cannot wait for them")
        topics = _as_new_topics(new_topics)
        if not topics:
            raise ValueError("create_topics needs at least one topic")
        wanted = {topic.name: topic for topic in topics}
        if len(wanted) < len(topics):
            raise ValueError("new_topics names a topic twice")
        limit = TimeLimit(self._driver.requester.clock, timeout_ms)

        def build(names: Sequence[str]) -> CreateTopicsRequest:
            return CreateTopicsRequest(
                topics=[_creatable(wanted[name]) for name in names],
                timeout_ms=int(timeout_ms),
                validate_only=validate_only,
            )

        created = self._driver.run(
            TO_CONTROLLER,
            wanted,
            build,
            _created,
            timeout_ms,
            retried=(NotControllerError, ThrottlingQuotaExceededError),
        )
        results: list[CreatedTopic] = []
        for name, result in created.items():
            if isinstance(result, KafkaError):
                raise result
            if result["error_code"] and raise_errors:
                raise for_code(result["error_code"])(result["error_message"] or f"topic {name!r}")
            results.append(result)
        if wait_for_metadata:
            self.wait(list(wanted), limit.left_ms)
        return {"topics": results}

    def delete(
        self, topics: Iterable[str | Uuid | UUID], timeout_ms: float, raise_errors: bool
    ) -> DeletedTopics:
        """Delete topics by name or id. Each topic succeeds or fails independently."""
        deleted = self._driver.run(
            TO_CONTROLLER,
            _names(topics),
            lambda keys: RequestBuilder(DeleteTopicsRequest, partial(_delete_request, keys, timeout_ms)),
            _deleted,
            timeout_ms,
            retried=(NotControllerError, ThrottlingQuotaExceededError),
        )
        results: list[DeletedTopic] = []
        for topic, result in deleted.items():
            if isinstance(result, KafkaError):
                raise result
            if result["error_code"] and raise_errors:
                raise for_code(result["error_code"])(result["error_message"] or f"topic {str(topic)!r}")
            results.append(result)
        return {"topics": results}

    def wait(self, topics: Iterable[str], timeout_ms: float) -> None:
        """Wait until every partition of the topics has a leader."""
        names = _names(topics)
        requester = self._driver.requester
        deadline_ms = requester.clock.monotonic_ms() + timeout_ms
        while names:
            left_ms = max(deadline_ms - requester.clock.monotonic_ms(), 1.0)
            described = {each["name"]: each for each in self.describe(names, left_ms)}
            missing = {str(name): _not_ready(described.get(str(name))) for name in names}
            missing = {name: reason for name, reason in missing.items() if reason}
            if not missing:
                return
            if requester.clock.monotonic_ms() >= deadline_ms:
                reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
                raise KafkaTimeoutError(f"topics are not ready after {timeout_ms:.0f} ms: {reasons}")
            requester.pause(_WAIT_FOR_TOPICS_MS)


def _names(topics: Iterable[str | Uuid | UUID]) -> list[str | Uuid]:
    return [as_uuid(topic) or text("topics", topic) for topic in listed("topics", topics)]


def _cursor(cursor: Mapping[str, Any] | None) -> DescribeTopicPartitionsRequest.Cursor | None:
    if cursor is None:
        return None
    if not isinstance(cursor, Mapping) or not {"topic_name", "partition_index"} <= cursor.keys():
        raise TypeError(
            "cursor must be the next_cursor of the previous page, with topic_name and partition_index"
        )
    return DescribeTopicPartitionsRequest.Cursor(
        topic_name=text("cursor", cursor["topic_name"]),
        partition_index=integer("cursor", cursor["partition_index"]),
    )


def _as_new_topics(topics: NewTopics) -> list[NewTopic]:
    if not isinstance(topics, Mapping):
        return [
            NewTopic(text("new_topics", topic)) if isinstance(topic, str) else _as_new_topic(topic)
            for topic in listed("new_topics", topics, "NewTopic objects or names")
        ]
    return [_from_options(name, options) for name, options in topics.items()]


def _as_new_topic(topic: Any) -> NewTopic:
    """Return a copy of a topic. Objects with the same attributes are accepted, such as kafka-python's."""
    try:
        fields = {name: getattr(topic, name) for name in _NEW_TOPIC_FIELDS}
    except AttributeError:
        raise TypeError(f"new_topics: {topic!r} is not a NewTopic or a name") from None
    text("new_topics", fields["name"])
    return NewTopic(**fields)


def _from_options(name: str, options: Mapping[str, Any]) -> NewTopic:
    about = f"new_topics[{name!r}]"
    given = dict(mapping(about, options, "names of options to values"))
    if unknown := given.keys() - _OPTIONS.keys():
        raise ValueError(
            f"{about}: unknown option {', '.join(map(repr, sorted(unknown, key=str)))}; "
            f"options are {', '.join(_OPTIONS)}"
        )
    return NewTopic(text("new_topics", name), **{_OPTIONS[key]: value for key, value in given.items()})


#: Options of a topic in a mapping → fields of ``NewTopic``.
_OPTIONS: Final = {
    "num_partitions": "num_partitions",
    "replication_factor": "replication_factor",
    "assignments": "replica_assignments",
    "configs": "topic_configs",
}
_NEW_TOPIC_FIELDS: Final = ("name", *_OPTIONS.values())


def _creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    request_class = CreateTopicsRequest
    about = f"topic {topic.name!r}"
    assignments = mapping(f"{about}: replica_assignments", topic.replica_assignments, "partitions to brokers")
    configs = mapping(f"{about}: topic_configs", topic.topic_configs, "names to values")
    return request_class.CreatableTopic(
        name=topic.name,
        num_partitions=integer(f"{about}: num_partitions", topic.num_partitions),
        replication_factor=integer(f"{about}: replication_factor", topic.replication_factor),
        assignments=[
            request_class.CreatableReplicaAssignment(
                partition_index=integer(f"{about}: replica_assignments", partition),
                broker_ids=broker_ids(f"{about}: replica_assignments", brokers),
            )
            for partition, brokers in assignments.items()
        ],
        configs=[
            request_class.CreatableTopicConfig(
                name=text(f"{about}: topic_configs", name), value=None if value is None else str(value)
            )
            for name, value in configs.items()
        ],
    )


def _created(
    response: CreateTopicsResponse, asked: Sequence[str]
) -> Iterable[tuple[str, CreatedTopic | KafkaError]]:
    for topic in response.topics:
        error = for_code(topic.error_code)
        if issubclass(error, NotControllerError | ThrottlingQuotaExceededError):
            yield topic.name, error(topic.error_message or f"topic {topic.name!r}")
            continue
        created: CreatedTopic = {
            "name": topic.name,
            "topic_id": _id(topic.topic_id),
            "error_code": topic.error_code,
            "error_message": topic.error_message,
            "topic_config_error_code": topic.topic_config_error_code,
            "num_partitions": topic.num_partitions,
            "replication_factor": topic.replication_factor,
        }
        if topic.configs:
            created["configs"] = {
                each.name: {
                    "value": each.value,
                    "read_only": each.read_only,
                    "config_source": config_source_name(each.config_source),
                    "is_sensitive": each.is_sensitive,
                }
                for each in topic.configs
            }
        yield topic.name, created


def _delete_request(topics: Sequence[str | Uuid], timeout_ms: float, version: int) -> DeleteTopicsRequest:
    if version >= _IDS_IN_DELETE_FROM:
        states = [
            DeleteTopicsRequest.DeleteTopicState(topic_id=topic)
            if isinstance(topic, Uuid)
            else DeleteTopicsRequest.DeleteTopicState(name=topic)
            for topic in topics
        ]
        return DeleteTopicsRequest(topics=states, timeout_ms=int(timeout_ms))
    names = [topic for topic in topics if isinstance(topic, str)]
    if len(names) < len(topics):
        raise UnsupportedVersionError("the broker is older than Kafka 2.8 and does not support topic ids")
    return DeleteTopicsRequest(topic_names=names, timeout_ms=int(timeout_ms))


def _deleted(
    response: DeleteTopicsResponse, asked: Sequence[str | Uuid]
) -> Iterable[tuple[str | Uuid, DeletedTopic | KafkaError]]:
    for topic in response.responses:
        # If the request named a topic by id, the response may contain its name too.
        key: str | Uuid = topic.topic_id if topic.topic_id in asked else topic.name or ""
        error = for_code(topic.error_code)
        if issubclass(error, NotControllerError | ThrottlingQuotaExceededError):
            yield key, error(topic.error_message or f"topic {topic.name!r}")
            continue
        yield (
            key,
            {
                "name": topic.name,
                "topic_id": _id(topic.topic_id),
                "error_code": topic.error_code,
                "error_message": topic.error_message,
            },
        )


def _metadata_request(topics: Sequence[str | Uuid] | None, version: int) -> MetadataRequest:
    if version < _IDS_IN_METADATA_FROM and any(isinstance(topic, Uuid) for topic in topics or ()):
        raise UnsupportedVersionError("the broker is older than Kafka 3.1 and does not support topic ids")
    topic_class = MetadataRequest.MetadataRequestTopic
    return MetadataRequest(
        topics=None
        if topics is None
        else [
            topic_class(name=None, topic_id=topic) if isinstance(topic, Uuid) else topic_class(name=topic)
            for topic in topics
        ],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=version >= _OPERATIONS_FROM,
    )


#: First version of Metadata that can return the allowed operations (KIP-430).
_OPERATIONS_FROM: Final = 8


def _described(topic: MetadataResponse.MetadataResponseTopic) -> TopicDescription:
    return {
        "error_code": topic.error_code,
        "name": topic.name,
        "topic_id": _id(topic.topic_id),
        "is_internal": topic.is_internal,
        "partitions": [
            _partition(partition)
            for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
        ],
        "authorized_operations": operations(topic.topic_authorized_operations),
    }


def _partition(partition: Any) -> PartitionDescription:
    return {
        "partition_index": partition.partition_index,
        "leader_id": partition.leader_id,
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": list(partition.replica_nodes),
        "isr_nodes": list(partition.isr_nodes),
        "offline_replicas": list(partition.offline_replicas),
        "error_code": partition.error_code,
    }


def _id(topic_id: Uuid) -> str | None:
    return None if topic_id == ZERO_UUID else str(topic_id)


def _not_ready(topic: TopicDescription | None) -> str | None:
    """Return the reason why a topic cannot be used yet, or ``None`` if it can be used."""
    if topic is None:
        return "not in the metadata"
    if topic["error_code"]:
        error = for_code(topic["error_code"])
        if not issubclass(error, UnknownTopicOrPartitionError | UnknownTopicIdError) and not error.retriable:
            raise error(f"topic {topic['name']!r}")
        return error.__name__
    leaderless = [
        str(partition["partition_index"])
        for partition in topic["partitions"]
        if partition["error_code"] or partition["leader_id"] < 0
    ]
    if not topic["partitions"]:
        return "no partitions"
    return f"no leader for partitions {', '.join(leaderless)}" if leaderless else None
