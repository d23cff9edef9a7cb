"""Choose the version of a request for a broker (Kafka's ``NodeApiVersions`` and ``ApiVersions``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kafkacore.client.broker_version import broker_version
from kafkacore.errors import UnsupportedVersionError
from kafkacore.installed_version import installed_version
from kafkacore.protocol import ApiKey, RequestMessage
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse

#: First version of each API in which the client itself must apply the throttle time (KIP-219). In older
#: versions, and for other APIs, the broker delays the response. Source: Kafka's ``shouldClientThrottle``.
# fmt: off
THROTTLED_FROM_VERSION: dict[ApiKey, int] = {
    ApiKey.PRODUCE: 6, ApiKey.FETCH: 8, ApiKey.LIST_OFFSETS: 3, ApiKey.METADATA: 6, ApiKey.OFFSET_COMMIT: 4,
    ApiKey.OFFSET_FETCH: 4, ApiKey.FIND_COORDINATOR: 2, ApiKey.JOIN_GROUP: 3, ApiKey.HEARTBEAT: 2,
    ApiKey.LEAVE_GROUP: 2, ApiKey.SYNC_GROUP: 2, ApiKey.DESCRIBE_GROUPS: 2, ApiKey.LIST_GROUPS: 2,
    ApiKey.API_VERSIONS: 2, ApiKey.CREATE_TOPICS: 3, ApiKey.DELETE_TOPICS: 2, ApiKey.DELETE_RECORDS: 1,
    ApiKey.INIT_PRODUCER_ID: 1, ApiKey.ADD_PARTITIONS_TO_TXN: 1, ApiKey.ADD_OFFSETS_TO_TXN: 1,
    ApiKey.END_TXN: 1, ApiKey.TXN_OFFSET_COMMIT: 1,
    ApiKey.DESCRIBE_ACLS: 1, ApiKey.CREATE_ACLS: 1, ApiKey.DELETE_ACLS: 1,
    ApiKey.DESCRIBE_CONFIGS: 2, ApiKey.ALTER_CONFIGS: 1, ApiKey.ALTER_REPLICA_LOG_DIRS: 1,
    ApiKey.DESCRIBE_LOG_DIRS: 1, ApiKey.CREATE_PARTITIONS: 1, ApiKey.CREATE_DELEGATION_TOKEN: 1,
    ApiKey.RENEW_DELEGATION_TOKEN: 1, ApiKey.EXPIRE_DELEGATION_TOKEN: 1, ApiKey.DESCRIBE_DELEGATION_TOKEN: 1,
    ApiKey.DELETE_GROUPS: 1, ApiKey.ELECT_LEADERS: 0, ApiKey.INCREMENTAL_ALTER_CONFIGS: 0,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 0, ApiKey.LIST_PARTITION_REASSIGNMENTS: 0, ApiKey.OFFSET_DELETE: 0,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: 0, ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: 0,
}
# fmt: on
#: Version of the client, without characters for which a broker rejects the request.
_SOFTWARE_VERSION = re.sub(r"[^a-zA-Z0-9.-]", ".", installed_version()).strip(".-") or "unknown"


def should_client_throttle(api_key: ApiKey, version: int) -> bool:
    """Return whether the client must apply the throttle time of a response in this version."""
    return version >= THROTTLED_FROM_VERSION.get(api_key, 1 << 15)


def api_versions_request(request_version: int) -> ApiVersionsRequest:
    """Create the first request of a connection. From version 3, it names the client software (KIP-511)."""
    if request_version < 3:
        return ApiVersionsRequest()
    return ApiVersionsRequest(client_software_name="kafkacore", client_software_version=_SOFTWARE_VERSION)


class NodeApiVersions:
    """The API versions and features that one broker supports.

    Parameters
    ----------
    response:
        The ApiVersions response of the broker.

    Attributes
    ----------
    finalized_features:
        Feature → level that is finalized for the cluster (KIP-584), such as ``transaction.version``.
    finalized_features_epoch:
        Epoch that grows with each change of the features; -1 if the broker did not return features.
    """

    def __init__(self, response: ApiVersionsResponse) -> None:
        self._ranges = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        self.finalized_features_epoch = response.finalized_features_epoch
        self.finalized_features = {
            feature.name: feature.max_version_level for feature in response.finalized_features
        }
        #: Cache of :meth:`latest_usable_version`.
        self._usable: dict[tuple[type[RequestMessage[Any]], int | None], int] = {}

    @property
    def broker_version(self) -> tuple[int, ...]:
        """The release of Apache Kafka to which the versions correspond, such as ``(4, 3)``."""
        return broker_version({api_key: newest for api_key, (_, newest) in self._ranges.items()})

    def supported_range(self, api_key: ApiKey) -> tuple[int, int] | None:
        """Return the oldest and newest version of an API; ``None`` if the broker does not support the API."""
        return self._ranges.get(api_key)

    def latest_usable_version(
        self, request: type[RequestMessage[Any]], max_version: int | None = None
    ) -> int:
        """Return the newest version of a request that the broker and the client support.

        Parameters
        ----------
        request:
            The class of the request.
        max_version:
            Highest version that may be returned; ``None`` for the highest version of the class.

        Raises
        ------
        UnsupportedVersionError
            The broker does not support the API, or broker and client have no version in common.
        """
        known = self._usable.get((request, max_version))
        if known is not None:
            return known
        newest = request.MAX_VERSION if max_version is None else min(request.MAX_VERSION, max_version)
        theirs = self._ranges.get(request.API_KEY)
        if theirs is None:
            raise UnsupportedVersionError(f"the broker does not support {request.NAME}")
        version = min(newest, theirs[1])
        if version < max(request.MIN_VERSION, theirs[0]):
            raise UnsupportedVersionError(
                f"the broker supports versions {theirs[0]} to {theirs[1]} of {request.NAME}, but the client "
                f"requires a version from {request.MIN_VERSION} to {newest}"
            )
        self._usable[request, max_version] = version
        return version


class ApiVersions:
    """The API versions of all connected brokers.

    Attributes
    ----------
    finalized_features:
        The features with the highest epoch that any broker has returned so far. They are kept when all
        connections are closed.
    on_first:
        Function that is called once, with the release of the first broker that responds; or ``None``.
    """

    def __init__(self) -> None:
        self.on_first: Callable[[tuple[int, ...]], None] | None = None
        #: Versions of the brokers, by node id.
        self.by_node: dict[int, NodeApiVersions] = {}
        self.finalized_features: Mapping[str, int] = {}
        self._finalized_features_epoch = -1

    def update(self, node_id: int, versions: NodeApiVersions) -> None:
        self.by_node[node_id] = versions
        if self.on_first is not None:
            on_first, self.on_first = self.on_first, None
            on_first(versions.broker_version)
        if versions.finalized_features_epoch > self._finalized_features_epoch:
            self._finalized_features_epoch = versions.finalized_features_epoch
            self.finalized_features = versions.finalized_features

    def remove(self, node_id: int) -> None:
        self.by_node.pop(node_id, None)

    def get(self, node_id: int) -> NodeApiVersions | None:
        return self.by_node.get(node_id)

    def rename(self, node_id: int, new_node_id: int) -> None:
        versions = self.by_node.pop(node_id, None)
        if versions is not None:
            self.by_node[new_node_id] = versions
