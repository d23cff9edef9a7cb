"""Manage a cluster: topics, access control, users and quotas.

:class:`KafkaAdminClient` is the public class. ``requester`` sends its requests and waits for the responses.
"""

from kafkacore.admin.acls import ACL, ACLFilter, ResourcePattern, ResourcePatternFilter
from kafkacore.admin.kafka_admin_client import KafkaAdminClient
from kafkacore.admin.new_topic import NewTopic
from kafkacore.admin.quotas import ClientQuotaAlteration, ClientQuotaFilterComponent, ClientQuotaMatch
from kafkacore.admin.users import UserScramCredentialDeletion, UserScramCredentialUpsertion
from kafkacore.structs import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourceType,
    ScramMechanism,
)

__all__ = [
    "ACL",
    "ACLFilter",
    "ACLOperation",
    "ACLPermissionType",
    "ACLResourcePatternType",
    "ClientQuotaAlteration",
    "ClientQuotaFilterComponent",
    "ClientQuotaMatch",
    "KafkaAdminClient",
    "NewTopic",
    "ResourcePattern",
    "ResourcePatternFilter",
    "ResourceType",
    "ScramMechanism",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
]
