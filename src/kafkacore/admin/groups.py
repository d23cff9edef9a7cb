"""Consumer groups of the classic and the consumer protocol (KIP-848), and their committed offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, Final, NotRequired, TypeAlias, TypedDict, TypeVar

from kafkacore.admin import arguments
from kafkacore.admin.arguments import by_partition, instances, integer, members, names, partitions, text
from kafkacore.admin.driver import (
    BUSY_ERRORS,
    BY_BROKER_ID,
    GROUP_COORDINATORS,
    MOVED_ERRORS,
    Driver,
    Lookup,
    raised_first,
    to_broker,
)
from kafkacore.admin.responses import by_topic, complete, error_of, operations
from kafkacore.admin.time_limit import TimeLimit
from kafkacore.coordinator.protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription
from kafkacore.errors import (
    BrokerResponseError,
    GroupIdNotFoundError,
    IllegalArgumentError,
    KafkaError,
    MalformedMessageError,
    UnsupportedVersionError,
    for_code,
)
from kafkacore.protocol import Request, RequestBuilder
from kafkacore.protocol.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kafkacore.protocol.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkacore.protocol.generated.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkacore.protocol.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kafkacore.protocol.generated.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkacore.structs import EnumHelper, OffsetAndMetadata, TopicPartition, partition_name

#: First version of OffsetFetch that accepts several groups (KIP-709).
_BATCHED_FETCH_FROM: Final = 8
#: Last version of OffsetFetch with topic names; later versions have topic ids.
_NAMED_FETCH_UNTIL: Final = 9
#: Last version of OffsetCommit with topic names; later versions have topic ids.
_NAMED_COMMIT_UNTIL: Final = 9
#: First version of LeaveGroup that accepts several members.
_BATCHED_LEAVE_FROM: Final = 3
#: First versions of ListGroups that can filter by state (KIP-518) and by type (KIP-848).
_STATES_FROM, _TYPES_FROM = 4, 5

#: The values of MemberType in ConsumerGroupDescribe: a classic member, and a member of the consumer protocol.
_UPGRADED: Final = {0: False, 1: True}

V = TypeVar("V")
#: The class of an error, or ``NoError``.
ErrorClass: TypeAlias = type[BrokerResponseError]


class GroupState(EnumHelper, StrEnum):
    """State of a group (KIP-518, KIP-848)."""

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"


class GroupType(EnumHelper, StrEnum):
    """Protocol of a group."""

    UNKNOWN = "Unknown"
    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


#: Types that :meth:`GroupAdmin.description_of_each` describes. Before Kafka 3.8, the type in a listing is
#: empty.
DESCRIBED_TYPES: Final = frozenset({GroupType.CLASSIC, GroupType.CONSUMER, ""})


class MemberToRemove:
    """A member to remove from its group.

    Parameters
    ----------
    member_id:
        Id of a dynamic member, from ``describe_groups``.
    group_instance_id:
        Id of a static member: its ``group_instance_id`` setting.
    reason:
        Text for the coordinator's log.
    """

    __slots__ = ("group_instance_id", "member_id", "reason")

    def __init__(
        self,
        member_id: str | None = None,
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        if not member_id and not group_instance_id:
            raise IllegalArgumentError("MemberToRemove needs a member_id or a group_instance_id")
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason

    def __repr__(self) -> str:
        return (
            f"MemberToRemove(member_id={self.member_id!r}, group_instance_id={self.group_instance_id!r}, "
            f"reason={self.reason!r})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MemberToRemove):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str | None, str | None, str | None]:
        return (self.member_id, self.group_instance_id, self.reason)


class GroupListing(TypedDict):
    """A group in the result of ``list_groups``."""

    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


class MemberDescription(TypedDict):
    """A member in a :class:`GroupDescription`.

    The last four keys exist only in the consumer protocol. ``upgraded`` tells whether the member itself uses
    that protocol; it is ``None`` if the broker does not report it (Apache Kafka 3.x).

    The subscription and the assignment of a consumer are dicts. The subscription and the assignment of
    another client, such as Kafka Connect, are bytes.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: Any
    member_assignment: Any
    member_epoch: NotRequired[int]
    rack_id: NotRequired[str | None]
    target_assignment: NotRequired[dict[str, Any]]
    upgraded: NotRequired[bool | None]


