"""One request on its way through the broker, and what the handlers of requests are given to work with.

Does not know: sockets, how a message is encoded, what any API does.
"""

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
from kafkacore.clock import Clock
from kafkacore.protocol.message import RequestMessage
from kafkacore.wire import Cursor

if TYPE_CHECKING:
    from kafkacore.broker.config.dynamic_config import DynamicConfigs
    from kafkacore.broker.group.coordinator_log import CoordinatorLog
    from kafkacore.broker.group.group_coordinator import GroupCoordinator
    from kafkacore.broker.group.offset_manager import OffsetManager
    from kafkacore.broker.metadata.cluster_metadata import ClusterMetadata
    from kafkacore.broker.replica.fetch_session import FetchManager
    from kafkacore.broker.replica.replica_manager import ReplicaManager
    from kafkacore.broker.requests.authorizer_log import AuthorizerLog
    from kafkacore.broker.storage.producer_ids import ProducerIdManager
    from kafkacore.broker.topics.cluster_state import ClusterState
    from kafkacore.broker.topics.topic_catalog import TopicCatalog

__all__ = [
    "ANSWERED_LATER",
    "HANG_UP",
    "AnsweredLater",
    "AnyApiHandler",
    "ApiHandler",
    "BrokerServices",
    "CloseConnectionError",
    "FetchServices",
    "GroupServices",
    "Interceptor",
    "MetadataServices",
    "OnResponse",
    "ProduceServices",
    "ProducerIdServices",
    "Request",
    "RequestContext",
    "TopicServices",
]

#: Answers a frame: the request, and the pieces of its response without the size; ``None`` when there is none.
OnResponse = Callable[[Request, "list[bytes | memoryview] | None"], None]


class MetadataServices(AuthorizationServices, Protocol):
    """For handlers of access control entries, users and quotas."""

    @property
    def metadata(self) -> ClusterMetadata: ...


class TopicServices(AuthorizationServices, LongWorkServices, Protocol):
    """For handlers of topics and partitions."""

    @property
    def cluster(self) -> ClusterState: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def dynamic_configs(self) -> DynamicConfigs: ...

    @property
    def replica_manager(self) -> ReplicaManager: ...

    @property
    def topics(self) -> TopicCatalog: ...


class GroupServices(AuthorizationServices, Protocol):
    """For handlers of consumer groups and their offsets."""

    @property
    def cluster(self) -> ClusterState: ...

    @property
    def coordinator_log(self) -> CoordinatorLog: ...

    @property
    def groups(self) -> GroupCoordinator: ...

    @property
    def offsets(self) -> OffsetManager: ...

    @property
    def topics(self) -> TopicCatalog: ...


class FetchServices(AuthorizationServices, LongWorkServices, Protocol):
    """For the handler of Fetch."""

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
    """For the handler of Produce."""

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


class ProducerIdServices(AuthorizationServices, Protocol):
    """For the handler of InitProducerId."""

    @property
    def producer_ids(self) -> ProducerIdManager: ...


@dataclass(slots=True)
class BrokerServices:
    """What the broker has for its handlers; each takes the part that one of the Protocols above names.

    ``authorizer`` is ``None`` where everybody may do everything.
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
    coordinator_log: CoordinatorLog
    groups: GroupCoordinator
    offsets: OffsetManager
    metadata: ClusterMetadata
    authorizer_log: AuthorizerLog
    authorizer: Authorizer | None = None
    #: Does on another thread what would keep the network thread for long.
    long_work: ChangeQueue = field(default_factory=ChangeQueue)

    @property
    def config(self) -> BrokerConfig:
        """The configuration in force, which may be another one for the next request."""
        return self.dynamic_configs.current


#: Stands before the handlers, for tests: is given each request, and what serves it.
Interceptor = Callable[[Request, Callable[[Request], None]], None]


RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


class ApiHandler(NamedTuple, Generic[RequestT, ResponseT]):
    """One API as this broker serves it: the versions it speaks, and what it does.

    ``handle`` returns the response message, or :data:`ANSWERED_LATER`. ``decode(cursor, version)`` and
    ``encode(response, version, correlation_id)`` are the generated messages' unless an API has its own.
    """

    request_class: type[RequestMessage[Any]]
    min_version: int
    max_version: int
    handle: Callable[[Request[RequestT], BrokerServices], ResponseT | AnsweredLater]
    decode: Callable[[Cursor, int], RequestT] | None = None
    encode: Callable[[ResponseT, int, int], list[bytes | memoryview]] | None = None


#: A handler of whichever API.
AnyApiHandler: TypeAlias = ApiHandler[Any, Any]
