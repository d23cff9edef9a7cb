from collections.abc import Container, Mapping
from typing import Any, final

from kafkacore.client import ClientResponse, Metadata
from kafkacore.clock import Clock
from kafkacore.consumer._counters import FetchCounter
from kafkacore.consumer._memory import PinLedger
from kafkacore.consumer._record import ConsumerRecord
from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.fetch_buffer import FetchBuffer
from kafkacore.consumer.fetch_session import FIRST_VERSION_BY_ID as FIRST_VERSION_BY_ID
from kafkacore.consumer.fetch_session import FetchPartition, FetchSessionHandler
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.protocol import ZERO_UUID as ZERO_UUID
from kafkacore.structs import TopicPartition

@final
class SteadyFetcher:
    @property
    def responses(self) -> int: ...
    @property
    def is_reading(self) -> bool: ...
    def __init__(
        self,
        client: ConsumerNetworkClient,
        metadata: Metadata,
        subscriptions: SubscriptionState,
        clock: Clock,
        buffer: FetchBuffer,
        config: Any,
        pins: PinLedger,
        counter: FetchCounter | None,
    ) -> None: ...
    def sent(
        self,
        node_id: int,
        handler: FetchSessionHandler,
        partitions: Mapping[TopicPartition, FetchPartition],
        future: RequestFuture[ClientResponse],
    ) -> None: ...
    def received(self, node_id: int, size_in_bytes: int) -> None: ...
    def failed(self, node_id: int) -> None: ...
    def retain(self, assigned: Container[TopicPartition]) -> None: ...
    def receive(
        self, timeout_ms: float, max_records: int
    ) -> tuple[dict[TopicPartition, list[ConsumerRecord]], dict[TopicPartition, int]] | None: ...