class GroupDescription(TypedDict):
    """A group in the result of ``describe_groups``. The epochs exist only in the consumer protocol."""

    error: str | None
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: list[MemberDescription]
    authorized_operations: list[str] | None
    group_type: str
    group_epoch: NotRequired[int]
    assignment_epoch: NotRequired[int]


class ResetOffset(TypedDict):
    """The outcome of ``reset_group_offsets`` for one partition."""

    error: ErrorClass
    offset: int


class GroupAdmin:
    """The group operations of the admin client.

    Parameters
    ----------
    driver:
        Sends the requests to the coordinators.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    # ---- Groups ------------------------------------------------------------------------------------------

    def listings(
        self,
        broker_ids: Iterable[int] | None,
        states_filter: Iterable[object] | None,
        types_filter: Iterable[object] | None,
        timeout_ms: float,
    ) -> list[GroupListing]:
        """Ask every broker for the groups that it coordinates."""
        limit = TimeLimit(self._driver.requester.clock, timeout_ms)
        brokers = (
            self.broker_ids(timeout_ms)
            if broker_ids is None
            else arguments.broker_ids("broker_ids", broker_ids)
        )
        found = raised_first(self.listings_by_broker(brokers, states_filter, types_filter, limit.left_ms))
        return [group for groups in found.values() for group in groups]

    def broker_ids(self, timeout_ms: float) -> list[int]:
        """Return the ids of all brokers."""
        return self._driver.requester.broker_ids(timeout_ms)

    def listings_by_broker(
        self,
        broker_ids: Iterable[int],
        states_filter: Iterable[object] | None,
        types_filter: Iterable[object] | None,
        timeout_ms: float,
    ) -> dict[int, list[GroupListing] | KafkaError]:
        """Return the groups that each broker coordinates, or the broker's error."""
        states = [each.value for each in members("states_filter", states_filter or (), GroupState)]
        types = [each.value for each in members("types_filter", types_filter or (), GroupType)]

        def build(version: int) -> ListGroupsRequest:
            if (types and version < _TYPES_FROM) or (states and version < _STATES_FROM):
                raise UnsupportedVersionError("the broker is too old to filter groups by type or state")
            return ListGroupsRequest(states_filter=states, types_filter=types)

        def read(
            response: ListGroupsResponse, asked: Sequence[int]
        ) -> Iterable[tuple[int, list[GroupListing]]]:
            if response.error_code:
                raise error_of(response.error_code, None, f"groups of broker {asked[0]}")
            yield (
                asked[0],
                [
                    {
                        "group_id": group.group_id,
                        "protocol_type": group.protocol_type,
                        "group_state": group.group_state,
                        "group_type": group.group_type,
                    }
                    for group in response.groups
                ],
            )

        return self._driver.run(
            BY_BROKER_ID,
            broker_ids,
            lambda asked: RequestBuilder(ListGroupsRequest, build),
            read,
            timeout_ms,
        )

    def describe(
        self, group_ids: Iterable[str], coordinator_id: int | None, timeout_ms: float
    ) -> dict[str, GroupDescription]:
        """Describe groups. A coordinator's error is part of the description; any other error is raised."""
        described = self.description_of_each(group_ids, coordinator_id, timeout_ms)
        return raised_first(
            {
                group_id: _dead(group_id, found) if isinstance(found, BrokerResponseError) else found
                for group_id, found in described.items()
            }
        )

    def description_of_each(
        self, group_ids: Iterable[str], coordinator_id: int | None, timeout_ms: float
    ) -> dict[str, GroupDescription | KafkaError]:
        """Describe each group with ConsumerGroupDescribe, or else with DescribeGroups.

        Each request describes only the groups of one protocol. Kafka's Java client also tries both requests.
        """
        lookup = _coordinators(coordinator_id)
        groups = names("group_ids", group_ids)
        limit = TimeLimit(self._driver.requester.clock, timeout_ms)
        described: dict[str, GroupDescription | KafkaError] = dict(
            self._driver.run(
                lookup, groups, _describe_consumer_groups, partial(_described, _consumer_group), timeout_ms
            )
        )
        others = [
            group_id
            for group_id in groups
            if isinstance(described[group_id], GroupIdNotFoundError | UnsupportedVersionError)
        ]
        if others:
            described.update(
                self._driver.run(
                    lookup, others, _describe_groups, partial(_described, _classic_group), limit.left_ms
                )
            )
        return described

    def delete(
        self, group_ids: Iterable[str], coordinator_id: int | None, timeout_ms: float
    ) -> dict[str, str]:
        """Delete groups and their committed offsets."""
        deleted = self._driver.run(
            _coordinators(coordinator_id),
            names("group_ids", group_ids),
            lambda groups: DeleteGroupsRequest(groups_names=list(groups)),
            _deleted,
            timeout_ms,
        )
        return {
            group_id: type(result).__name__ if isinstance(result, BrokerResponseError) else result
            for group_id, result in _without_client_errors(deleted).items()
        }

    def remove_members(
        self,
        group_id: str,
        to_remove: Iterable[MemberToRemove],
        coordinator_id: int | None,
        timeout_ms: float,
    ) -> dict[str, ErrorClass]:
        """Remove members from a group of the classic protocol."""
        wanted = instances("members", to_remove, MemberToRemove)
        if not wanted:
            return {}

        def build(version: int) -> LeaveGroupRequest:
            if version >= _BATCHED_LEAVE_FROM:
                identities = [
                    LeaveGroupRequest.MemberIdentity(
                        member_id=each.member_id or "",
                        group_instance_id=each.group_instance_id,
                        reason=each.reason,
                    )
                    for each in wanted
                ]
                return LeaveGroupRequest(group_id=group_id, members=identities)
            if len(wanted) > 1 or not wanted[0].member_id:
                raise UnsupportedVersionError(
                    "the broker is too old: it removes only one member at a time, by its member_id"
                )
            return LeaveGroupRequest(group_id=group_id, member_id=wanted[0].member_id)

        def read(
            response: LeaveGroupResponse, asked: Sequence[str]
        ) -> Iterable[tuple[str, dict[str, ErrorClass]]]:
            if response.error_code:
                raise error_of(response.error_code, None, f"group {group_id!r}")
            if len(wanted) == 1 and not response.members:
                # Up to version 2, the error code of the response is the outcome of the only member.
                yield group_id, {wanted[0].member_id or "": for_code(0)}
                return
            removed = {
                member.member_id or member.group_instance_id or "": for_code(member.error_code)
                for member in response.members
            }
            yield (
                group_id,
                complete(removed, [each.member_id or each.group_instance_id or "" for each in wanted]),
            )

        return self._of_group(
            group_id, coordinator_id, lambda asked: RequestBuilder(LeaveGroupRequest, build), read, timeout_ms
        )

    # ---- Offsets -----------------------------------------------------------------------------------------

    def list_offsets(
        self, group_specs: Mapping[str, Iterable[TopicPartition] | None], timeout_ms: float
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Fetch the committed offsets of several groups."""
        if not group_specs:
            raise IllegalArgumentError("list_group_offsets needs at least one group")
        return raised_first(self.offsets_by_group(group_specs, timeout_ms))

    def offsets_by_group(
        self, group_specs: Mapping[str, Iterable[TopicPartition] | None], timeout_ms: float
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata] | KafkaError]:
        """Return the committed offsets of each group, or the group's error."""
        wanted = {
            text("group_specs", group_id): None
            if given is None
            else by_topic(partitions(f"partitions of {group_id!r}", given))
            for group_id, given in group_specs.items()
        }
        return self._driver.run(
            GROUP_COORDINATORS,
            wanted,
            lambda groups: RequestBuilder(
                OffsetFetchRequest, partial(_fetch_offsets, wanted, groups), _NAMED_FETCH_UNTIL
            ),
            partial(_fetched_offsets, wanted),
            timeout_ms,
        )

    def alter_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        coordinator_id: int | None,
        timeout_ms: float,
    ) -> dict[TopicPartition, ErrorClass]:
        """Commit offsets for a group without active members."""
        offsets = _offsets(offsets)
        if not offsets:
            return {}
        topics = [
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=offsets[TopicPartition(topic, number)].offset,
                        committed_leader_epoch=_epoch(offsets[TopicPartition(topic, number)]),
                        committed_metadata=offsets[TopicPartition(topic, number)].metadata,
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(offsets).items()
        ]

        request = RequestBuilder(
            OffsetCommitRequest,
            lambda version: OffsetCommitRequest(group_id=group_id, topics=topics),
            _NAMED_COMMIT_UNTIL,
        )

        def read(
            response: OffsetCommitResponse, asked: Sequence[str]
        ) -> Iterable[tuple[str, dict[TopicPartition, ErrorClass]]]:
            results = complete(_partition_errors(response), list(offsets))
            _raise_retriable(results.values())
            yield group_id, results

        return self._of_group(group_id, coordinator_id, lambda asked: request, read, timeout_ms)

    def delete_offsets(
        self,
        group_id: str,
        to_delete: Iterable[TopicPartition],
        coordinator_id: int | None,
        timeout_ms: float,
    ) -> dict[TopicPartition, ErrorClass]:
        """Delete committed offsets of topics that no member is subscribed to."""
        wanted = partitions("partitions", to_delete)
        topics = [
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=topic,
                partitions=[
                    OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=number)
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(wanted).items()
        ]
        if not topics:
            return {}

        def read(
            response: OffsetDeleteResponse, asked: Sequence[str]
        ) -> Iterable[tuple[str, dict[TopicPartition, ErrorClass]]]:
            if response.error_code:
                raise error_of(response.error_code, None, f"group {group_id!r}")
            yield group_id, complete(_partition_errors(response), wanted)

        return self._of_group(
            group_id,
            coordinator_id,
            lambda asked: OffsetDeleteRequest(group_id=group_id, topics=topics),
            read,
            timeout_ms,
        )

    def _of_group(
        self,
        group_id: str,
        coordinator_id: int | None,
        build: Callable[[Sequence[str]], Request[Any]],
        read: Callable[[Any, Sequence[str]], Iterable[tuple[str, V | KafkaError]]],
        timeout_ms: float,
    ) -> V:
        """Run an operation on one group, and return its value."""
        lookup = _coordinators(coordinator_id)
        return raised_first(self._driver.run(lookup, names("group_id", [group_id]), build, read, timeout_ms))[
            group_id
        ]


