"""The cluster: its brokers, features, metadata quorum and log directories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NotRequired, TypedDict

from kafkacore.admin.arguments import broker_ids, integer, mapping, text
from kafkacore.admin.driver import BY_BROKER_ID, TO_CONTROLLER, Driver, raised_first, to_destination
from kafkacore.admin.requester import ANY, CONTROLLER
from kafkacore.admin.responses import as_member, error_of, error_text, operations
from kafkacore.admin.time_limit import TimeLimit
from kafkacore.client.api_versions import api_versions_request
from kafkacore.errors import (
    BrokerResponseError,
    KafkaError,
    NotControllerError,
    UnsupportedVersionError,
    for_code,
)
from kafkacore.protocol import ApiKey, RequestBuilder
from kafkacore.protocol.generated.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacore.protocol.generated.describe_cluster import DescribeClusterRequest
from kafkacore.protocol.generated.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kafkacore.protocol.generated.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kafkacore.protocol.message import ZERO_UUID
from kafkacore.structs import EnumHelper, TopicPartitionReplica

_QUORUM_TOPIC = "__cluster_metadata"
#: First version of DescribeCluster that can list fenced brokers (KIP-1073).
_FENCED_FROM = 2
#: First version of UpdateFeatures that can validate without updating.
_VALIDATION_FROM = 1


class UpdateFeatureType(EnumHelper, IntEnum):
    """How the level of a feature is changed. An unsafe downgrade may lose metadata."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class BrokerDescription(TypedDict):
    """A broker in a :class:`ClusterDescription`."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


class ClusterDescription(TypedDict):
    """The result of ``describe_cluster``."""

    cluster_id: str | None
    controller_id: int
    brokers: list[BrokerDescription]
    authorized_operations: list[str] | None


class FeatureDescription(TypedDict, total=False):
    """A feature in the result of ``describe_features``, with its ranges of levels."""

    supported: tuple[int, int]
    finalized: tuple[int, int]
    finalized_epoch: int | None


class BrokerLogDirs(TypedDict):
    """The log directories of one broker in the result of ``describe_log_dirs``."""

    broker: int
    log_dirs: list[dict[str, Any]]


class QuorumDescription(TypedDict):
    """The result of ``describe_metadata_quorum``."""

    topics: list[dict[str, Any]]
    nodes: NotRequired[list[dict[str, Any]]]


class ClusterAdmin:
    """The cluster operations of the admin client.

    Parameters
    ----------
    driver:
        Sends each request to the brokers that it concerns.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def describe(self, timeout_ms: float) -> ClusterDescription:
        """Describe the cluster. Fenced brokers are included if the broker can list them."""
        request = RequestBuilder(DescribeClusterRequest, _describe_cluster)
        try:
            response = self._driver.requester.send(request, timeout_ms)
        except UnsupportedVersionError:
            return self._described_by_metadata(timeout_ms)
        if response.error_code:
            raise error_of(response.error_code, response.error_message, "the cluster")
        return {
            "cluster_id": response.cluster_id,
            "controller_id": response.controller_id,
            "brokers": [
                {
                    "broker_id": broker.broker_id,
                    "host": broker.host,
                    "port": broker.port,
                    "rack": broker.rack,
                    "is_fenced": broker.is_fenced,
                }
                for broker in response.brokers
            ],
            "authorized_operations": operations(response.cluster_authorized_operations),
        }

    def _described_by_metadata(self, timeout_ms: float) -> ClusterDescription:
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        response = self._driver.requester.send(request, timeout_ms)
        return {
            "cluster_id": response.cluster_id,
            "controller_id": response.controller_id,
            "brokers": [
                {
                    "broker_id": broker.node_id,
                    "host": broker.host,
                    "port": broker.port,
                    "rack": broker.rack,
                    "is_fenced": False,
                }
                for broker in response.brokers
            ],
            "authorized_operations": operations(response.cluster_authorized_operations),
        }

    # ---- Features and versions ---------------------------------------------------------------------------

    def api_versions(self, broker_id: int | None, timeout_ms: float) -> dict[ApiKey, tuple[int, int]]:
        """Return the oldest and the newest version of every API that a broker serves."""
        response = self._api_versions(ANY if broker_id is None else broker_id, timeout_ms)
        known = {int(key) for key in ApiKey}
        return {
            ApiKey(each.api_key): (each.min_version, each.max_version)
            for each in response.api_keys
            if each.api_key in known
        }

    def features(self, ask_controller: bool, timeout_ms: float) -> dict[str, FeatureDescription]:
        """Return the supported and the finalized levels of the features (KIP-584)."""
        response = self._api_versions(CONTROLLER if ask_controller else ANY, timeout_ms)
        epoch = response.finalized_features_epoch
        described: dict[str, FeatureDescription] = {}
        for supported in response.supported_features:
            described[supported.name] = {"supported": (supported.min_version, supported.max_version)}
        for finalized in response.finalized_features:
            feature = described.setdefault(finalized.name, {})
            feature["finalized"] = (finalized.min_version_level, finalized.max_version_level)
            feature["finalized_epoch"] = None if epoch < 0 else epoch
        return described

    def _api_versions(self, destination: int, timeout_ms: float) -> ApiVersionsResponse:
        response = self._driver.requester.send(
            RequestBuilder(ApiVersionsRequest, api_versions_request), timeout_ms, destination
        )
        if response.error_code:
            raise error_of(response.error_code, None, "the versions of the broker's APIs")
        return response

    def update_features(
        self, updates: Mapping[str, Any], validate_only: bool, timeout_ms: float
    ) -> dict[str, str]:
        """Change the finalized levels of features on the controller."""
        updates = mapping("feature_updates", updates, "features to levels")
        # Check all updates before the first request is sent.
        wanted = {feature: _feature_update(feature, update) for feature, update in updates.items()}

        def build(version: int) -> UpdateFeaturesRequest:
            if validate_only and version < _VALIDATION_FROM:
                raise UnsupportedVersionError(
                    "the broker is too old to validate an update of features without applying it"
                )
            return UpdateFeaturesRequest(
                timeout_ms=int(timeout_ms),
                feature_updates=[
                    _feature_update_key(feature, kind, level, version)
                    for feature, (kind, level) in wanted.items()
                ],
                validate_only=validate_only,
            )

        def read(
            response: UpdateFeaturesResponse, asked: Sequence[int]
        ) -> Iterable[tuple[int, dict[str, str]]]:
            if response.error_code:
                raise error_of(response.error_code, response.error_message, "the update of features")
            # Newer versions of the response contain no results if every update succeeded.
            outcomes = dict.fromkeys(updates, "OK")
            for result in response.results:
                if result.error_code:
                    outcomes[result.feature] = str(for_code(result.error_code)(result.error_message or ""))
            yield asked[0], outcomes

        request = RequestBuilder(UpdateFeaturesRequest, build)
        results = self._driver.run(
            TO_CONTROLLER, [0], lambda asked: request, read, timeout_ms, retried=(NotControllerError,)
        )
        return raised_first(results)[0]

    def quorum(self, timeout_ms: float) -> QuorumDescription:
        """Describe the KRaft quorum of the cluster's metadata."""
        topic_class = DescribeQuorumRequest.TopicData
        request = DescribeQuorumRequest(
            topics=[
                topic_class(
                    topic_name=_QUORUM_TOPIC,
                    partitions=[DescribeQuorumRequest.PartitionData(partition_index=0)],
                )
            ]
        )
        response = self._driver.requester.send(request, timeout_ms)
        if response.error_code:
            raise error_of(response.error_code, response.error_message, "the quorum")
        return {
            "topics": [
                {
                    "topic_name": topic.topic_name,
                    "partitions": [_quorum_partition(partition) for partition in topic.partitions],
                }
                for topic in response.topics
            ],
            "nodes": [
                {
                    "node_id": node.node_id,
                    "listeners": [
                        {"name": each.name, "host": each.host, "port": each.port} for each in node.listeners
                    ],
                }
                for node in response.nodes
            ],
        }

    # ---- Log directories ---------------------------------------------------------------------------------

    def log_dirs(
        self,
        topic_partitions: Mapping[str, Iterable[int]] | None,
        brokers: Iterable[int] | None,
        timeout_ms: float,
    ) -> list[BrokerLogDirs]:
        """Describe the log directories of brokers, and the sizes of the partitions in them."""
        limit = TimeLimit(self._driver.requester.clock, timeout_ms)
        ids = (
            self._driver.requester.broker_ids(timeout_ms)
            if brokers is None
            else broker_ids("brokers", brokers)
        )
        topics = (
            None
            if topic_partitions is None
            else [
                DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=list(numbers))
                for topic, numbers in topic_partitions.items()
            ]
        )
        described = self._driver.run(
            BY_BROKER_ID, ids, lambda asked: DescribeLogDirsRequest(topics=topics), _log_dirs, limit.left_ms
        )
        return [
            {"broker": broker, "log_dirs": log_dirs} for broker, log_dirs in raised_first(described).items()
        ]

    def alter_replica_log_dirs(
        self,
        assignments: Mapping[TopicPartitionReplica, str] | Mapping[tuple[str, int, int], str],
        timeout_ms: float,
    ) -> dict[TopicPartitionReplica, type[BrokerResponseError]]:
        """Move replicas between the log directories of their brokers."""
        given = mapping("replica_assignments", assignments, "replicas to paths")
        wanted = {_replica(replica): text("replica_assignments", path) for replica, path in given.items()}
        request_class = AlterReplicaLogDirsRequest

        def build(replicas: Sequence[TopicPartitionReplica]) -> AlterReplicaLogDirsRequest:
            folders: dict[str, dict[str, list[int]]] = {}
            for replica in replicas:
                topics = folders.setdefault(wanted[replica], {})
                topics.setdefault(replica.topic, []).append(replica.partition)
            return request_class(
                dirs=[
                    request_class.AlterReplicaLogDir(
                        path=path,
                        topics=[
                            request_class.AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                            for topic, numbers in topics.items()
                        ],
                    )
                    for path, topics in folders.items()
                ]
            )

        def read(
            response: AlterReplicaLogDirsResponse, replicas: Sequence[TopicPartitionReplica]
        ) -> Iterable[tuple[TopicPartitionReplica, type[BrokerResponseError] | KafkaError]]:
            broker_id = replicas[0].broker_id
            for topic in response.results:
                for partition in topic.partitions:
                    replica = TopicPartitionReplica(topic.topic_name, partition.partition_index, broker_id)
                    yield replica, for_code(partition.error_code)

        return raised_first(self._driver.run(_BY_REPLICA, wanted, build, read, timeout_ms))


