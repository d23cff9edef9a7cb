from typing import Any, Protocol, final

from kafkacore.client import NetworkClient
from kafkacore.clock import Clock
from kafkacore.producer._partition_queue import PartitionQueue
from kafkacore.producer.idempotence import IdempotenceManager
from kafkacore.protocol import ZERO_UUID as ZERO_UUID

class _Sender(Protocol):
    acks: int
    request_timeout_ms: int
    outcomes: Any

class _Accumulator(Protocol):
    active: dict[PartitionQueue, None]
    delivery_timeout_ms: float

@final
class DirectSender:
    def __init__(
        self,
        sender: _Sender,
        client: NetworkClient,
        clock: Clock,
        accumulator: _Accumulator,
        manager: IdempotenceManager | None,
    ) -> None: ...
    def send_waiting(self, now_ms: float, at_once: bool = False) -> int: ...