def _coordinators(coordinator_id: int | None) -> Lookup[str]:
    if coordinator_id is None:
        return GROUP_COORDINATORS
    return to_broker(integer("group_coordinator_id", coordinator_id))


def _offsets(given: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets to commit. kafka-python's ``OffsetAndMetadata`` is accepted as well."""
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for tp, offset in by_partition("offsets", given, "OffsetAndMetadata").items():
        if not isinstance(offset, tuple) or not hasattr(offset, "leader_epoch"):
            raise TypeError(f"offsets: {offset!r} of {partition_name(tp)} is not an OffsetAndMetadata")
        if integer(f"offsets: {partition_name(tp)}", offset[0]) < 0:
            raise ValueError(f"offsets: {offset[0]} of {partition_name(tp)} is negative")
        offsets[tp] = OffsetAndMetadata(*offset)
    return offsets


def _without_client_errors(results: Mapping[str, str | KafkaError]) -> dict[str, str | BrokerResponseError]:
    """Return the values and the brokers' errors. Raise any other error, such as a time-out."""
    for result in results.values():
        if isinstance(result, KafkaError) and not isinstance(result, BrokerResponseError):
            raise result
    return {
        key: result
        for key, result in results.items()
        if not isinstance(result, KafkaError) or isinstance(result, BrokerResponseError)
    }


# ---- Descriptions --------------------------------------------------------------------------------------


def _describe_groups(group_ids: Sequence[str]) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=list(group_ids), include_authorized_operations=True)


