from collections.abc import Sequence
from typing import final

from kafkacore.broker.group.consumer.reconciliation import ReportedPartitions
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kafkacore.wire import Cursor

@final
class ConsumerHeartbeat:
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    subscribed_topic_names: Sequence[str] | None
    subscribed_topic_regex: str | None
    server_assignor: str | None
    topic_partitions: ReportedPartitions | None
    client_id: str
    client_host: str
    version: int
    def __init__(
        self,
        group_id: str,
        *,
        member_id: str,
        member_epoch: int,
        instance_id: str | None,
        rack_id: str | None,
        rebalance_timeout_ms: int,
        subscribed_topic_names: Sequence[str] | None,
        subscribed_topic_regex: str | None,
        server_assignor: str | None,
        topic_partitions: ReportedPartitions | None,
        client_id: str,
        client_host: str,
        version: int,
    ) -> None: ...
    @property
    def joins(self) -> bool: ...
    @property
    def is_full(self) -> bool: ...
    @property
    def is_plain(self) -> bool: ...

@final
class SteadyAnswer:
    throttle_time_ms: int
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    error_code: int
    error_message: None
    assignment: None

def read_heartbeat(cursor: Cursor, version: int) -> ConsumerHeartbeat: ...
def encode_heartbeat(
    response: ConsumerGroupHeartbeatResponse | SteadyAnswer, version: int, correlation_id: int
) -> list[bytes | memoryview]: ...
