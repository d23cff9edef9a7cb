from typing import Any

from typing_extensions import disjoint_base

from kafkacore.broker._request import Request, RequestContext
from kafkacore.broker.metrics import BrokerMetrics
from kafkacore.broker.request import ApiHandler, BrokerServices, Interceptor, OnResponse

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
