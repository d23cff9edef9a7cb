from typing_extensions import disjoint_base

from kafkacore.broker._produce_call import ProduceCall
from kafkacore.broker._request import Request
from kafkacore.broker.internal_topics import INTERNAL_TOPICS as INTERNAL_TOPICS
from kafkacore.broker.request import BrokerServices

ADMIN_CLIENT_ID: str

@disjoint_base
class ProduceAppend:
    request: Request
    services: BrokerServices
    call: ProduceCall
    first_error: str
    def __init__(self, request: Request, services: BrokerServices) -> None: ...
    def append_all(self) -> None: ...
