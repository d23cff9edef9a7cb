"""The access checks of each API of a broker as data: API, operation, resource.

Each entry has a request about a topic and a group, the rights it needs, and the error of each refusal. The
same entries are tested against our broker and Apache Kafka. Sources: ``KafkaApis``, ``ControllerApis``,
``AclApis``, ``ConfigHelper`` and ``DescribeTopicPartitionsRequestHandler`` of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from model.authorisation_requests import (
    Names,
    add_offsets,
    add_partitions,
    add_partitions_of_broker,
    add_user,
    alter_configs,
    alter_quotas,
    change_configs,
    commit_in_transaction,
    consumer_group_heartbeat,
    create_acls,
    create_topics,
    delete_acls,
    delete_records,
    describe_acls,
    describe_configs,
    describe_quorum,
    elect_leaders,
    end_of_epoch,
    fetch,
    find_coordinator,
    join_group,
    list_offsets,
    made,
    metadata,
    move_replica,
    offset_commit,
    offset_delete,
    offset_fetch,
    old_offset_fetch,
    produce,
    reassign,
    sync_group,
    update_features,
    write_markers,
)

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.requests.authorization import CLUSTER_NAME
from kafkacore.protocol.generated.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacore.protocol.generated.create_partitions import CreatePartitionsRequest
from kafkacore.protocol.generated.delete_groups import DeleteGroupsRequest
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest
from kafkacore.protocol.generated.describe_client_quotas import DescribeClientQuotasRequest
from kafkacore.protocol.generated.describe_cluster import DescribeClusterRequest
from kafkacore.protocol.generated.describe_groups import DescribeGroupsRequest
from kafkacore.protocol.generated.describe_log_dirs import DescribeLogDirsRequest
from kafkacore.protocol.generated.describe_producers import DescribeProducersRequest
from kafkacore.protocol.generated.describe_topic_partitions import DescribeTopicPartitionsRequest
from kafkacore.protocol.generated.describe_transactions import DescribeTransactionsRequest
from kafkacore.protocol.generated.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kafkacore.protocol.generated.end_txn import EndTxnRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest
from kafkacore.protocol.generated.list_config_resources import ListConfigResourcesRequest
from kafkacore.protocol.generated.list_groups import ListGroupsRequest
from kafkacore.protocol.generated.list_partition_reassignments import ListPartitionReassignmentsRequest
from kafkacore.protocol.generated.list_transactions import ListTransactionsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.unregister_broker import UnregisterBrokerRequest

TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, TRANSACTIONAL_ID_DENIED = 29, 30, 31, 53
DENIALS: Final = frozenset({TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, TRANSACTIONAL_ID_DENIED})
UNKNOWN_TOPIC, UNKNOWN_MEMBER, UNSUPPORTED_VERSION, MEMBER_ID_REQUIRED, NOT_NEEDED = 3, 25, 35, 79, 84
GROUP_NOT_FOUND = 69

INVALID_PRODUCER_ID_MAPPING, NOT_ATTEMPTED = 49, 55
UNKNOWN_USER: Final = 91
NO_LOG_DIR: Final = 57
NO_REASSIGNMENT: Final = 85
NOT_REGISTERED: Final = 102

#: Placeholder in a grant for the name of the topic or group that a request is about.
THE_ONE: Final = ""
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID: Final = ResourceType.TRANSACTIONAL_ID
READ, WRITE, CREATE, DELETE = ACLOperation.READ, ACLOperation.WRITE, ACLOperation.CREATE, ACLOperation.DELETE
ALTER, DESCRIBE, ACTION = ACLOperation.ALTER, ACLOperation.DESCRIBE, ACLOperation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = ACLOperation.DESCRIBE_CONFIGS, ACLOperation.ALTER_CONFIGS

#: APIs without an access check, because every client needs them. DescribeCluster shows the brokers'
#: addresses, as Metadata does, and checks a right only for the field of authorized operations.
OPEN_TO_ALL: Final = frozenset(
    {
        "ApiVersions",
        "SaslHandshake",
        "SaslAuthenticate",
        "DescribeCluster",
    }
)


class Grant(NamedTuple):
    """A right. ``name`` is that of an access control entry, or :data:`THE_ONE`."""

    operation: ACLOperation
    resource_type: ResourceType
    name: str = THE_ONE

    def of(self, names: Names) -> Grant:
        """Return the right for the given topic, group or cluster."""
        if self.name != THE_ONE:
            return self
        if self.resource_type == CLUSTER:
            return self._replace(name=CLUSTER_NAME)
        return self._replace(name=names.topic if self.resource_type == TOPIC else names.group)


class Need(NamedTuple):
    """A right without which the response has ``code``. Any one of the alternatives is sufficient."""

    code: int
    any_of: tuple[Grant, ...]


class Question(NamedTuple):
    """A request and the rights it needs.

    Parameters
    ----------
    title:
        Name of the test case, which begins with the name of the API.
    ask:
        Function that creates the request.
    needs:
        Rights in the order in which they are checked. The first missing one decides the error.
    codes:
        Error codes, apart from 0, in the response to a user with all these rights.
    version:
        Version of the request, or ``None`` for the newest one that the broker supports.
    hides:
        Whether the refusal is the same for existing and for missing resources.
    codes_of_others:
        Error codes of the other resources of a request that is refused for one of them, or ``None`` for
        ``codes``.
    """

    title: str
    ask: Callable[[Names], Any]
    needs: tuple[Need, ...]
    codes: frozenset[int] = frozenset()
    version: int | None = None
    hides: bool = True
    codes_of_others: frozenset[int] | None = None

    @property
    def api(self) -> str:
        return self.title.partition(":")[0]


class Listing(NamedTuple):
    """A request whose response omits what the user may not see. ``shown`` returns the names in it."""

    title: str
    ask: Callable[[Names], Any]
    shown: Callable[[Any], set[str]]
    #: Right that shows one of the names, and right that shows all.
    one: Grant
    everything: Grant
    #: Rights that are checked before the list is filtered.
    besides: tuple[Grant, ...] = ()
    version: int | None = None

    @property
    def api(self) -> str:
        return self.title.partition(":")[0]


class Field(NamedTuple):
    """A request whose response has a bit for each permitted operation on ``resource_type``."""

    title: str
    ask: Callable[[Names], Any]
    bits: Callable[[Any], int]
    resource_type: ResourceType
    #: Right without which the response has no such bits.
    besides: Grant
    version: int | None = None

    @property
    def api(self) -> str:
        return self.title.partition(":")[0]


def codes_of(answer: Any) -> set[int]:
    """Return the set of error codes in a response, apart from 0."""
    return set(each_code(answer)) - {0}


def each_code(value: Any) -> Iterator[int]:
    """Return every error code in a response, with repetitions."""
    if isinstance(value, list):
        for each in value:
            yield from each_code(each)
    elif hasattr(type(value), "__slots__") and hasattr(type(value), "encode"):
        for slot in type(value).__slots__:
            found = getattr(value, slot)
            if slot.endswith("error_code"):
                yield found
            else:
                yield from each_code(found)


def need(code: int, *any_of: Grant) -> Need:
    return Need(code, any_of)


TOPIC_READ = need(TOPIC_DENIED, Grant(READ, TOPIC))
TOPIC_DESCRIBE = need(TOPIC_DENIED, Grant(DESCRIBE, TOPIC))
GROUP_READ = need(GROUP_DENIED, Grant(READ, GROUP))
GROUP_DESCRIBE = need(GROUP_DENIED, Grant(DESCRIBE, GROUP))
UNKNOWN = frozenset({UNKNOWN_MEMBER})


def of_cluster(operation: ACLOperation) -> tuple[Need, ...]:
    return (need(CLUSTER_DENIED, Grant(operation, CLUSTER)),)


QUESTIONS: Final = (
    Question("Produce: by id", produce, (need(TOPIC_DENIED, Grant(WRITE, TOPIC)),), hides=False),
    Question(
        "Produce: by name",
        lambda n: produce(n, False),
        (need(TOPIC_DENIED, Grant(WRITE, TOPIC)),),
        version=12,
    ),
    Question("Fetch: by id", fetch, (TOPIC_READ,), hides=False),
    Question("Fetch: by name", lambda n: fetch(n, False), (TOPIC_READ,), version=12),
    Question("Fetch: in a session", lambda n: fetch(n, session_epoch=0), (TOPIC_READ,), hides=False),
    Question("Fetch: in a session by name", lambda n: fetch(n, False, 0), (TOPIC_READ,), version=12),
    Question("Fetch: as it was", lambda n: fetch(n, False), (TOPIC_READ,), version=4),
    Question(
        "Fetch: as a follower",
        lambda n: fetch(n, False, replica_id=1),
        (need(TOPIC_DENIED, Grant(ACTION, CLUSTER)),),
        version=12,
    ),
    Question("ListOffsets: the end", list_offsets, (TOPIC_DESCRIBE,)),
    Question("ListOffsets: as it was", list_offsets, (TOPIC_DESCRIBE,), version=1),
    Question("Metadata: by name", metadata, (TOPIC_DESCRIBE,)),
    Question("Metadata: by name as it was", metadata, (TOPIC_DESCRIBE,), version=4),
    Question("Metadata: by id", lambda n: metadata(n, True), (TOPIC_DESCRIBE,), hides=False),
    Question("OffsetCommit: by id", offset_commit, (GROUP_READ, TOPIC_READ), hides=False),
    Question("OffsetCommit: by name", lambda n: offset_commit(n, False), (GROUP_READ, TOPIC_READ), version=9),
    Question("OffsetFetch: by id", offset_fetch, (GROUP_DESCRIBE, TOPIC_DESCRIBE), hides=False),
    Question(
        "OffsetFetch: by name", lambda n: offset_fetch(n, False), (GROUP_DESCRIBE, TOPIC_DESCRIBE), version=9
    ),
    Question("OffsetFetch: of one group", old_offset_fetch, (GROUP_DESCRIBE, TOPIC_DESCRIBE), version=7),
    Question("OffsetFetch: as it was", old_offset_fetch, (GROUP_DESCRIBE, TOPIC_DESCRIBE), version=1),
    Question("FindCoordinator: of a group", find_coordinator, (GROUP_DESCRIBE,)),
    Question(
        "FindCoordinator: as it was",
        lambda n: FindCoordinatorRequest(key=n.group),
        (GROUP_DESCRIBE,),
        version=3,
    ),
    Question("JoinGroup: a new member", join_group, (GROUP_READ,), frozenset({MEMBER_ID_REQUIRED})),
    Question("JoinGroup: unknown member", lambda n: join_group(n, "m"), (GROUP_READ,), UNKNOWN),
    Question("SyncGroup: unknown member", sync_group, (GROUP_READ,), UNKNOWN),
    Question(
        "Heartbeat: unknown member",
        lambda n: HeartbeatRequest(group_id=n.group, generation_id=1, member_id="m"),
        (GROUP_READ,),
        UNKNOWN,
    ),
    Question(
        "LeaveGroup: unknown member",
        lambda n: made(LeaveGroupRequest, group_id=n.group, members=[{"member_id": "m"}]),
        (GROUP_READ,),
        UNKNOWN,
    ),
    Question("ConsumerGroupHeartbeat: join", consumer_group_heartbeat, (GROUP_READ, TOPIC_DESCRIBE)),
    Question(
        "ConsumerGroupHeartbeat: unknown member",
        lambda n: ConsumerGroupHeartbeatRequest(group_id=n.group, member_id="m", member_epoch=1),
        (GROUP_READ,),
        frozenset({GROUP_NOT_FOUND}),
    ),
    Question(
        "ConsumerGroupDescribe: one",
        lambda n: ConsumerGroupDescribeRequest(group_ids=[n.group]),
        (GROUP_DESCRIBE,),
        frozenset({GROUP_NOT_FOUND}),
    ),
    Question("DescribeGroups: one", lambda n: DescribeGroupsRequest(groups=[n.group]), (GROUP_DESCRIBE,)),
    Question(
        "DeleteGroups: one",
        lambda n: DeleteGroupsRequest(groups_names=[n.group]),
        (need(GROUP_DENIED, Grant(DELETE, GROUP)),),
    ),
    Question("OffsetDelete: one", offset_delete, (need(GROUP_DENIED, Grant(DELETE, GROUP)), TOPIC_READ)),
    Question(
        "InitProducerId: idempotent",
        lambda _: InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
        (need(CLUSTER_DENIED, Grant(ACLOperation.IDEMPOTENT_WRITE, CLUSTER), Grant(WRITE, TOPIC)),),
    ),
    Question(
        "OffsetForLeaderEpoch: one",
        end_of_epoch,
        (need(TOPIC_DENIED, Grant(DESCRIBE, TOPIC), Grant(ACTION, CLUSTER)),),
    ),
    Question(
        "CreateTopics: one that is there",
        create_topics,
        (need(TOPIC_DENIED, Grant(CREATE, TOPIC), Grant(CREATE, CLUSTER)),),
        frozenset({36}),
    ),
    Question(
        "DeleteTopics: by name",
        lambda n: made(DeleteTopicsRequest, timeout_ms=1000, topics=[{"name": n.topic}]),
        (need(TOPIC_DENIED, Grant(DELETE, TOPIC), Grant(DELETE, CLUSTER)),),
    ),
    Question(
        "DeleteTopics: by name as it was",
        lambda n: DeleteTopicsRequest(timeout_ms=1000, topic_names=[n.topic]),
        (need(TOPIC_DENIED, Grant(DELETE, TOPIC), Grant(DELETE, CLUSTER)),),
        version=5,
    ),
    Question(
        "DeleteTopics: by id",
        lambda n: made(DeleteTopicsRequest, timeout_ms=1000, topics=[{"name": None, "topic_id": n.topic_id}]),
        (need(TOPIC_DENIED, Grant(DELETE, TOPIC), Grant(DELETE, CLUSTER)),),
        hides=False,
    ),
    Question(
        "CreatePartitions: one more",
        lambda n: made(
            CreatePartitionsRequest,
            timeout_ms=1000,
            topics=[{"name": n.topic, "count": 2, "assignments": None}],
        ),
        (need(TOPIC_DENIED, Grant(ALTER, TOPIC)),),
    ),
    Question("DeleteRecords: one", delete_records, (need(TOPIC_DENIED, Grant(DELETE, TOPIC)),)),
    Question(
        "DescribeConfigs: of a topic",
        lambda n: describe_configs(2, n.topic),
        (need(TOPIC_DENIED, Grant(DESCRIBE_CONFIGS, TOPIC)),),
    ),
    Question(
        "DescribeConfigs: of a broker",
        lambda n: describe_configs(4, str(n.node_id)),
        of_cluster(DESCRIBE_CONFIGS),
    ),
    Question(
        "AlterConfigs: of a topic",
        lambda n: alter_configs(2, n.topic),
        (need(TOPIC_DENIED, Grant(ALTER_CONFIGS, TOPIC)),),
    ),
    Question(
        "AlterConfigs: of a broker", lambda n: alter_configs(4, str(n.node_id)), of_cluster(ALTER_CONFIGS)
    ),
    Question(
        "IncrementalAlterConfigs: of a topic",
        lambda n: change_configs(2, n.topic),
        (need(TOPIC_DENIED, Grant(ALTER_CONFIGS, TOPIC)),),
    ),
    Question(
        "IncrementalAlterConfigs: of a broker",
        lambda n: change_configs(4, str(n.node_id)),
        of_cluster(ALTER_CONFIGS),
    ),
    Question(
        "DescribeConfigs: of a group",
        lambda n: describe_configs(32, n.group),
        (need(GROUP_DENIED, Grant(DESCRIBE_CONFIGS, GROUP)),),
    ),
    Question(
        "DescribeConfigs: of client metrics",
        lambda n: describe_configs(16, n.group),
        of_cluster(DESCRIBE_CONFIGS),
    ),
    Question(
        "DescribeConfigs: of loggers",
        lambda n: describe_configs(8, str(n.node_id)),
        of_cluster(DESCRIBE_CONFIGS),
    ),
    Question(
        "AlterConfigs: of a group",
        lambda n: alter_configs(32, n.group),
        (need(GROUP_DENIED, Grant(ALTER_CONFIGS, GROUP)),),
    ),
    Question(
        "AlterConfigs: of client metrics", lambda n: alter_configs(16, n.group), of_cluster(ALTER_CONFIGS)
    ),
    Question(
        "IncrementalAlterConfigs: of a group",
        lambda n: change_configs(32, n.group),
        (need(GROUP_DENIED, Grant(ALTER_CONFIGS, GROUP)),),
    ),
    Question(
        "IncrementalAlterConfigs: of client metrics",
        lambda n: change_configs(16, n.group),
        of_cluster(ALTER_CONFIGS),
    ),
    Question("AlterReplicaLogDirs: of a topic", move_replica, of_cluster(ALTER), frozenset({NO_LOG_DIR})),
    Question("DescribeQuorum: of the metadata", describe_quorum, of_cluster(DESCRIBE)),
    Question(
        "ListConfigResources: all", lambda _: ListConfigResourcesRequest(), of_cluster(DESCRIBE_CONFIGS)
    ),
    Question(
        "ListConfigResources: of client metrics",
        lambda _: ListConfigResourcesRequest(),
        of_cluster(DESCRIBE_CONFIGS),
        version=0,
    ),
    Question("DescribeLogDirs: all", lambda _: DescribeLogDirsRequest(topics=None), of_cluster(DESCRIBE)),
    Question(
        "DescribeProducers: of a topic",
        lambda n: made(DescribeProducersRequest, topics=[{"name": n.topic, "partition_indexes": [0]}]),
        (TOPIC_READ,),
    ),
    Question(
        "DescribeTopicPartitions: of a topic",
        lambda n: made(DescribeTopicPartitionsRequest, topics=[{"name": n.topic}]),
        (TOPIC_DESCRIBE,),
    ),
    Question("ElectLeaders: of a topic", elect_leaders, of_cluster(ALTER), frozenset({NOT_NEEDED})),
    Question("ElectLeaders: as it was", elect_leaders, of_cluster(ALTER), frozenset({NOT_NEEDED}), version=0),
    Question(
        "ListPartitionReassignments: all",
        lambda _: ListPartitionReassignmentsRequest(topics=None, timeout_ms=1000),
        of_cluster(DESCRIBE),
    ),
    Question(
        "AlterPartitionReassignments: of a topic",
        reassign,
        of_cluster(ALTER),
        frozenset({NO_REASSIGNMENT}),
    ),
    Question("UpdateFeatures: one", update_features, of_cluster(ALTER)),
    Question(
        "UnregisterBroker: an unknown one",
        lambda _: UnregisterBrokerRequest(broker_id=77),
        of_cluster(ALTER),
        frozenset({NOT_REGISTERED}),
    ),
    Question("DescribeAcls: all", describe_acls, of_cluster(DESCRIBE)),
    Question("CreateAcls: one", create_acls, of_cluster(ALTER)),
    Question("DeleteAcls: of a topic", delete_acls, of_cluster(ALTER)),
    # For a request about all users, Apache Kafka sends no answer to a user without the right.
    Question(
        "DescribeUserScramCredentials: unknown user",
        lambda _: made(DescribeUserScramCredentialsRequest, users=[{"name": "unknown"}]),
        of_cluster(DESCRIBE),
        frozenset({UNKNOWN_USER}),
    ),
    Question("AlterUserScramCredentials: a new user", add_user, of_cluster(ALTER)),
    Question(
        "DescribeClientQuotas: all", lambda _: DescribeClientQuotasRequest(), of_cluster(DESCRIBE_CONFIGS)
    ),
    Question("AlterClientQuotas: of a client", alter_quotas, of_cluster(ALTER_CONFIGS)),
)

#: Questions about missing topics, or about APIs that our broker does not implement and rejects in its own
#: way.
QUESTIONS_ABOUT_NOTHING: Final = (
    Question(
        "Metadata: of a topic to be made",
        lambda n: metadata(n, creates=True),
        (TOPIC_DESCRIBE, need(TOPIC_DENIED, Grant(CREATE, TOPIC), Grant(CREATE, CLUSTER))),
    ),
    Question(
        "CreateTopics: a new one",
        create_topics,
        (
            need(TOPIC_DENIED, Grant(CREATE, TOPIC), Grant(CREATE, CLUSTER)),
            need(TOPIC_DENIED, Grant(DESCRIBE_CONFIGS, TOPIC)),
        ),
    ),
)
TRANSACTIONAL_ID_WRITE = need(TRANSACTIONAL_ID_DENIED, Grant(WRITE, TRANSACTIONAL_ID))
TRANSACTIONAL_ID_DESCRIBE = need(TRANSACTIONAL_ID_DENIED, Grant(DESCRIBE, TRANSACTIONAL_ID))
#: Every producer in these questions has the wrong id.
WRONG_PRODUCER = frozenset({INVALID_PRODUCER_ID_MAPPING})
#: Questions about transactions, and one about share groups. The transactional id is that of the group.
QUESTIONS_ABOUT_TRANSACTIONS: Final = (
    Question(
        "InitProducerId: of a transaction",
        lambda n: InitProducerIdRequest(transactional_id=n.group, transaction_timeout_ms=1000),
        (TRANSACTIONAL_ID_WRITE,),
    ),
    Question(
        "FindCoordinator: of a transaction", lambda n: find_coordinator(n, 1), (TRANSACTIONAL_ID_DESCRIBE,)
    ),
    Question(
        "FindCoordinator: of a share group",
        lambda n: find_coordinator(n, 2),
        of_cluster(ACTION),
        frozenset({UNSUPPORTED_VERSION}),
    ),
    Question(
        "AddPartitionsToTxn: of a client",
        add_partitions,
        (TRANSACTIONAL_ID_WRITE, need(TOPIC_DENIED, Grant(WRITE, TOPIC))),
        WRONG_PRODUCER,
        version=3,
        codes_of_others=frozenset({NOT_ATTEMPTED}),
    ),
    Question("AddPartitionsToTxn: of a broker", add_partitions_of_broker, of_cluster(ACTION), WRONG_PRODUCER),
    Question(
        "AddOffsetsToTxn: of a group", add_offsets, (TRANSACTIONAL_ID_WRITE, GROUP_READ), WRONG_PRODUCER
    ),
    Question(
        "TxnOffsetCommit: of a group",
        commit_in_transaction,
        (TRANSACTIONAL_ID_WRITE, GROUP_READ, TOPIC_READ),
        WRONG_PRODUCER,
    ),
    Question(
        "TxnOffsetCommit: as it was",
        commit_in_transaction,
        (TRANSACTIONAL_ID_WRITE, GROUP_READ, TOPIC_READ),
        WRONG_PRODUCER,
        version=0,
    ),
    Question(
        "EndTxn: one",
        lambda n: EndTxnRequest(transactional_id=n.group, producer_id=4711),
        (TRANSACTIONAL_ID_WRITE,),
        WRONG_PRODUCER,
    ),
    Question(
        "WriteTxnMarkers: one",
        write_markers,
        (need(CLUSTER_DENIED, Grant(ALTER, CLUSTER), Grant(ACTION, CLUSTER)),),
    ),
    Question(
        "DescribeTransactions: one",
        lambda n: DescribeTransactionsRequest(transactional_ids=[n.group]),
        (TRANSACTIONAL_ID_DESCRIBE,),
    ),
)

LISTINGS: Final = (
    Listing(
        "Metadata: of all topics",
        lambda _: MetadataRequest(topics=None),
        lambda answer: {topic.name for topic in answer.topics},
        Grant(DESCRIBE, TOPIC),
        Grant(DESCRIBE, TOPIC, "*"),
    ),
    Listing(
        "Metadata: of all topics as it was",
        lambda _: MetadataRequest(topics=[]),
        lambda answer: {topic.name for topic in answer.topics},
        Grant(DESCRIBE, TOPIC),
        Grant(DESCRIBE, TOPIC, "*"),
        version=0,
    ),
    Listing(
        "DescribeTopicPartitions: of all topics",
        lambda _: DescribeTopicPartitionsRequest(topics=[]),
        lambda answer: {topic.name for topic in answer.topics},
        Grant(DESCRIBE, TOPIC),
        Grant(DESCRIBE, TOPIC, "*"),
    ),
    Listing(
        "ListGroups: all",
        lambda _: ListGroupsRequest(),
        lambda answer: {group.group_id for group in answer.groups},
        Grant(DESCRIBE, GROUP),
        Grant(DESCRIBE, CLUSTER),
    ),
    Listing(
        "OffsetFetch: of all topics",
        lambda n: offset_fetch(n, False, has_topics=False),
        lambda answer: {topic.name for topic in answer.groups[0].topics},
        Grant(DESCRIBE, TOPIC),
        Grant(DESCRIBE, TOPIC, "*"),
        (Grant(DESCRIBE, GROUP),),
        version=9,
    ),
    Listing(
        "ListTransactions: all",
        lambda _: ListTransactionsRequest(),
        lambda answer: {each.transactional_id for each in answer.transaction_states},
        Grant(DESCRIBE, TRANSACTIONAL_ID),
        Grant(DESCRIBE, TRANSACTIONAL_ID, "*"),
    ),
)

FIELDS: Final = (
    Field(
        "Metadata: operations on a topic",
        lambda n: made(MetadataRequest, topics=[{"name": n.topic}], include_topic_authorized_operations=True),
        lambda answer: int(answer.topics[0].topic_authorized_operations),
        TOPIC,
        Grant(DESCRIBE, TOPIC),
    ),
    Field(
        "Metadata: operations on the cluster",
        lambda _: made(MetadataRequest, topics=[], include_cluster_authorized_operations=True),
        lambda answer: int(answer.cluster_authorized_operations),
        CLUSTER,
        Grant(DESCRIBE, CLUSTER),
        version=10,
    ),
    Field(
        "DescribeCluster: operations on the cluster",
        lambda _: DescribeClusterRequest(include_cluster_authorized_operations=True),
        lambda answer: int(answer.cluster_authorized_operations),
        CLUSTER,
        Grant(DESCRIBE, CLUSTER),
    ),
    Field(
        "DescribeGroups: operations on a group",
        lambda n: DescribeGroupsRequest(groups=[n.group], include_authorized_operations=True),
        lambda answer: int(answer.groups[0].authorized_operations),
        GROUP,
        Grant(DESCRIBE, GROUP),
    ),
    Field(
        "DescribeTopicPartitions: operations on a topic",
        lambda n: made(DescribeTopicPartitionsRequest, topics=[{"name": n.topic}]),
        lambda answer: int(answer.topics[0].topic_authorized_operations),
        TOPIC,
        Grant(DESCRIBE, TOPIC),
    ),
)


def apis() -> set[str]:
    """Return every API that a question covers, and those without an access check."""
    asked = (*QUESTIONS, *QUESTIONS_ABOUT_NOTHING, *QUESTIONS_ABOUT_TRANSACTIONS, *LISTINGS, *FIELDS)
    return {each.api for each in asked} | OPEN_TO_ALL
