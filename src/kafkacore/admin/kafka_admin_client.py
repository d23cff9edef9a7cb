"""The admin client. Method and argument names are kafka-python's.

Modules by area (``topics``, ``groups``, ``configs`` …) build the requests and read the responses. ``driver``
finds the broker of each item and retries.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from kafkacore.admin import acl_requests, quota_requests, user_requests
from kafkacore.admin.acls import ACL, ACLFilter
from kafkacore.admin.arguments import by_partition, integer, listed, names
from kafkacore.admin.cluster import (
    BrokerLogDirs,
    ClusterAdmin,
    ClusterDescription,
    FeatureDescription,
    QuorumDescription,
)
from kafkacore.admin.configs import (
    ConfigAdmin,
    ConfigDescriptions,
    ConfigFilterType,
    ConfigResource,
    ConfigResourceType,
)
from kafkacore.admin.driver import Driver
from kafkacore.admin.groups import (
    GroupAdmin,
    GroupDescription,
    GroupListing,
    MemberToRemove,
    ResetOffset,
)
from kafkacore.admin.lag import LagReader
from kafkacore.admin.partitions import (
    DeletedRecords,
    NewPartitions,
    OffsetTimestamp,
    PartitionAdmin,
    Reassignment,
    TopicPartitions,
)
from kafkacore.admin.quotas import ClientQuotaAlteration, ClientQuotaFilterComponent
from kafkacore.admin.requester import Requester
from kafkacore.admin.results import (
    AlteredClientQuotas,
    ClientQuotas,
    CreatedAcls,
    UserScramCredentials,
)
from kafkacore.admin.time_limit import TimeLimit, checked_timeout_ms
from kafkacore.admin.tokens import DelegationToken, TokenAdmin
from kafkacore.admin.topics import (
    CreatedTopics,
    DeletedTopics,
    NewTopics,
    TopicAdmin,
    TopicDescription,
    TopicPartitionsPage,
)
from kafkacore.admin.transactions import (
    AbortTransactionSpec,
    FencedProducer,
    HangingTransaction,
    PartitionProducerState,
    TransactionAdmin,
    TransactionDescription,
    TransactionListing,
)
from kafkacore.admin.users import UserScramCredentialDeletion, UserScramCredentialUpsertion
from kafkacore.client import bootstrap_client
from kafkacore.client.client_metrics import ClientMetrics, metrics_registry
from kafkacore.client.config import refuse_positional, resolve, servers_text
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import BrokerResponseError, NoError
from kafkacore.protocol import ApiKey
from kafkacore.protocol.generated.create_partitions import CreatePartitionsResponse
from kafkacore.protocol.generated.elect_leaders import ElectLeadersResponse
from kafkacore.protocol.message import RequestMessage, ResponseT
from kafkacore.structs import (
    IsolationLevel,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    TopicPartition,
    TopicPartitionReplica,
    partition_name,
)
from kafkacore.wire import Uuid
from kafkacore.wire.copying import refuse_copy

if TYPE_CHECKING:
    from uuid import UUID

    from kafkacore.admin.config_types import AdminConfig


class KafkaAdminClient:
    """A client that manages the topics, groups, configurations, access control and brokers of a cluster.

    Any thread may use it, and calls of several threads run at the same time.

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
    NoBrokersAvailable
        None of ``bootstrap_servers`` responded within ``bootstrap_timeout_ms``.

    Notes
    -----
    Each call takes at most ``timeout_ms``, by default ``request_timeout_ms``. A call sends its requests to
    several brokers at the same time. Like Kafka's Java admin client, it retries after a leader, a coordinator
    or the controller has moved, while a coordinator loads its state, and after a connection was lost. Each
    topic, group, partition or other item of a call succeeds or fails independently. A method without
    ``raise_errors`` raises the first error, unless its documentation says that the result contains errors.

    With ``bootstrap_timeout_ms=0`` the constructor does not connect, and the first call does.
    """

    def __init__(
        self, *positional: object, clock: Clock = SYSTEM_CLOCK, **configs: Unpack[AdminConfig]
    ) -> None:
        self._closed = True
        refuse_positional(type(self).__name__, positional)
        self.config = resolve({}, configs)
        self._clock = clock
        client, metadata = bootstrap_client(self.config, clock)
        self._metrics = metrics_registry(self.config, clock)
        if self._metrics is not None:
            prefix = self.config["metric_group_prefix"] or "admin"
            client.metrics = ClientMetrics(
                self._metrics, prefix, client.connection_count, client.in_flight_request_count
            )
            client.selector.on_authenticated = client.metrics.authentications.note
        self._requester = Requester(
            client, metadata, clock, servers_text(self.config), self.config["request_timeout_ms"]
        )
        self._closed = False
        driver = Driver(
            self._requester,
            ExponentialBackoff(clock, self.config["retry_backoff_ms"], self.config["retry_backoff_max_ms"]),
        )
        self._topics = TopicAdmin(driver)
        self._partitions = PartitionAdmin(driver, self._topics)
        self._configs = ConfigAdmin(driver)
        self._groups = GroupAdmin(driver)
        self._cluster = ClusterAdmin(driver)
        self._transactions = TransactionAdmin(driver)
        self._tokens = TokenAdmin(driver)
        if self.config["bootstrap_timeout_ms"] > 0:
            try:
                self._requester.await_bootstrap(self.config["bootstrap_timeout_ms"])
            except BaseException:
                self.close()
                raise

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
        """Close the connections. Further calls have no effect.

        A call of another thread that waits for a broker raises ``IllegalStateError``.
        """
        if not self._closed:
            self._closed = True
            self._requester.close()
            if self._metrics is not None:
                self._metrics.close()

    def metrics(self, raw: bool = False) -> Any:
        """Return the current metrics of requests and connections, as :meth:`.KafkaProducer.metrics` does.

        Parameters
        ----------
        raw:
            Whether to return the metric objects, which can be read repeatedly, instead of their values.

        Returns
        -------
        dict of dict of float
            Group, such as ``"admin-metrics"`` → name → value. The dict is empty after the client is closed.
        dict of MetricName to KafkaMetric
            If ``raw`` is true.
        None
            With ``metrics_enabled=False``.
        """
        if self._metrics is None:
            return None
        return self._metrics.metrics if raw else self._metrics.snapshot()

    def __reduce__(self) -> NoReturn:
        refuse_copy(self, "its connections belong to this process; create one in each process")

    def __repr__(self) -> str:
        return (
            f"<KafkaAdminClient client_id={self.config['client_id']!r} servers={servers_text(self.config)}>"
        )

    def _send(self, request: RequestMessage[ResponseT], timeout_ms: float | None = None) -> ResponseT:
        return self._requester.send(request, self._timeout(timeout_ms))

    def _timeout(self, timeout_ms: float | None) -> float:
        if timeout_ms is None:
            return float(self.config["request_timeout_ms"])
        return checked_timeout_ms(timeout_ms)

    # ---- Topics ----------------------------------------------------------------------------------------

    def list_topics(self, timeout_ms: float | None = None) -> list[str]:
        """Return the names of all topics.

        Parameters
        ----------
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        """
        return self._topics.names(self._timeout(timeout_ms))

    def describe_topics(
        self, topics: Iterable[str | Uuid | UUID] | None = None, timeout_ms: float | None = None
    ) -> list[TopicDescription]:
        """Describe topics: their ids, partitions, leaders and replicas.

        Parameters
        ----------
        topics:
            Names, or ids (Kafka 3.1) as :class:`~kafkacore.wire.Uuid` (a :class:`uuid.UUID` is accepted too).
            By default all topics are described.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        list of dict
            One dict per topic. A topic that does not exist has the error code 3 and no partitions.
        """
        return self._topics.describe(topics, self._timeout(timeout_ms))

    def describe_topic_partitions(
        self,
        topics: Iterable[str],
        response_partition_limit: int = 2000,
        cursor: Mapping[str, Any] | None = None,
        timeout_ms: float | None = None,
    ) -> TopicPartitionsPage:
        """Describe partitions page by page, with their eligible leader replicas (KIP-966, Kafka 3.7).

        Parameters
        ----------
        topics:
            Names of topics.
        response_partition_limit:
            Maximum number of partitions on a page.
        cursor:
            ``next_cursor`` of the previous page.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            ``{"topics": […], "next_cursor": None or {"topic_name", "partition_index"}}``
        """
        return self._topics.describe_partitions(
            topics, response_partition_limit, cursor, self._timeout(timeout_ms)
        )

    def create_topics(
        self,
        new_topics: NewTopics,
        timeout_ms: float | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
        wait_for_metadata: bool = False,
    ) -> CreatedTopics:
        """Create topics.

        Parameters
        ----------
        new_topics:
            :class:`NewTopic` objects or names; or a mapping of names to ``num_partitions``,
            ``replication_factor``, ``assignments`` and ``configs``.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        validate_only:
            Whether to validate the request without creating anything.
        raise_errors:
            Whether to raise the first error of a topic. Otherwise errors are in the result as ``error_code``.
        wait_for_metadata:
            Whether to wait until every partition of the new topics has a leader.

        Returns
        -------
        dict
            ``{"topics": [{"name", "topic_id", "error_code", "error_message", "num_partitions", …}]}``
        """
        return self._topics.create(
            new_topics, self._timeout(timeout_ms), validate_only, raise_errors, wait_for_metadata
        )

    def delete_topics(
        self, topics: Iterable[str | Uuid | UUID], timeout_ms: float | None = None, raise_errors: bool = True
    ) -> DeletedTopics:
        """Delete topics with all their records.

        Parameters
        ----------
        topics:
            Names, or ids (Kafka 2.8) as :class:`~kafkacore.wire.Uuid` (a :class:`uuid.UUID` is accepted too).
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        raise_errors:
            Whether to raise the first error of a topic. Otherwise errors are in the result as ``error_code``.

        Returns
        -------
        dict
            ``{"topics": [{"name", "topic_id", "error_code", "error_message"}]}``
        """
        return self._topics.delete(topics, self._timeout(timeout_ms), raise_errors)

    def wait_for_topics(self, topic_names: Iterable[str], timeout_ms: float = 10_000) -> None:
        """Wait until topics can be used: until every partition has a leader.

        Parameters
        ----------
        topic_names:
            Names of the topics.
        timeout_ms:
            Time limit in milliseconds.

        Raises
        ------
        KafkaTimeoutError
            A topic is not ready within the time limit.
        """
        self._topics.wait(topic_names, self._timeout(timeout_ms))

    # ---- Partitions, records and offsets ---------------------------------------------------------------

    def create_partitions(
        self,
        topic_partitions: Mapping[str, int | Mapping[str, Any] | NewPartitions],
        timeout_ms: float | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> CreatePartitionsResponse:
        """Add partitions to topics.

        Parameters
        ----------
        topic_partitions:
            Topic → total number of partitions, including those that exist; or
            ``{"count": …, "assignments": [[broker ids], …]}``.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        validate_only:
            Whether to validate the request without changing anything.
        raise_errors:
            Whether to raise the first error of a topic.

        Returns
        -------
        CreatePartitionsResponse
            ``results`` has ``name``, ``error_code`` and ``error_message`` of each topic.
        """
        return self._partitions.create(
            topic_partitions, self._timeout(timeout_ms), validate_only, raise_errors
        )

    def delete_records(
        self,
        records_to_delete: Mapping[TopicPartition, int],
        timeout_ms: float | None = None,
        partition_leader_id: int | None = None,
    ) -> dict[TopicPartition, DeletedRecords]:
        """Delete the oldest records of partitions.

        Parameters
        ----------
        records_to_delete:
            Partition → offset. All records before it are deleted; -1 deletes all records.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        partition_leader_id:
            Broker that receives one request for all partitions. By default, each leader receives a request
            for its partitions.

        Returns
        -------
        dict
            Partition → ``{"partition_index", "low_watermark", "error_code"}``
        """
        return self._partitions.delete_records(
            records_to_delete, partition_leader_id, self._timeout(timeout_ms)
        )

    def list_partition_offsets(
        self,
        topic_partition_specs: Mapping[TopicPartition, OffsetSpec | int],
        isolation_level: IsolationLevel | str = IsolationLevel.READ_UNCOMMITTED,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Look up offsets by name or by time.

        Parameters
        ----------
        topic_partition_specs:
            Partition → :class:`OffsetSpec`, or a timestamp in milliseconds since the epoch. A timestamp
            selects the first record at or after that time.
        isolation_level:
            With ``READ_COMMITTED``, ``OffsetSpec.LATEST`` is the last stable offset.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Partition → :class:`~kafkacore.structs.OffsetAndTimestamp`. The offset is -1 if no
            record is at or after the timestamp.
        """
        return self._partitions.offsets(topic_partition_specs, isolation_level, self._timeout(timeout_ms))

    def elect_leaders(
        self,
        election_type: int,
        topic_partitions: TopicPartitions = None,
        timeout_ms: float | None = None,
        raise_errors: bool = True,
    ) -> ElectLeadersResponse:
        """Elect leaders of partitions.

        Parameters
        ----------
        election_type:
            0 elects the preferred replicas. 1 elects any replica (unclean), which may lose records.
        topic_partitions:
            Topic → partition numbers; or names of topics; by default all partitions.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        raise_errors:
            Whether to raise the first error of a partition, except ``ElectionNotNeededError``.

        Returns
        -------
        ElectLeadersResponse
            ``replica_election_results`` has the outcome of each partition.
        """
        return self._partitions.elect_leaders(
            election_type, topic_partitions, self._timeout(timeout_ms), raise_errors
        )

    def alter_partition_reassignments(
        self, reassignments: Mapping[TopicPartition, Iterable[int] | None], timeout_ms: float | None = None
    ) -> dict[TopicPartition, type[BrokerResponseError] | None]:
        """Change the brokers that hold replicas of partitions.

        Parameters
        ----------
        reassignments:
            Partition → ids of its new replicas, the preferred leader first; ``None`` cancels a reassignment.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Partition → ``None``, or the class of the error.
        """
        return self._partitions.alter_reassignments(reassignments, self._timeout(timeout_ms))

    def list_partition_reassignments(
        self,
        topic_partitions: Mapping[str, Iterable[int]] | Iterable[TopicPartition] | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, Reassignment]:
        """List the reassignments that are in progress.

        Parameters
        ----------
        topic_partitions:
            Topic → partition numbers, or partitions; by default all.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Partition → ``{"replicas", "adding_replicas", "removing_replicas"}``, each a list of broker ids.
        """
        return self._partitions.list_reassignments(topic_partitions, self._timeout(timeout_ms))

    # ---- Configurations --------------------------------------------------------------------------------

    def describe_configs(
        self,
        config_resources: Iterable[ConfigResource],
        include_synonyms: bool = False,
        config_filter: ConfigFilterType | str = "modified",
        raise_errors: bool = True,
        timeout_ms: float | None = None,
    ) -> ConfigDescriptions:
        """Describe configurations.

        Parameters
        ----------
        config_resources:
            The resources. ``configs`` of a resource names the values to describe; ``None`` stands for all.
        include_synonyms:
            Whether to list all sources that may set each value.
        config_filter:
            ``modified`` for values that are set for the resource, ``dynamic`` for values that can be altered,
            ``default``, ``static``, or ``all``.
        raise_errors:
            Whether to raise the first error of a resource. Otherwise the dict of a resource with an error is
            empty, as in kafka-python.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            ``{"topic": {"orders": {"retention.ms": {"value", "config_source", "read_only", …}}}}``
        """
        return self._configs.describe(
            config_resources, include_synonyms, config_filter, raise_errors, self._timeout(timeout_ms)
        )

    def alter_configs(
        self,
        config_resources: Iterable[ConfigResource],
        validate_only: bool = False,
        raise_on_unknown: bool = True,
        incremental: bool | None = None,
        timeout_ms: float | None = None,
    ) -> dict[str, dict[str, str]]:
        """Set, delete, append and subtract configuration values.

        Parameters
        ----------
        config_resources:
            ``configs`` of each resource maps names to values, or to pairs of an
            :class:`AlterConfigOp` and a value.
        validate_only:
            Whether to validate the request without changing anything.
        raise_on_unknown:
            Whether to raise ``ValueError`` for a value that the resource does not have.
        incremental:
            Whether to send IncrementalAlterConfigs; by default, it is sent if the broker supports it.
            Otherwise AlterConfigs is sent. AlterConfigs resets every value that a request leaves out,
            so the request also contains the other modified values of the resource.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            ``{"topic": {"orders": "OK" or the text of the error}}``
        """
        return self._configs.alter(
            config_resources, validate_only, raise_on_unknown, incremental, self._timeout(timeout_ms)
        )

    def reset_configs(
        self,
        config_resources: Iterable[ConfigResource],
        validate_only: bool = False,
        raise_on_unknown: bool = True,
        incremental: bool | None = None,
        timeout_ms: float | None = None,
    ) -> dict[str, dict[str, str]]:
        """Reset configuration values to their defaults.

        Parameters
        ----------
        config_resources:
            ``configs`` of each resource names the values to reset; ``None`` resets all modified values.
        validate_only:
            Whether to validate the request without changing anything.
        raise_on_unknown:
            Whether to raise ``ValueError`` for a value that the resource does not have.
        incremental:
            Whether to send IncrementalAlterConfigs; by default, it is sent if the broker supports it.
            Otherwise AlterConfigs is sent. AlterConfigs resets every value that a request leaves out,
            so the request also contains the other modified values of the resource.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            ``{"topic": {"orders": "OK" or the text of the error}}``
        """
        return self._configs.reset(
            config_resources, validate_only, raise_on_unknown, incremental, self._timeout(timeout_ms)
        )

    def list_config_resources(
        self,
        resource_types: Iterable[ConfigResourceType | str] | None = None,
        timeout_ms: float | None = None,
    ) -> dict[str, list[str]]:
        """List the resources that have a configuration (Kafka 4.1).

        Parameters
        ----------
        resource_types:
            Types to list; by default all.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Type in lower case → names of the resources.
        """
        return self._configs.list_resources(resource_types, self._timeout(timeout_ms))

    def list_client_metrics_resources(self, timeout_ms: float | None = None) -> list[str]:
        """List the client metrics subscriptions (KIP-714).

        Parameters
        ----------
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        """
        found = self.list_config_resources([ConfigResourceType.CLIENT_METRICS], timeout_ms)
        return found.get("client_metrics", [])

    # ---- Groups ----------------------------------------------------------------------------------------

    def list_groups(
        self,
        broker_ids: Iterable[int] | None = None,
        states_filter: Iterable[str] | None = None,
        types_filter: Iterable[str] | None = None,
        timeout_ms: float | None = None,
    ) -> list[GroupListing]:
        """List the groups of the cluster.

        Parameters
        ----------
        broker_ids:
            Brokers to ask for the groups that they coordinate; by default all.
        states_filter:
            :class:`GroupState` members or their names (Kafka 2.6).
        types_filter:
            :class:`GroupType` members or their names (Kafka 4.0).
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        list of dict
            ``{"group_id", "protocol_type", "group_state", "group_type"}`` of each group.
        """
        return self._groups.listings(broker_ids, states_filter, types_filter, self._timeout(timeout_ms))

    def describe_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe groups of the classic and of the consumer protocol (KIP-848), and their members.

        Parameters
        ----------
        group_ids:
            Names of the groups.
        group_coordinator_id:
            Broker to ask; by default the coordinator is looked up.
        include_authorized_operations:
            Has no effect; it exists for compatibility with kafka-python. The result always has the allowed
            operations.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Group → dict. If the group does not exist, ``error`` is set.
        """
        return self._groups.describe(group_ids, group_coordinator_id, self._timeout(timeout_ms))

    def delete_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        timeout_ms: float | None = None,
    ) -> dict[str, str]:
        """Delete groups without members, and their committed offsets.

        Parameters
        ----------
        group_ids:
            Names of the groups.
        group_coordinator_id:
            Broker to ask; by default the coordinator is looked up.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Group → ``"OK"``, or the name of the error, such as ``"NonEmptyGroupError"``.
        """
        return self._groups.delete(group_ids, group_coordinator_id, self._timeout(timeout_ms))

    def remove_group_members(
        self,
        group_id: str,
        members: Iterable[MemberToRemove],
        group_coordinator_id: int | None = None,
        timeout_ms: float | None = None,
    ) -> dict[str, type[BrokerResponseError]]:
        """Remove members from a group, which then rebalances.

        Parameters
        ----------
        group_id:
            Name of the group.
        members:
            :class:`MemberToRemove` objects.
        group_coordinator_id:
            Broker to ask; by default the coordinator is looked up.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Id of each member → class of the error, or ``NoError``.
        """
        return self._groups.remove_members(group_id, members, group_coordinator_id, self._timeout(timeout_ms))

    def list_group_offsets(
        self,
        group_specs: Mapping[str, Iterable[TopicPartition] | None] | Iterable[str] | str,
        timeout_ms: float | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Return the committed offsets of one or several groups.

        Parameters
        ----------
        group_specs:
            Group → partitions, or ``None`` for all partitions; or names of groups.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Group → partition → :class:`~kafkacore.structs.OffsetAndMetadata`. Its offset is -1 if the group
            has not committed an offset for the partition.
        """
        if isinstance(group_specs, str):
            group_specs = [group_specs]
        if not isinstance(group_specs, Mapping):
            group_specs = dict.fromkeys(names("group_specs", group_specs))
        return self._groups.list_offsets(group_specs, self._timeout(timeout_ms))

    def lag_reader(self, groups: str = ".*", topics: str = ".*") -> LagReader:
        """Return an object that reads the lag of groups, as ``kafkacore lag-exporter`` does.

        Parameters
        ----------
        groups, topics:
            Regular expressions that match the whole names.

        Raises
        ------
        re.error
            A regular expression is invalid.
        """
        return LagReader(self._groups, self._partitions, self._clock, re.compile(groups), re.compile(topics))

    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group_coordinator_id: int | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, type[BrokerResponseError]]:
        """Commit offsets for a group without active members.

        Parameters
        ----------
        group_id:
            Name of the group. A group that does not exist is created.
        offsets:
            Partition → offset of the next record to read, and metadata.
        group_coordinator_id:
            Broker to ask; by default the coordinator is looked up.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Partition → class of the error, or ``NoError``. The error is ``UnknownMemberIdError`` if the
            group has active members.
        """
        return self._groups.alter_offsets(group_id, offsets, group_coordinator_id, self._timeout(timeout_ms))

    def reset_group_offsets(
        self,
        group_id: str,
        offset_specs: Mapping[TopicPartition, OffsetSpec | OffsetTimestamp | int],
        group_coordinator_id: int | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, ResetOffset]:
        """Move the committed offsets of a group without active members.

        Parameters
        ----------
        group_id:
            Name of the group.
        offset_specs:
            Partition → :class:`OffsetSpec`, :class:`OffsetTimestamp` or an offset. An offset outside of
            the log is replaced by the start or the end of the log. A time after the last record stands
            for the end of the log.
        group_coordinator_id:
            Broker to ask; by default the coordinator is looked up.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Partition → ``{"error": class of the error or NoError, "offset": committed offset}``
        """
        return self._reset_group_offsets(
            group_id,
            by_partition("offset_specs", offset_specs, "OffsetSpec, OffsetTimestamp or offsets"),
            group_coordinator_id,
            self._timeout(timeout_ms),
        )

    def _reset_group_offsets(
        self,
        group_id: str,
        specs: Mapping[TopicPartition, OffsetSpec | OffsetTimestamp | int],
        coordinator_id: int | None,
        timeout_ms: float,
    ) -> dict[TopicPartition, ResetOffset]:
        looked_up = {tp: spec for tp, spec in specs.items() if isinstance(spec, OffsetSpec | OffsetTimestamp)}
        for tp, spec in specs.items():
            if not isinstance(spec, int) or isinstance(spec, bool):
                raise TypeError(
                    f"{partition_name(tp)}: {spec!r} is not an OffsetSpec, OffsetTimestamp or offset"
                )
        if not specs:
            return {}
        level = IsolationLevel.READ_UNCOMMITTED
        limit = TimeLimit(self._requester.clock, timeout_ms)
        earliest = self._partitions.offsets(dict.fromkeys(specs, OffsetSpec.EARLIEST), level, timeout_ms)
        latest = self._partitions.offsets(dict.fromkeys(specs, OffsetSpec.LATEST), level, limit.left_ms)
        found = self._partitions.offsets(looked_up, level, limit.left_ms) if looked_up else {}
        committed = self._groups.list_offsets({group_id: list(specs)}, limit.left_ms)[group_id]
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for tp, spec in specs.items():
            offset = found[tp].offset if tp in found else int(spec)
            end = latest[tp].offset
            offset = end if offset < 0 else min(max(offset, earliest[tp].offset), end)
            offsets[tp] = OffsetAndMetadata(offset, committed[tp].metadata if tp in committed else "")
        errors = self._groups.alter_offsets(group_id, offsets, coordinator_id, limit.left_ms)
        return {tp: {"error": error, "offset": offsets[tp].offset} for tp, error in errors.items()}

    def delete_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        group_coordinator_id: int | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, type[BrokerResponseError]]:
        """Delete committed offsets of topics that no member is subscribed to.

        Parameters
        ----------
        group_id:
            Name of the group.
        partitions:
            Partitions whose offsets are deleted.
        group_coordinator_id:
            Broker to ask; by default the coordinator is looked up.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Partition → class of the error, or ``NoError``.
        """
        return self._groups.delete_offsets(
            group_id, partitions, group_coordinator_id, self._timeout(timeout_ms)
        )

    # ---- Transactions and producers --------------------------------------------------------------------

    def list_transactions(
        self,
        broker_ids: Iterable[int] | None = None,
        producer_id_filters: Iterable[int] | None = None,
        state_filters: Iterable[str] | None = None,
        duration_filter_ms: int | None = None,
        transactional_id_pattern: str | None = None,
        timeout_ms: float | None = None,
    ) -> dict[int, list[TransactionListing]]:
        """List the transactions of the cluster.

        Parameters
        ----------
        broker_ids:
            Brokers to ask for the transactions that they coordinate; by default all.
        producer_id_filters:
            Ids of the producers whose transactions are listed; by default all.
        state_filters:
            :class:`TransactionState` members or their names.
        duration_filter_ms:
            Minimum age of the transactions in milliseconds (Kafka 3.8).
        transactional_id_pattern:
            Regular expression for the transactional ids (Kafka 4.1).
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Id of the broker → transactions.
        """
        return self._transactions.listings(
            broker_ids,
            producer_id_filters,
            state_filters,
            duration_filter_ms,
            transactional_id_pattern,
            self._timeout(timeout_ms),
        )

    def describe_transactions(
        self, transactional_ids: Iterable[str], timeout_ms: float | None = None
    ) -> dict[str, TransactionDescription]:
        """Describe the transactions of transactional ids.

        Parameters
        ----------
        transactional_ids:
            The ids.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Raises
        ------
        TransactionalIdNotFoundError
            An id is unknown to its coordinator.
        """
        return self._transactions.describe(transactional_ids, self._timeout(timeout_ms))

    def find_hanging_transactions(
        self,
        broker_ids: Iterable[int] | None = None,
        max_transaction_timeout_ms: int = 900_000,
        timeout_ms: float | None = None,
    ) -> list[HangingTransaction]:
        """Find transactions that have been open for longer than the brokers permit.

        Parameters
        ----------
        broker_ids:
            Brokers to ask; by default all.
        max_transaction_timeout_ms:
            ``transaction.max.timeout.ms`` of the brokers. A transaction hangs if it has been open for at
            least five minutes longer than this.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        """
        return self._transactions.find_hanging(
            broker_ids, max_transaction_timeout_ms, self._timeout(timeout_ms)
        )

    def describe_producers(
        self,
        partitions: Iterable[TopicPartition],
        broker_id: int | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, PartitionProducerState]:
        """Describe the producers that write to partitions.

        Parameters
        ----------
        partitions:
            The partitions.
        broker_id:
            Replica to ask; by default the leader of each partition.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        """
        return self._transactions.describe_producers(partitions, broker_id, self._timeout(timeout_ms))

    def abort_transaction(self, spec: AbortTransactionSpec, timeout_ms: float | None = None) -> None:
        """Abort a transaction that hangs on a partition.

        Parameters
        ----------
        spec:
            The partition, and the producer's id and epoch.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        """
        self._transactions.abort(spec, self._timeout(timeout_ms))

    def fence_producers(
        self, transactional_ids: Iterable[str], timeout_ms: float | None = None
    ) -> dict[str, FencedProducer]:
        """Fence the producers of transactional ids, which aborts their open transactions.

        Parameters
        ----------
        transactional_ids:
            The ids.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Id → the producer id and epoch that are valid from now on.
        """
        return self._transactions.fence(transactional_ids, self._timeout(timeout_ms))

    # ---- Cluster ---------------------------------------------------------------------------------------

    def describe_cluster(self, timeout_ms: float | None = None) -> ClusterDescription:
        """Describe the cluster: its id, its controller and its brokers.

        Parameters
        ----------
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        """
        return self._cluster.describe(self._timeout(timeout_ms))

    def describe_log_dirs(
        self,
        topic_partitions: Mapping[str, Iterable[int]] | Iterable[str] | None = None,
        brokers: Iterable[int] | None = None,
        timeout_ms: float | None = None,
    ) -> list[BrokerLogDirs]:
        """Describe the log directories of brokers, and the sizes of partitions in them.

        Parameters
        ----------
        topic_partitions:
            Topic → partition numbers, or names of topics; by default all partitions.
        brokers:
            Ids of the brokers; by default all.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        list of dict
            ``{"broker": id, "log_dirs": [{"log_dir", "topics", "total_bytes", "usable_bytes", …}]}``
        """
        wanted = None
        limit = TimeLimit(self._requester.clock, self._timeout(timeout_ms))
        if topic_partitions is not None:
            wanted = self._partitions.partitions(topic_partitions, limit.left_ms)
        return self._cluster.log_dirs(wanted, brokers, limit.left_ms)

    def alter_replica_log_dirs(
        self,
        replica_assignments: Mapping[TopicPartitionReplica, str] | Mapping[tuple[str, int, int], str],
        timeout_ms: float | None = None,
    ) -> dict[TopicPartitionReplica, type[BrokerResponseError]]:
        """Move replicas to other log directories of their brokers.

        Parameters
        ----------
        replica_assignments:
            Topic, partition and broker → absolute path of the log directory.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Replica → class of the error, or ``NoError``.
        """
        return self._cluster.alter_replica_log_dirs(replica_assignments, self._timeout(timeout_ms))

    def describe_metadata_quorum(self, timeout_ms: float | None = None) -> QuorumDescription:
        """Describe the KRaft quorum: its leader, voters and observers.

        Parameters
        ----------
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        """
        return self._cluster.quorum(self._timeout(timeout_ms))

    def describe_features(
        self, send_request_to_controller: bool = False, timeout_ms: float | None = None
    ) -> dict[str, FeatureDescription]:
        """Return the supported and the finalized levels of features, such as ``metadata.version`` (KIP-584).

        Parameters
        ----------
        send_request_to_controller:
            Whether to ask the controller instead of any broker.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        """
        return self._cluster.features(send_request_to_controller, self._timeout(timeout_ms))

    def update_features(
        self,
        feature_updates: Mapping[str, int | tuple[Any, int]],
        validate_only: bool = False,
        timeout_ms: float = 60_000,
    ) -> dict[str, str]:
        """Change the finalized levels of features.

        Parameters
        ----------
        feature_updates:
            Feature → level, or a pair of an :class:`UpdateFeatureType` and a level. A level below
            1 deletes the feature.
        validate_only:
            Whether to validate the request without changing anything.
        timeout_ms:
            Time limit in milliseconds.

        Returns
        -------
        dict
            Feature → ``"OK"``, or the text of the error.
        """
        return self._cluster.update_features(feature_updates, validate_only, self._timeout(timeout_ms))

    def api_versions(self, timeout_ms: float | None = None) -> dict[ApiKey, tuple[int, int]]:
        """Return the oldest and the newest version of every API that the cluster serves.

        Parameters
        ----------
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        """
        return self._cluster.api_versions(None, self._timeout(timeout_ms))

    def get_broker_version_data(
        self, broker_id: int, timeout_ms: float | None = None
    ) -> dict[ApiKey, tuple[int, int]]:
        """Return the oldest and the newest version of every API that one broker serves.

        Parameters
        ----------
        broker_id:
            Id of the broker.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        """
        return self._cluster.api_versions(integer("broker_id", broker_id), self._timeout(timeout_ms))

    # ---- Delegation tokens -----------------------------------------------------------------------------

    def create_delegation_token(
        self,
        renewers: Iterable[str] = (),
        owner: str | None = None,
        max_lifetime_ms: int = -1,
        timeout_ms: float | None = None,
    ) -> DelegationToken:
        """Create a delegation token (KIP-48).

        Parameters
        ----------
        renewers:
            Principals that may renew the token, such as ``User:alice``.
        owner:
            Principal that the token is for (Kafka 3.3); by default the client's user.
        max_lifetime_ms:
            Maximum lifetime in milliseconds; -1 for the broker's setting.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        """
        return self._tokens.create(renewers, owner, max_lifetime_ms, self._timeout(timeout_ms))

    def renew_delegation_token(
        self, hmac: bytes, renew_period_ms: int = -1, timeout_ms: float | None = None
    ) -> int:
        """Renew a delegation token.

        Parameters
        ----------
        hmac:
            The token's secret.
        renew_period_ms:
            Time until the token expires, in milliseconds; -1 for the broker's setting.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        int
            Time when the token expires, in milliseconds since the epoch.
        """
        return self._tokens.renew(hmac, renew_period_ms, self._timeout(timeout_ms))

    def expire_delegation_token(
        self, hmac: bytes, expiry_period_ms: int = -1, timeout_ms: float | None = None
    ) -> int:
        """Change the time when a delegation token expires.

        Parameters
        ----------
        hmac:
            The token's secret.
        expiry_period_ms:
            Time until the token expires, in milliseconds; with -1, the token expires at once.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        int
            Time when the token expires, in milliseconds since the epoch.
        """
        return self._tokens.expire(hmac, expiry_period_ms, self._timeout(timeout_ms))

    def describe_delegation_tokens(
        self, owners: Iterable[str] | None = None, timeout_ms: float | None = None
    ) -> list[DelegationToken]:
        """Describe the delegation tokens that the client's user may see.

        Parameters
        ----------
        owners:
            Principals whose tokens are described; by default all.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.
        """
        return self._tokens.describe(owners, self._timeout(timeout_ms))

    # ---- Access control ----------------------------------------------------------------------------------

    def describe_acls(
        self, acl_filter: ACLFilter, timeout_ms: float | None = None
    ) -> tuple[list[ACL], type[NoError]]:
        """Return the access control entries that match a filter.

        Parameters
        ----------
        acl_filter:
            The filter.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

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
        response = self._send(acl_requests.describe(acl_filter), timeout_ms)
        return acl_requests.described(response, acl_filter), NoError

    def create_acls(
        self, acls: Iterable[ACL], raise_errors: bool = False, timeout_ms: float | None = None
    ) -> CreatedAcls:
        """Create access control entries. Creating an entry that already exists succeeds.

        Parameters
        ----------
        acls:
            The entries to create.
        raise_errors:
            Whether to raise the first error of an entry, with the broker's message.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            ``{"succeeded": [entries that exist now], "failed": [error class of each failed entry]}``
        """
        entries = listed("acls", acls, "ACL objects")
        response = self._send(acl_requests.create(entries), timeout_ms)
        return acl_requests.created(entries, response, raise_errors)

    def delete_acls(
        self, acl_filters: Iterable[ACLFilter], raise_errors: bool = False, timeout_ms: float | None = None
    ) -> list[tuple[ACLFilter, list[ACL], type[BrokerResponseError]]]:
        """Delete the access control entries that match any of the filters.

        Parameters
        ----------
        acl_filters:
            The filters.
        raise_errors:
            Whether to raise the first error, with the broker's message.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        list
            A tuple per filter: the filter, the deleted entries, and an error class or ``NoError``.
        """
        filters = listed("acl_filters", acl_filters, "ACLFilter objects")
        response = self._send(acl_requests.delete(filters), timeout_ms)
        return acl_requests.deleted(filters, response, raise_errors)

    # ---- Users -------------------------------------------------------------------------------------------

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialDeletion | UserScramCredentialUpsertion],
        raise_errors: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, str | None]:
        """Set and delete SCRAM credentials of users.

        Parameters
        ----------
        alterations:
            The changes. Brokers accept only one change per user in a call.
        raise_errors:
            Whether to raise the first error of a user.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            User → error message, or ``None`` if the change succeeded.
        """
        changes = listed("alterations", alterations, "credential changes")
        response = self._send(user_requests.alter(changes), timeout_ms)
        return user_requests.altered(changes, response, raise_errors)

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, timeout_ms: float | None = None
    ) -> dict[str, UserScramCredentials]:
        """Describe the SCRAM credentials of users.

        Parameters
        ----------
        users:
            Names of the users. By default all users are described.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            User → ``{"error": None or text, "credential_infos": [{"mechanism": ScramMechanism, "iterations":
            int}]}``. For a user that does not exist, ``error`` is set.
        """
        return user_requests.described(self._send(user_requests.describe(users), timeout_ms))

    # ---- Quotas ------------------------------------------------------------------------------------------

    def describe_client_quotas(
        self,
        components: Iterable[ClientQuotaFilterComponent] = (),
        strict: bool = False,
        timeout_ms: float | None = None,
    ) -> list[ClientQuotas]:
        """Return the quotas that match every component. Without components, return all quotas.

        Parameters
        ----------
        components:
            Conditions for the entity of a quota. Each component names an entity type and the entities that
            match.
        strict:
            Whether to leave out quotas whose entity has other entity types as well.
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        list
            Dicts such as ``{"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 1000000.0}}``. The
            name ``None`` stands for the default entity.
        """
        return quota_requests.described(self._send(quota_requests.describe(components, strict), timeout_ms))

    def alter_client_quotas(
        self,
        alterations: Iterable[ClientQuotaAlteration],
        validate_only: bool = False,
        raise_errors: bool = True,
        timeout_ms: float | None = None,
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
        timeout_ms:
            Time limit in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        list
            ``{"entity": {"user": "alice"}, "error": None or text}`` for each entity, in the order of the
            response.
        """
        changes = listed("alterations", alterations, "ClientQuotaAlteration objects")
        response = self._send(quota_requests.alter(changes, validate_only), timeout_ms)
        return quota_requests.altered(changes, response, raise_errors)
