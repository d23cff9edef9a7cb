"""The services that the broker provides to request handlers, and the type of a handler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.purgatory.change_queue import ChangeQueue
from kafkacore.broker.purgatory.timer import Timer
from kafkacore.broker.quota import Quotas
from kafkacore.broker.requests._request import (
    ANSWERED_LATER,
    HANG_UP,
    AnsweredLater,
    CloseConnectionError,
    Request,
    RequestContext,
)
from kafkacore.broker.requests.authorization import AuthorizationServices, Authorizer
from kafkacore.broker.requests.long_work import LongWorkServices
from kafkacore.broker.topics.broker_loggers import BrokerLoggers
from kafkacore.broker.topics.config_entries import ConfigServices
from kafkacore.clock import Clock
from kafkacore.protocol.message import RequestMessage
from kafkacore.wire import Cursor

if TYPE_CHECKING:
    from kafkacore.broker.config.dynamic_config import DynamicConfigs
    from kafkacore.broker.coordinator.coordinator_log import CoordinatorLog
    from kafkacore.broker.group.group_coordinator import GroupCoordinator
    from kafkacore.broker.group.offset_manager import OffsetManager
    from kafkacore.broker.group.replay import LoadedPartition
    from kafkacore.broker.metadata.cluster_metadata import ClusterMetadata
    from kafkacore.broker.replica.fetch_session import FetchManager
    from kafkacore.broker.replica.replica_manager import ReplicaManager
    from kafkacore.broker.requests.authorizer_log import AuthorizerLog
    from kafkacore.broker.storage.producer_ids import ProducerIdManager
    from kafkacore.broker.topics.cluster_state import ClusterState
    from kafkacore.broker.topics.topic_catalog import TopicCatalog
    from kafkacore.broker.transaction.coordinator_state import Transactions
    from kafkacore.broker.transaction.marker_writer import AppendMarker
    from kafkacore.broker.transaction.transaction_coordinator import TransactionCoordinator

__all__ = [
    "ANSWERED_LATER",
    "HANG_UP",
    "AnsweredLater",
    "AnyApiHandler",
    "ApiHandler",
    "BrokerServices",
    "CloseConnectionError",
    "ConfigHandlerServices",
    "ConfigResourceServices",
    "FetchServices",
    "GroupServices",
    "Interceptor",
    "MetadataServices",
    "OnResponse",
    "ProduceServices",
    "QuorumServices",
    "Request",
    "RequestContext",
    "TopicServices",
    "TransactionHandlerServices",
]

#: Function that is called with a request and its response. The response is given as the buffers of its frame
#: without the size field, or as ``None`` for no response.
OnResponse = Callable[[Request, "list[bytes | memoryview] | None"], None]


class MetadataServices(AuthorizationServices, Protocol):
    """Services for the handlers of access control entries, users and quotas."""

    @property
    def metadata(self) -> ClusterMetadata: ...


class ConfigResourceServices(MetadataServices, Protocol):
    """Services for the handlers that list the resources with a configuration."""

    @property
    def cluster(self) -> ClusterState: ...

    @property
    def topics(self) -> TopicCatalog: ...


class ConfigHandlerServices(ConfigServices, MetadataServices, Protocol):
    """Services for the handlers that describe and alter configurations."""

    @property
    def loggers(self) -> BrokerLoggers: ...


class QuorumServices(MetadataServices, Protocol):
    """Services for the handler of DescribeQuorum."""

    @property
    def clock(self) -> Clock: ...

    @property
    def cluster(self) -> ClusterState: ...


class TopicServices(AuthorizationServices, LongWorkServices, Protocol):
    """Services for the handlers of topics and partitions."""

    @property
    def cluster(self) -> ClusterState: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def dynamic_configs(self) -> DynamicConfigs: ...

    @property
    def quotas(self) -> Quotas: ...

    @property
    def replica_manager(self) -> ReplicaManager: ...

    @property
    def topics(self) -> TopicCatalog: ...


class GroupServices(AuthorizationServices, Protocol):
    """Services for the handlers of consumer groups and their offsets."""

    @property
    def cluster(self) -> ClusterState: ...

    @property
    def coordinator_log(self) -> CoordinatorLog[LoadedPartition]: ...

    @property
    def groups(self) -> GroupCoordinator: ...

    @property
    def offsets(self) -> OffsetManager: ...

    @property
    def topics(self) -> TopicCatalog: ...

    @property
    def transaction_log(self) -> CoordinatorLog[Transactions]: ...

    @property
    def transactions(self) -> TransactionCoordinator: ...


class FetchServices(AuthorizationServices, LongWorkServices, Protocol):
    """Services for the handler of Fetch."""

    @property
    def clock(self) -> Clock: ...

    @property
    def cluster(self) -> ClusterState: ...

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def fetch_sessions(self) -> FetchManager: ...

    @property
    def replica_manager(self) -> ReplicaManager: ...

    @property
    def topics(self) -> TopicCatalog: ...


class ProduceServices(AuthorizationServices, LongWorkServices, Protocol):
    """Services for the handler of Produce."""

    @property
    def transactions(self) -> TransactionCoordinator: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def cluster(self) -> ClusterState: ...

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def replica_manager(self) -> ReplicaManager: ...

    @property
    def topics(self) -> TopicCatalog: ...


class TransactionHandlerServices(AuthorizationServices, Protocol):
    """Services for the handlers of transactional producers."""

    @property
    def append_marker(self) -> AppendMarker: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def cluster(self) -> ClusterState: ...

    @property
    def producer_ids(self) -> ProducerIdManager: ...

    @property
    def replica_manager(self) -> ReplicaManager: ...

    @property
    def topics(self) -> TopicCatalog: ...

    @property
    def transactions(self) -> TransactionCoordinator: ...


@dataclass(slots=True)
class BrokerServices:
    """All services of the broker. Each handler uses the attributes of one ``Protocol`` class above.

    ``authorizer`` is ``None`` if every client may do everything.
    """

    dynamic_configs: DynamicConfigs
    clock: Clock
    cluster_id: str
    topics: TopicCatalog
    cluster: ClusterState
    replica_manager: ReplicaManager
    timer: Timer
    fetch_sessions: FetchManager
    quotas: Quotas
    producer_ids: ProducerIdManager
    coordinator_log: CoordinatorLog[LoadedPartition]
    groups: GroupCoordinator
    offsets: OffsetManager
    transactions: TransactionCoordinator
    transaction_log: CoordinatorLog[Transactions]
    append_marker: AppendMarker
    metadata: ClusterMetadata
    authorizer_log: AuthorizerLog
    authorizer: Authorizer | None = None
    #: Runs long work on another thread, so that it does not block the network thread.
    long_work: ChangeQueue = field(default_factory=ChangeQueue)
    loggers: BrokerLoggers = field(default_factory=BrokerLoggers)

    @property
    def config(self) -> BrokerConfig:
        """The configuration in effect. It can change between two requests."""
        return self.dynamic_configs.current


#: For tests: function that is called in place of a handler, with the request and the handler's function.
Interceptor = Callable[[Request, Callable[[Request], None]], None]


RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


class ApiHandler(NamedTuple, Generic[RequestT, ResponseT]):
    """An API: the versions that this broker serves, and its handler.

    ``handle`` returns the response message, or :data:`ANSWERED_LATER`. ``decode(cursor, version)`` and
    ``encode(response, version, correlation_id)`` replace the generated codecs of the messages.
    """

    request_class: type[RequestMessage[Any]]
    min_version: int
    max_version: int
    handle: Callable[[Request[RequestT], BrokerServices], ResponseT | AnsweredLater]
    decode: Callable[[Cursor, int], RequestT] | None = None
    encode: Callable[[ResponseT, int, int], list[bytes | memoryview]] | None = None


#: A handler of any API.
AnyApiHandler: TypeAlias = ApiHandler[Any, Any]
