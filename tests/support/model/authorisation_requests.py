"""One request of each API about a given topic and group, for tests of authorization."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final, NamedTuple
from uuid import UUID

from model.broker_harness import batch

from kafkacore.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkacore.protocol.generated.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkacore.protocol.generated.alter_client_quotas import AlterClientQuotasRequest
from kafkacore.protocol.generated.alter_configs import AlterConfigsRequest
from kafkacore.protocol.generated.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kafkacore.protocol.generated.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kafkacore.protocol.generated.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacore.protocol.generated.create_acls import CreateAclsRequest
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.delete_acls import DeleteAclsRequest
from kafkacore.protocol.generated.delete_records import DeleteRecordsRequest
from kafkacore.protocol.generated.describe_acls import DescribeAclsRequest
from kafkacore.protocol.generated.describe_configs import DescribeConfigsRequest
from kafkacore.protocol.generated.describe_quorum import DescribeQuorumRequest
from kafkacore.protocol.generated.elect_leaders import ElectLeadersRequest
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_delete import OffsetDeleteRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.protocol.generated.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.protocol.generated.sync_group import SyncGroupRequest
from kafkacore.protocol.generated.txn_offset_commit import TxnOffsetCommitRequest
from kafkacore.protocol.generated.update_features import UpdateFeaturesRequest
from kafkacore.protocol.generated.write_txn_markers import WriteTxnMarkersRequest


class Names(NamedTuple):
    """The topic and the group of a request. Either both exist or neither does."""

    topic: str
    topic_id: UUID
    group: str
    node_id: int = 0


def made(message_class: Any, **fields: Any) -> Any:
    """Create a message from plain values: a dict in a list becomes the list's structure."""
    return _made(message_class, message_class, fields)


def _made(outer: Any, struct: Any, fields: dict[str, Any]) -> Any:
    hints = inspect.get_annotations(struct.__init__)
    return struct(**{name: _value(outer, value, str(hints[name])) for name, value in fields.items()})


def _value(outer: Any, value: Any, hint: str) -> Any:
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    inner = re.search(r"list\[\w+\.(\w+)\]", hint)
    assert inner is not None, f"{hint} is not a list of structures"
    return [_made(outer, getattr(outer, inner[1]), each) for each in value]


def topic_of(names: Names, by_id: bool) -> dict[str, Any]:
    return {"topic_id": names.topic_id} if by_id else {"name": names.topic}


def produce(names: Names, by_id: bool = True) -> Any:
    partition = {"index": 0, "records": batch(b"value")}
    topics = [topic_of(names, by_id) | {"partition_data": [partition]}]
    return made(ProduceRequest, acks=1, timeout_ms=1000, topic_data=topics)


def fetch(names: Names, by_id: bool = True, session_epoch: int = -1, replica_id: int = -1) -> Any:
    topic = {"topic_id": names.topic_id} if by_id else {"topic": names.topic}
    partition = {"partition": 0, "partition_max_bytes": 1000}
    message = made(
        FetchRequest,
        min_bytes=1,
        session_epoch=session_epoch,
        topics=[topic | {"partitions": [partition]}],
        **({} if by_id else {"replica_id": replica_id}),
    )
    message.replica_state.replica_id = replica_id if by_id else -1
    return message


def consumer_group_heartbeat(names: Names) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=names.group,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[names.topic],
        topic_partitions=[],
    )


def offset_commit(names: Names, by_id: bool = True) -> Any:
    partitions = [{"partition_index": 0, "committed_offset": 1}]
    topics = [topic_of(names, by_id) | {"partitions": partitions}]
    return made(OffsetCommitRequest, group_id=names.group, topics=topics)


def offset_fetch(names: Names, by_id: bool = True, has_topics: bool = True) -> Any:
    topics = [topic_of(names, by_id) | {"partition_indexes": [0]}] if has_topics else None
    return made(OffsetFetchRequest, groups=[{"group_id": names.group, "topics": topics}])


def old_offset_fetch(names: Names) -> Any:
    topics = [{"name": names.topic, "partition_indexes": [0]}]
    return made(OffsetFetchRequest, group_id=names.group, topics=topics)


def metadata(names: Names, by_id: bool = False, creates: bool = False) -> Any:
    topic = {"topic_id": names.topic_id, "name": None} if by_id else {"name": names.topic}
    return made(MetadataRequest, topics=[topic], allow_auto_topic_creation=creates)


def create_topics(names: Names) -> Any:
    return made(
        CreateTopicsRequest, topics=[{"name": names.topic, "num_partitions": 1, "replication_factor": 1}]
    )


#: A setting with a valid value for each resource type: topics, brokers, client metrics and groups.
KEYS: Final = {
    2: ("retention.ms", "1000000"),
    4: ("log.retention.ms", "1000000"),
    16: ("interval.ms", "300000"),
    32: ("consumer.session.timeout.ms", "50000"),
}


def alter_configs(kind: int, name: str) -> Any:
    key = KEYS[kind]
    configs = [{"name": key[0], "value": key[1]}]
    resources = [{"resource_type": kind, "resource_name": name, "configs": configs}]
    return made(AlterConfigsRequest, resources=resources)


