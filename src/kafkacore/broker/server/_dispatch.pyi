from typing import Any

from typing_extensions import disjoint_base

from kafkacore.broker.handlers.services import ApiHandler, BrokerServices, Interceptor, OnResponse
from kafkacore.broker.requests._request import Request, RequestContext
from kafkacore.broker.server.metrics import BrokerMetrics

ANSWERED_LATER: Any
MOST_ELEMENTS: int

@disjoint_base
class Dispatcher:
    metrics: BrokerMetrics
    _handlers: dict[int, ApiHandler]
    def __init__(
        self,
        services: BrokerServices,
        interceptor: Interceptor | None,
        handlers: dict[int, ApiHandler],
        metrics: BrokerMetrics,
    ) -> None: ...
    def handle(self, context: RequestContext, payload: memoryview, on_response: OnResponse) -> Request: ...
    def _serve(self, request: Request) -> None: ...
