"""Manage a cluster: topics, groups, configurations, access control, users, quotas, transactions and brokers.

:class:`KafkaAdminClient` is the public class. ``driver`` finds the broker that serves each topic,
group or other item, and ``requester`` sends the requests and waits for the responses.
"""

from kafkacore.access_control import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourceType,
    ScramMechanism,
)
from kafkacore.admin.acls import ACL, ACLFilter, ResourcePattern, ResourcePatternFilter
from kafkacore.admin.cluster import UpdateFeatureType
from kafkacore.admin.configs import (
    AlterConfigOp,
    ConfigFilterType,
    ConfigResource,
    ConfigResourceType,
    ConfigSourceType,
    ConfigType,
)
from kafkacore.admin.groups import GroupState, GroupType, MemberToRemove
from kafkacore.admin.kafka_admin_client import KafkaAdminClient
from kafkacore.admin.new_topic import NewTopic
from kafkacore.admin.partitions import NewPartitions, OffsetTimestamp
from kafkacore.admin.quotas import ClientQuotaAlteration, ClientQuotaFilterComponent, ClientQuotaMatch
from kafkacore.admin.tokens import DelegationToken
from kafkacore.admin.transactions import (
    AbortTransactionSpec,
    FencedProducer,
    PartitionProducerState,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafkacore.admin.users import UserScramCredentialDeletion, UserScramCredentialUpsertion
from kafkacore.structs import OffsetSpec

__all__ = [
    "ACL",
    "ACLFilter",
    "ACLOperation",
    "ACLPermissionType",
    "ACLResourcePatternType",
    "AbortTransactionSpec",
    "AlterConfigOp",
    "ClientQuotaAlteration",
    "ClientQuotaFilterComponent",
    "ClientQuotaMatch",
    "ConfigFilterType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSourceType",
    "ConfigType",
    "DelegationToken",
    "FencedProducer",
    "GroupState",
    "GroupType",
    "KafkaAdminClient",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "OffsetTimestamp",
    "PartitionProducerState",
    "ProducerState",
    "ResourcePattern",
    "ResourcePatternFilter",
    "ResourceType",
    "ScramMechanism",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
    "UpdateFeatureType",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
]
