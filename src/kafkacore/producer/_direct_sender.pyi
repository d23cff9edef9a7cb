from typing import final

from kafkacore.client import NetworkClient
from kafkacore.clock import Clock
from kafkacore.producer.idempotence import IdempotenceManager
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.sender import Sender

@final
class DirectSender:
    def __init__(
        self,
        sender: Sender,
        client: NetworkClient,
        clock: Clock,
        accumulator: RecordAccumulator,
        manager: IdempotenceManager | None,
    ) -> None: ...