def _describe_consumer_groups(group_ids: Sequence[str]) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=list(group_ids), include_authorized_operations=True)


def _dead(group_id: str, error: BrokerResponseError) -> GroupDescription:
    """Return the description of a group for which the coordinator returned an error, as kafka-python does."""
    return {
        "error": str(error),
        "group_id": group_id,
        "group_state": GroupState.DEAD.value if isinstance(error, GroupIdNotFoundError) else "",
        "protocol_type": "",
        "protocol_data": "",
        "members": [],
        "authorized_operations": None,
        "group_type": "",
    }


def _described(
    describe: Callable[[Any], GroupDescription],
    response: DescribeGroupsResponse | ConsumerGroupDescribeResponse,
    asked: Sequence[str],
) -> Iterable[tuple[str, GroupDescription | KafkaError]]:
    for group in response.groups:
        yield (
            group.group_id,
            error_of(group.error_code, group.error_message, f"group {group.group_id!r}")
            if group.error_code
            else describe(group),
        )


def _classic_group(group: DescribeGroupsResponse.DescribedGroup) -> GroupDescription:
    is_consumer = group.protocol_type == PROTOCOL_TYPE
    return {
        "error": None,
        "group_id": group.group_id,
        "group_state": group.group_state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol_data,
        "members": [_classic_member(member, is_consumer) for member in group.members],
        "authorized_operations": operations(group.authorized_operations),
        "group_type": GroupType.CLASSIC.value,
    }