_BY_REPLICA = to_destination(lambda replica: int(replica.broker_id))


def _replica(replica: object) -> TopicPartitionReplica:
    if not isinstance(replica, tuple) or len(replica) != 3:
        raise TypeError(f"replica_assignments: {replica!r} is not a TopicPartitionReplica")
    topic, partition, broker_id = replica
    return TopicPartitionReplica(
        text("replica_assignments", topic),
        integer("replica_assignments", partition),
        integer("replica_assignments", broker_id),
    )


def _describe_cluster(version: int) -> DescribeClusterRequest:
    return DescribeClusterRequest(
        include_cluster_authorized_operations=True, include_fenced_brokers=version >= _FENCED_FROM
    )


def _feature_update(feature: str, update: Any) -> tuple[UpdateFeatureType, int]:
    text("feature_updates", feature)
    if isinstance(update, tuple) and len(update) != 2:
        raise ValueError(
            f"feature_updates[{feature!r}] must be a level, or a pair of an UpdateFeatureType and a level"
        )
    kind, level = update if isinstance(update, tuple) else (UpdateFeatureType.UPGRADE, update)
    return as_member(UpdateFeatureType, kind), integer(f"feature_updates[{feature!r}]", level)


def _feature_update_key(
    feature: str, kind: UpdateFeatureType, level: int, version: int
) -> UpdateFeaturesRequest.FeatureUpdateKey:
    key_class = UpdateFeaturesRequest.FeatureUpdateKey
    if version < _VALIDATION_FROM:
        # Version 0 has no types of updates.
        allow = kind in (UpdateFeatureType.SAFE_DOWNGRADE, UpdateFeatureType.UNSAFE_DOWNGRADE)
        return key_class(feature=feature, max_version_level=level, allow_downgrade=allow)
    return key_class(feature=feature, max_version_level=level, upgrade_type=int(kind))


