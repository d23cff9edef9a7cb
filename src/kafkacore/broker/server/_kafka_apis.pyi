from collections.abc import Callable
from typing import Any, final

from typing_extensions import disjoint_base

from kafkacore.broker.handlers.services import AnyApiHandler, BrokerServices, Interceptor, OnResponse
from kafkacore.broker.requests._request import HANG_UP as HANG_UP
from kafkacore.broker.requests._request import Request, RequestContext
from kafkacore.broker.server._api_stats import ApiStats
from kafkacore.broker.server.metrics import BrokerMetrics
from kafkacore.network import NetworkReceive

MAX_ELEMENTS: int

@final
class ServedApi:
    handle: Callable[..., Any]
    def __init__(self, handler: AnyApiHandler, stats: ApiStats) -> None: ...

@disjoint_base
class KafkaApis:
    """Handles request frames. Only the network thread uses it.

    Parameters
    ----------
    services:
        The parts of the broker that the handlers use.
    interceptor:
        Called with each request before its handler, or ``None``.
    """

    metrics: BrokerMetrics
    def __init__(self, services: BrokerServices, interceptor: Interceptor | None = None) -> None: ...
    def handle(
        self, context: RequestContext, frame: memoryview | NetworkReceive, on_response: OnResponse
    ) -> Request: ...
    def answer_before_authentication(
        self, context: RequestContext, payload: memoryview
    ) -> list[bytes | memoryview]: ...