def _classic_member(
    member: DescribeGroupsResponse.DescribedGroupMember, is_consumer: bool
) -> MemberDescription:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_metadata": _subscription(bytes(member.member_metadata), is_consumer),
        "member_assignment": _assignment(bytes(member.member_assignment), is_consumer),
    }


def _subscription(data: bytes, is_consumer: bool) -> dict[str, Any] | bytes:
    if not is_consumer or not data:
        return data
    try:
        decoded = decode_subscription(data)
    except MalformedMessageError:
        return data
    return {
        "topics": list(decoded.topics),
        "user_data": decoded.user_data,
        "owned_partitions": _topic_list(decoded.owned_partitions),
        "generation_id": decoded.generation_id,
        "rack_id": decoded.rack_id,
    }


def _assignment(data: bytes, is_consumer: bool) -> dict[str, Any] | bytes:
    if not is_consumer or not data:
        return data
    try:
        decoded = decode_assignment(data)
    except MalformedMessageError:
        return data
    return {"assigned_partitions": _topic_list(decoded.partitions), "user_data": decoded.user_data}


def _topic_list(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partitions": numbers} for topic, numbers in by_topic(partitions).items()]


def _consumer_group(group: ConsumerGroupDescribeResponse.DescribedGroup) -> GroupDescription:
    return {
        "error": None,
        "group_id": group.group_id,
        "group_state": group.group_state,
        "protocol_type": PROTOCOL_TYPE,
        "protocol_data": group.assignor_name,
        "members": [_consumer_member(member) for member in group.members],
        "authorized_operations": operations(group.authorized_operations),
        "group_type": GroupType.CONSUMER.value,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
    }


def _consumer_member(member: ConsumerGroupDescribeResponse.Member) -> MemberDescription:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_metadata": {
            "topics": list(member.subscribed_topic_names),
            "topic_regex": member.subscribed_topic_regex,
        },
        "member_assignment": _named_assignment(member.assignment),
        "member_epoch": member.member_epoch,
        "rack_id": member.rack_id,
        "target_assignment": _named_assignment(member.target_assignment),
        "upgraded": _UPGRADED.get(member.member_type),
    }


