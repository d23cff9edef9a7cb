"""The admin client. Method and argument names are kafka-python's.

Modules by area (``acl_requests``, ``user_requests``, ``quota_requests``) build the requests and read the
responses.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, TypeAlias, Unpack, cast

from kafkacore.admin import acl_requests, quota_requests, user_requests
from kafkacore.admin.acls import ACL, ACLFilter
from kafkacore.admin.config_types import AdminConfig
from kafkacore.admin.new_topic import NewTopic
from kafkacore.admin.quotas import ClientQuotaAlteration, ClientQuotaFilterComponent
from kafkacore.admin.requester import Requester
from kafkacore.admin.responses import paired
from kafkacore.admin.results import (
    AlteredClientQuotas,
    ClientQuotas,
    CreatedAcls,
    CreatedTopic,
    CreatedTopics,
    DeletedTopic,
    DeletedTopics,
    PartitionDescription,
    TopicDescription,
    UserScramCredentials,
)
from kafkacore.admin.users import UserScramCredentialDeletion, UserScramCredentialUpsertion
from kafkacore.client import bootstrap_client
from kafkacore.client.config import refuse_positional, resolve, servers_text
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import BrokerResponseError, IllegalStateError, NoError, for_code
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest
from kafkacore.protocol.generated.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.message import RequestMessage, ResponseT

#: Topics for ``create_topics``: objects, names, or a mapping of names to settings of any type.
NewTopics: TypeAlias = Iterable[NewTopic | str] | Mapping[str, Mapping[str, Any]]
#: Numbers of the protocol: the resource type of a topic, and the operations on a configuration key.
_TOPIC_RESOURCE = 2
_SET, _DELETE = 0, 1


class KafkaAdminClient:
    """A client that manages topics, access control, users and quotas of a cluster.

    It must be used by one thread at a time.

    Parameters
    ----------
    **configs:
        The settings that all clients share, such as ``bootstrap_servers``, ``client_id`` and
        ``request_timeout_ms``.

    Raises
    ------
    KafkaConfigurationError
        A setting is unknown or has an invalid value.
    TypeError
        Settings were passed as a dict instead of keyword arguments.

    Notes
    -----
    The constructor does not wait for a broker: the client connects on the first call. Each call waits for at
    most ``request_timeout_ms``, or for its ``timeout_ms`` argument.
    """

    def __init__(
        self, *positional: object, clock: Clock = SYSTEM_CLOCK, **configs: Unpack[AdminConfig]
    ) -> None:
        self._closed = True
        refuse_positional(type(self).__name__, positional)
        self.config = resolve({}, configs)
        self._client, self._metadata = bootstrap_client(self.config, clock)
        self._requester = Requester(self._client, clock, servers_text(self.config))
        self._closed = False

    def __enter__(self) -> KafkaAdminClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            warnings.warn(
                f"unclosed {type(self).__name__}: call close()", ResourceWarning, source=self, stacklevel=2
            )
            self.close()

    def close(self) -> None:
        """Close the connections. Further calls have no effect."""
        if not self._closed:
            self._closed = True
            self._client.close()

    def _send(self, request: RequestMessage[ResponseT], timeout_ms: float | None = None) -> ResponseT:
        if self._closed:
            raise IllegalStateError("this KafkaAdminClient is closed; create a new one")
        return self._requester.send(
            request, self.config["request_timeout_ms"] if timeout_ms is None else timeout_ms
        )

    # ---- Topics ------------------------------------------------------------------------------------------

    def list_topics(self) -> list[str]:
        """Return the names of all topics."""
        response = self._send(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        return sorted(topic.name for topic in response.topics if topic.name is not None)

    def describe_topics(self, topics: Iterable[str] | None = None) -> list[TopicDescription]:
        """Return the id and the partitions of topics, with leader, replicas and in-sync replicas.

        Parameters
        ----------
        topics:
            Names of the topics. By default all topics are described.

        Raises
        ------
        BrokerResponseError
            The error of one of the topics, such as :class:`~kafkacore.errors.UnknownTopicOrPartitionError`.
        """
        wanted = (
            None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        )
        response = self._send(MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        described: list[TopicDescription] = []
        for topic in response.topics:
            if topic.error_code:
                raise for_code(topic.error_code)(f"topic {topic.name!r}")
            partitions: list[PartitionDescription] = [
                {
                    "partition_index": partition.partition_index,
                    "leader_id": partition.leader_id,
                    "leader_epoch": partition.leader_epoch,
                    "replica_nodes": list(partition.replica_nodes),
                    "isr_nodes": list(partition.isr_nodes),
                    "offline_replicas": list(partition.offline_replicas),
                    "error_code": partition.error_code,
                }
                for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
            ]
            described.append(
                {
                    # The name is null only if the request gave a topic id.
                    "name": cast("str", topic.name),
                    "topic_id": str(topic.topic_id),
                    "is_internal": topic.is_internal,
                    "partitions": partitions,
                }
            )
        return described

    def create_topics(
        self,
        new_topics: NewTopics,
        timeout_ms: int | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> CreatedTopics:
        """Create topics.

        Parameters
        ----------
        new_topics:
            :class:`NewTopic` objects or names; or a mapping of names to ``num_partitions``,
            ``replication_factor``, ``assignments`` and ``configs``.
        timeout_ms:
            Time limit of the broker in milliseconds; ``request_timeout_ms`` by default.
        validate_only:
            Whether to validate the request without creating anything.
        raise_errors:
            Whether to raise the first error of a topic. Otherwise errors are in the result as ``error_code``.

        Returns
        -------
        dict
            ``{"topics": [{"name", "topic_id", "error_code", "error_message", "num_partitions", …}]}``
        """
        limit_ms = self.config["request_timeout_ms"] if timeout_ms is None else timeout_ms
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in _as_new_topics(new_topics)],
            timeout_ms=limit_ms,
            validate_only=validate_only,
        )
        results: list[CreatedTopic] = []
        for topic in self._send(request, limit_ms).topics:
            if topic.error_code and raise_errors:
                raise for_code(topic.error_code)(topic.error_message or f"topic {topic.name!r}")
            results.append(
                {
                    "name": topic.name,
                    "topic_id": str(topic.topic_id),
                    "error_code": topic.error_code,
                    "error_message": topic.error_message,
                    "num_partitions": topic.num_partitions,
                    "replication_factor": topic.replication_factor,
                }
            )
        return {"topics": results}

    def delete_topics(
        self, topics: Iterable[str], timeout_ms: int | None = None, raise_errors: bool = True
    ) -> DeletedTopics:
        """Delete topics with all their records.

        Parameters
        ----------
        topics:
            Names of the topics.
        timeout_ms:
            Time limit of the broker in milliseconds; ``request_timeout_ms`` by default.
        raise_errors:
            Whether to raise the first error of a topic. Otherwise errors are in the result as ``error_code``.

        Returns
        -------
        dict
            ``{"responses": [{"name", "error_code", "error_message"}]}``
        """
        names = list(topics)
        limit_ms = self.config["request_timeout_ms"] if timeout_ms is None else timeout_ms
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in names],
            topic_names=names,
            timeout_ms=limit_ms,
        )
        results: list[DeletedTopic] = []
        for topic in self._send(request, limit_ms).responses:
            if topic.error_code and raise_errors:
                raise for_code(topic.error_code)(topic.error_message or f"topic {topic.name!r}")
            results.append(
                {"name": topic.name, "error_code": topic.error_code, "error_message": topic.error_message}
            )
        return {"responses": results}

    def alter_topic_configs(
        self,
        topic: str,
        changed: Mapping[str, str],
        deleted: Iterable[str] = (),
        validate_only: bool = False,
    ) -> None:
        """Set and reset configuration values of a topic, all or none of them.

        Parameters
        ----------
        topic:
            Name of the topic.
        changed:
            New values by Kafka's names, such as ``retention.ms``.
        deleted:
            Names of values to reset to the broker's default.
        validate_only:
            Whether to validate the request without changing anything.

        Raises
        ------
        BrokerResponseError
            The error of the broker, such as :class:`~kafkacore.errors.InvalidConfigurationError`.
        """
        request_class = IncrementalAlterConfigsRequest
        configs = [
            request_class.AlterableConfig(name=n, config_operation=_SET, value=v) for n, v in changed.items()
        ]
        configs += [
            request_class.AlterableConfig(name=n, config_operation=_DELETE, value=None) for n in deleted
        ]
        resource = request_class.AlterConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=topic, configs=configs
        )
        response = self._send(request_class(resources=[resource], validate_only=validate_only))
        ((_, result),) = paired([resource], response.responses)
        if result.error_code:
            raise for_code(result.error_code)(result.error_message or f"topic {topic!r}")

    # ---- Access control ----------------------------------------------------------------------------------

    def describe_acls(self, acl_filter: ACLFilter) -> tuple[list[ACL], type[NoError]]:
        """Return the access control entries that match a filter.

        Returns
        -------
        tuple
            List of entries, and the class ``NoError`` as in kafka-python.

        Raises
        ------
        SecurityDisabledError
            The cluster has no authorizer.
        ClusterAuthorizationFailedError
            The user may not describe entries.
        """
        return acl_requests.described(self._send(acl_requests.describe(acl_filter)), acl_filter), NoError

    def create_acls(self, acls: Iterable[ACL], raise_errors: bool = False) -> CreatedAcls:
        """Create access control entries. An entry that exists already is not an error.

        Parameters
        ----------
        acls:
            The entries to create.
        raise_errors:
            Whether to raise the first error of an entry, with the broker's message.

        Returns
        -------
        dict
            ``{"succeeded": [entries], "failed": [error class of each other entry]}``
        """
        entries = list(acls)
        return acl_requests.created(entries, self._send(acl_requests.create(entries)), raise_errors)

    def delete_acls(
        self, acl_filters: Iterable[ACLFilter], raise_errors: bool = False
    ) -> list[tuple[ACLFilter, list[ACL], type[BrokerResponseError]]]:
        """Delete the access control entries that match any of the filters.

        Parameters
        ----------
        acl_filters:
            The filters.
        raise_errors:
            Whether to raise the first error, with the broker's message.

        Returns
        -------
        list
            A tuple per filter: the filter, the deleted entries, and an error class or ``NoError``.
        """
        filters = list(acl_filters)
        return acl_requests.deleted(filters, self._send(acl_requests.delete(filters)), raise_errors)

    # ---- Users -------------------------------------------------------------------------------------------

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialDeletion | UserScramCredentialUpsertion],
        raise_errors: bool = False,
    ) -> dict[str, str | None]:
        """Set and delete SCRAM credentials of users.

        Parameters
        ----------
        alterations:
            The changes. Brokers accept only one change per user in a call.
        raise_errors:
            Whether to raise the first error of a user.

        Returns
        -------
        dict
            User → error message, or ``None`` if the change succeeded.
        """
        return user_requests.altered(self._send(user_requests.alter(alterations)), raise_errors)

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> dict[str, UserScramCredentials]:
        """Describe the SCRAM credentials of users.

        Parameters
        ----------
        users:
            Names of the users. By default all users are described.

        Returns
        -------
        dict
            User → ``{"error": None or text, "credential_infos": [{"mechanism": ScramMechanism, "iterations":
            int}]}``. For a user that does not exist, ``error`` is set.
        """
        return user_requests.described(self._send(user_requests.describe(users)))

    # ---- Quotas ------------------------------------------------------------------------------------------

    def describe_client_quotas(
        self, components: Iterable[ClientQuotaFilterComponent] = (), strict: bool = False
    ) -> list[ClientQuotas]:
        """Return the quotas that match all components, or all quotas without components.

        Parameters
        ----------
        components:
            The entity types that a quota must have, each with a name, the default, or any name.
        strict:
            Whether to leave out quotas whose entity has further types.

        Returns
        -------
        list
            Dicts such as ``{"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 1000000.0}}``. The
            name ``None`` stands for the default entity.
        """
        return quota_requests.described(self._send(quota_requests.describe(components, strict)))

    def alter_client_quotas(
        self,
        alterations: Iterable[ClientQuotaAlteration],
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> list[AlteredClientQuotas]:
        """Set and remove quotas.

        Parameters
        ----------
        alterations:
            The changes, one object per entity.
        validate_only:
            Whether to validate the request without changing anything.
        raise_errors:
            Whether to raise the first error of an entity. Otherwise errors are in the result.

        Returns
        -------
        list
            ``{"entity": {"user": "alice"}, "error": None or text}`` for each entity, in the order of the
            response.
        """
        response = self._send(quota_requests.alter(alterations, validate_only))
        return quota_requests.altered(response, raise_errors)


def _as_new_topics(topics: NewTopics) -> list[NewTopic]:
    if not isinstance(topics, Mapping):
        return [topic if isinstance(topic, NewTopic) else NewTopic(topic) for topic in topics]
    return [
        NewTopic(
            name,
            num_partitions=options.get("num_partitions", -1),
            replication_factor=options.get("replication_factor", -1),
            replica_assignments=options.get("assignments", {}),
            topic_configs=options.get("configs", {}),
        )
        for name, options in topics.items()
    ]


def _creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    request_class = CreateTopicsRequest
    return request_class.CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            request_class.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in topic.replica_assignments.items()
        ],
        configs=[
            request_class.CreatableTopicConfig(name=name, value=value)
            for name, value in topic.topic_configs.items()
        ],
    )