def _quorum_partition(partition: DescribeQuorumResponse.PartitionData) -> dict[str, Any]:
    return {
        "partition_index": partition.partition_index,
        "error": error_text(partition),
        "leader_id": partition.leader_id,
        "leader_epoch": partition.leader_epoch,
        "high_watermark": partition.high_watermark,
        "current_voters": [_replica_state(replica) for replica in partition.current_voters],
        "observers": [_replica_state(replica) for replica in partition.observers],
    }


def _replica_state(replica: DescribeQuorumResponse.ReplicaState) -> dict[str, Any]:
    directory = replica.replica_directory_id
    return {
        "replica_id": replica.replica_id,
        "replica_directory_id": None if directory == ZERO_UUID else str(directory),
        "log_end_offset": replica.log_end_offset,
        "last_fetch_timestamp": replica.last_fetch_timestamp,
        "last_caught_up_timestamp": replica.last_caught_up_timestamp,
    }


def _log_dirs(
    response: DescribeLogDirsResponse, asked: Sequence[int]
) -> Iterable[tuple[int, list[dict[str, Any]]]]:
    if response.error_code:
        raise error_of(response.error_code, None, f"log directories of broker {asked[0]}")
    yield (
        asked[0],
        [
            {
                "error_code": result.error_code,
                "log_dir": result.log_dir,
                "topics": [
                    {
                        "name": topic.name,
                        "partitions": [
                            {
                                "partition_index": partition.partition_index,
                                "partition_size": partition.partition_size,
                                "offset_lag": partition.offset_lag,
                                "is_future_key": partition.is_future_key,
                            }
                            for partition in topic.partitions
                        ],
                    }
                    for topic in result.topics
                ],
                "total_bytes": result.total_bytes,
                "usable_bytes": result.usable_bytes,
                "is_cordoned": result.is_cordoned,
            }
            for result in response.results
        ],
    )
