"""Types of the dictionaries that the admin client returns. Keys are those of kafka-python."""

from __future__ import annotations

from typing import TypedDict

from kafkacore.admin.acls import ACL
from kafkacore.errors import BrokerResponseError
from kafkacore.structs import ScramMechanism


class PartitionDescription(TypedDict):
    """A partition in a :class:`TopicDescription`."""

    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    offline_replicas: list[int]
    error_code: int


class TopicDescription(TypedDict):
    """A topic in the result of ``describe_topics``."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: list[PartitionDescription]


class CreatedTopic(TypedDict):
    """The outcome for one topic of ``create_topics``."""

    name: str
    topic_id: str
    error_code: int
    error_message: str | None
    num_partitions: int
    replication_factor: int


class CreatedTopics(TypedDict):
    """The outcome of ``create_topics``."""

    topics: list[CreatedTopic]


class DeletedTopic(TypedDict):
    """The outcome for one topic of ``delete_topics``."""

    name: str | None
    error_code: int
    error_message: str | None


class DeletedTopics(TypedDict):
    """The outcome of ``delete_topics``."""

    responses: list[DeletedTopic]


class CreatedAcls(TypedDict):
    """The outcome of ``create_acls``."""

    succeeded: list[ACL]
    failed: list[type[BrokerResponseError]]


class ScramCredentialInfo(TypedDict):
    """One SCRAM credential of a user."""

    mechanism: ScramMechanism
    iterations: int


class UserScramCredentials(TypedDict):
    """The SCRAM credentials of one user in the result of ``describe_user_scram_credentials``."""

    error: str | None
    credential_infos: list[ScramCredentialInfo]


class ClientQuotas(TypedDict):
    """The quotas of one entity in the result of ``describe_client_quotas``."""

    entity: dict[str, str | None]
    quotas: dict[str, float]


class AlteredClientQuotas(TypedDict):
    """The outcome for one entity of ``alter_client_quotas``."""

    entity: dict[str, str | None]
    error: str | None
