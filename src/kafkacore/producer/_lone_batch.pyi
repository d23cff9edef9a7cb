from typing import final

from kafkacore.client import ClientResponse
from kafkacore.clock import Clock
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer.produce_request import BatchesRequest
from kafkacore.producer.sender import Sender

@final
class LoneBatch:
    def __init__(
        self,
        sender: Sender,
        clock: Clock,
        batch: ProducerBatch,
        message: BatchesRequest,
        topic: str | bytes,
        correlation_id: int,
        version: int,
    ) -> None: ...
    def __call__(self, response: ClientResponse) -> None: ...
    def read(self, payload: memoryview, /) -> bool: ...
    def on_complete(self) -> None: ...