def _named_assignment(assignment: ConsumerGroupDescribeResponse.Assignment) -> dict[str, Any]:
    return {
        "assigned_partitions": [
            {"topic": topic.topic_name, "partitions": list(topic.partitions)}
            for topic in assignment.topic_partitions
        ]
    }


def _deleted(response: DeleteGroupsResponse, asked: Sequence[str]) -> Iterable[tuple[str, str | KafkaError]]:
    for result in response.results:
        yield (
            result.group_id,
            error_of(result.error_code, None, f"group {result.group_id!r}") if result.error_code else "OK",
        )


# ---- Offsets -------------------------------------------------------------------------------------------


def _epoch(offset: OffsetAndMetadata) -> int:
    # In kafka-python's OffsetAndMetadata, the epoch may be None.
    return -1 if offset.leader_epoch is None else offset.leader_epoch


def _fetch_offsets(
    wanted: Mapping[str, Mapping[str, list[int]] | None], group_ids: Sequence[str], version: int
) -> OffsetFetchRequest:
    if version >= _BATCHED_FETCH_FROM:
        return OffsetFetchRequest(
            groups=[
                OffsetFetchRequest.OffsetFetchRequestGroup(
                    group_id=group_id,
                    topics=_topics(OffsetFetchRequest.OffsetFetchRequestTopics, wanted[group_id]),
                )
                for group_id in group_ids
            ]
        )
    if len(group_ids) > 1:
        raise UnsupportedVersionError(f"OffsetFetch version {version} takes only one group")
    (group_id,) = group_ids
    return OffsetFetchRequest(
        group_id=group_id, topics=_topics(OffsetFetchRequest.OffsetFetchRequestTopic, wanted[group_id])
    )


def _topics(kind: Any, partitions: Mapping[str, list[int]] | None) -> list[Any] | None:
    if partitions is None:
        return None
    return [kind(name=topic, partition_indexes=numbers) for topic, numbers in partitions.items()]


def _fetched_offsets(
    wanted: Mapping[str, Mapping[str, list[int]] | None], response: OffsetFetchResponse, asked: Sequence[str]
) -> Iterable[tuple[str, dict[TopicPartition, OffsetAndMetadata] | KafkaError]]:
    found: list[tuple[str, Any]] = [(group.group_id, group) for group in response.groups]
    for group_id, group in found or [(asked[0], response)]:
        if group_id not in wanted:
            continue
        if group.error_code:
            yield group_id, error_of(group.error_code, None, f"group {group_id!r}")
            continue
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        failed: KafkaError | None = None
        for topic in group.topics:
            for each in topic.partitions:
                tp = TopicPartition(topic.name, each.partition_index)
                if each.error_code and failed is None:
                    failed = error_of(each.error_code, None, f"group {group_id!r}: {partition_name(tp)}")
                offsets[tp] = OffsetAndMetadata(
                    each.committed_offset, each.metadata or "", each.committed_leader_epoch
                )
        partitions_of = wanted[group_id]
        if failed is None and partitions_of is not None:
            offsets = complete(
                offsets,
                [
                    TopicPartition(topic, number)
                    for topic, numbers in partitions_of.items()
                    for number in numbers
                ],
            )
        yield group_id, failed or offsets


def _partition_errors(response: Any) -> dict[TopicPartition, ErrorClass]:
    return {
        TopicPartition(topic.name, partition.partition_index): for_code(partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    }


def _raise_retriable(errors: Iterable[ErrorClass]) -> None:
    """Raise a retriable error if the coordinator has moved or is loading, so that the request is retried."""
    for error in errors:
        if issubclass(error, MOVED_ERRORS + BUSY_ERRORS):
            raise error("the coordinator is not ready")
