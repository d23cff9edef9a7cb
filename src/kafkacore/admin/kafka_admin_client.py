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

#: What ``create_topics`` takes: topics, names, or a mapping of names to settings of any type.
NewTopics: TypeAlias = Iterable[NewTopic | str] | Mapping[str, Mapping[str, Any]]
#: Kafka's numbers for a kind of resource, and for what is done to a key of it.
_TOPIC_RESOURCE = 2
_SET, _DELETE = 0, 1


class KafkaAdminClient:
    """Asks and changes a cluster. One thread at a time; connects on first use.

    Parameters
    ----------
    **configs:
        The settings that all clients share: ``bootstrap_servers``, ``client_id``, ``request_timeout_ms`` …

    Raises
    ------
    KafkaConfigurationError
        A name is unknown, or a value is invalid.
    TypeError
        Settings were given as a dict. They are keyword arguments.

    Notes
    -----
    The constructor does not wait for a broker. Each call waits ``request_timeout_ms`` at most, or the
    ``timeout_ms`` that it is given.
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
        """Close the connections. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self._client.close()

    def _ask(self, request: RequestMessage[ResponseT], timeout_ms: float | None = None) -> ResponseT:
        if self._closed:
            raise IllegalStateError("this KafkaAdminClient is closed: make another")
        return self._requester.ask(
            request, self.config["request_timeout_ms"] if timeout_ms is None else timeout_ms
        )

    # ---- Topics ------------------------------------------------------------------------------------------

    def list_topics(self) -> list[str]:
        """The names of all topics."""
        answer = self._ask(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        return sorted(topic.name for topic in answer.topics if topic.name is not None)

    def describe_topics(self, topics: Iterable[str] | None = None) -> list[TopicDescription]:
        """Each topic with its id and partitions (leader, replicas, in-sync replicas); all of them by
        default.

        Raises
        ------
        BrokerResponseError
            The error of a topic that was asked for, such as
            :class:`~kafkacore.errors.UnknownTopicOrPartitionError`.
        """
        wanted = (
            None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        )
        answer = self._ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        described: list[TopicDescription] = []
        for topic in answer.topics:
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
                    # The name is null only for a topic that was asked for by its id.
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
            How long the broker may take.
        validate_only:
            Check and change nothing.
        raise_errors:
            Raise the first topic's error; otherwise it is in the result as ``error_code``.

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
        for topic in self._ask(request, limit_ms).topics:
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
        """Delete topics and all their records, by name.

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
        for topic in self._ask(request, limit_ms).responses:
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
        """Change single configs of a topic, all of them or none.

        Parameters
        ----------
        changed:
            Kafka's keys (``retention.ms``) and their new values.
        deleted:
            Keys that go back to the broker's default.
        validate_only:
            Check and change nothing.

        Raises
        ------
        BrokerResponseError
            Why the broker refuses, such as :class:`~kafkacore.errors.InvalidConfigurationError`.
        """
        shape = IncrementalAlterConfigsRequest
        configs = [shape.AlterableConfig(name=n, config_operation=_SET, value=v) for n, v in changed.items()]
        configs += [shape.AlterableConfig(name=n, config_operation=_DELETE, value=None) for n in deleted]
        resource = shape.AlterConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=topic, configs=configs
        )
        answer = self._ask(shape(resources=[resource], validate_only=validate_only))
        ((_, result),) = paired([resource], answer.responses)
        if result.error_code:
            raise for_code(result.error_code)(result.error_message or f"topic {topic!r}")

    # ---- Access control ----------------------------------------------------------------------------------

    def describe_acls(self, acl_filter: ACLFilter) -> tuple[list[ACL], type[NoError]]:
        """The entries that match.

        Returns
        -------
        tuple
            The entries, and the class ``NoError``, as kafka-python has it.

        Raises
        ------
        SecurityDisabledError
            The cluster has no authorizer.
        ClusterAuthorizationFailedError
            This client may not ask.
        """
        return acl_requests.described(self._ask(acl_requests.describe(acl_filter)), acl_filter), NoError

    def create_acls(self, acls: Iterable[ACL], raise_errors: bool = False) -> CreatedAcls:
        """Make entries; one that is there already is no error.

        Parameters
        ----------
        raise_errors:
            Raise the first entry's error, with what the broker says about it.

        Returns
        -------
        dict
            ``{"succeeded": [the entries], "failed": [the error class of each other]}``
        """
        entries = list(acls)
        return acl_requests.created(entries, self._ask(acl_requests.create(entries)), raise_errors)

    def delete_acls(
        self, acl_filters: Iterable[ACLFilter], raise_errors: bool = False
    ) -> list[tuple[ACLFilter, list[ACL], type[BrokerResponseError]]]:
        """Delete the entries that match any of the filters.

        Parameters
        ----------
        raise_errors:
            Raise the first error, with what the broker says about it.

        Returns
        -------
        list
            Of each filter: itself, the entries that are gone, and an error class or ``NoError``.
        """
        filters = list(acl_filters)
        return acl_requests.deleted(filters, self._ask(acl_requests.delete(filters)), raise_errors)

    # ---- Users -------------------------------------------------------------------------------------------

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialDeletion | UserScramCredentialUpsertion],
        raise_errors: bool = False,
    ) -> dict[str, str | None]:
        """Set and delete passwords.

        Parameters
        ----------
        alterations:
            One of each user: brokers refuse both of a user's mechanisms in the same call.
        raise_errors:
            Raise the first user's error.

        Returns
        -------
        dict
            User → what the broker says against it, or ``None`` where it is done.
        """
        return user_requests.altered(self._ask(user_requests.alter(alterations)), raise_errors)

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> dict[str, UserScramCredentials]:
        """Describe the SCRAM credentials of users.

        Parameters
        ----------
        users:
            Of these; of all, by default.

        Returns
        -------
        dict
            User → ``{"error": None or text, "credential_infos": [{"mechanism": ScramMechanism, "iterations":
            int}]}``. That there is no such user is an error of it.
        """
        return user_requests.described(self._ask(user_requests.describe(users)))

    # ---- Quotas ------------------------------------------------------------------------------------------

    def describe_client_quotas(
        self, components: Iterable[ClientQuotaFilterComponent] = (), strict: bool = False
    ) -> list[ClientQuotas]:
        """The quotas that match all of ``components``; all quotas without one.

        Parameters
        ----------
        strict:
            Leave out those of entities that are about something else besides.

        Returns
        -------
        list
            ``{"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 1000000.0}}``; the name ``None``
            is the default one.
        """
        return quota_requests.described(self._ask(quota_requests.describe(components, strict)))

    def alter_client_quotas(
        self,
        alterations: Iterable[ClientQuotaAlteration],
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> list[AlteredClientQuotas]:
        """Set and remove quotas.

        Parameters
        ----------
        validate_only:
            Check and change nothing.
        raise_errors:
            Raise the first entity's error; otherwise it is in the result.

        Returns
        -------
        list
            ``{"entity": {"user": "alice"}, "error": None or text}``, in the broker's order.
        """
        answer = self._ask(quota_requests.alter(alterations, validate_only))
        return quota_requests.altered(answer, raise_errors)


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
    shape = CreateTopicsRequest
    return shape.CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            shape.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in topic.replica_assignments.items()
        ],
        configs=[
            shape.CreatableTopicConfig(name=name, value=value) for name, value in topic.topic_configs.items()
        ],
    )