def change_configs(kind: int, name: str) -> Any:
    key = KEYS[kind]
    configs = [{"name": key[0], "value": key[1], "config_operation": 0}]
    resources = [{"resource_type": kind, "resource_name": name, "configs": configs}]
    return made(IncrementalAlterConfigsRequest, resources=resources)


def describe_configs(kind: int, name: str) -> Any:
    resources = [{"resource_type": kind, "resource_name": name, "configuration_keys": None}]
    return made(DescribeConfigsRequest, resources=resources)


def find_coordinator(names: Names, key_type: int = 0) -> Any:
    return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[names.group])


def join_group(names: Names, member_id: str = "") -> Any:
    return made(
        JoinGroupRequest,
        group_id=names.group,
        member_id=member_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b"m"}],
    )


def sync_group(names: Names) -> Any:
    return SyncGroupRequest(
        group_id=names.group, generation_id=1, member_id="m", protocol_type="consumer", protocol_name="range"
    )


def list_offsets(names: Names) -> Any:
    partitions = [{"partition_index": 0, "timestamp": -1}]
    return made(ListOffsetsRequest, replica_id=-1, topics=[{"name": names.topic, "partitions": partitions}])


def end_of_epoch(names: Names) -> Any:
    partitions = [{"partition": 0, "leader_epoch": 0}]
    return made(OffsetForLeaderEpochRequest, topics=[{"topic": names.topic, "partitions": partitions}])


def delete_records(names: Names) -> Any:
    topics = [{"name": names.topic, "partitions": [{"partition_index": 0, "offset": 1}]}]
    return made(DeleteRecordsRequest, timeout_ms=1000, topics=topics)


def offset_delete(names: Names) -> Any:
    topics = [{"name": names.topic, "partitions": [{"partition_index": 0}]}]
    return made(OffsetDeleteRequest, group_id=names.group, topics=topics)


def create_acls(names: Names) -> Any:
    entry = {"resource_type": 2, "resource_name": names.topic, "principal": "User:carol", "host": "*"}
    return made(CreateAclsRequest, creations=[entry | {"operation": 3, "permission_type": 3}])


def delete_acls(names: Names) -> Any:
    entry = {"resource_type_filter": 2, "resource_name_filter": names.topic, "principal_filter": "User:carol"}
    return made(
        DeleteAclsRequest, filters=[entry | {"host_filter": None, "operation": 1, "permission_type": 1}]
    )


def describe_acls(names: Names) -> Any:
    return DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def alter_quotas(names: Names) -> Any:
    entity = [{"entity_type": "client-id", "entity_name": names.group}]
    ops = [{"key": "producer_byte_rate", "value": 1e9}]
    return made(AlterClientQuotasRequest, entries=[{"entity": entity, "ops": ops}])


def add_user(names: Names) -> Any:
    user = {
        "name": names.group,
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"salt",
        "salted_password": b"p" * 32,
    }
    return made(AlterUserScramCredentialsRequest, upsertions=[user])


def reassign(names: Names) -> Any:
    """Cancel a reassignment that does not exist."""
    partitions = [{"partition_index": 0, "replicas": None}]
    topics = [{"name": names.topic, "partitions": partitions}]
    return made(AlterPartitionReassignmentsRequest, timeout_ms=1000, topics=topics)


def move_replica(names: Names) -> Any:
    """Move a replica to a folder that no broker has."""
    topics = [{"name": names.topic, "partitions": [0]}]
    return made(AlterReplicaLogDirsRequest, dirs=[{"path": "/no/such/folder", "topics": topics}])


def describe_quorum(_: Names) -> Any:
    topics = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    return made(DescribeQuorumRequest, topics=topics)


def update_features(_: Names) -> Any:
    update = {"feature": "metadata.version", "max_version_level": 30}
    return made(UpdateFeaturesRequest, feature_updates=[update])


def elect_leaders(names: Names) -> Any:
    partitions = [{"topic": names.topic, "partitions": [0]}]
    return made(ElectLeadersRequest, timeout_ms=1000, topic_partitions=partitions)


def add_partitions(names: Names) -> Any:
    return made(
        AddPartitionsToTxnRequest,
        v3_and_below_transactional_id=names.group,
        v3_and_below_producer_id=4711,
        v3_and_below_topics=[{"name": names.topic, "partitions": [0]}],
    )


def add_partitions_of_broker(names: Names) -> Any:
    topics = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=names.topic, partitions=[0])
    transaction = {"transactional_id": names.group, "producer_id": 4711, "topics": [topics]}
    return made(AddPartitionsToTxnRequest, transactions=[transaction])


def add_offsets(names: Names) -> Any:
    return AddOffsetsToTxnRequest(transactional_id=names.group, producer_id=4711, group_id=names.group)


def commit_in_transaction(names: Names) -> Any:
    topics = [{"name": names.topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    return made(
        TxnOffsetCommitRequest,
        transactional_id=names.group,
        group_id=names.group,
        producer_id=4711,
        topics=topics,
    )


def write_markers(names: Names) -> Any:
    topics = [WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=names.topic, partition_indexes=[0])]
    return made(WriteTxnMarkersRequest, markers=[{"producer_id": 4711, "topics": topics}])
