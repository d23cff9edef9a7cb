from typing import final

from kafkacore.wire import Cursor, Uuid

@final
class ProducePartition:
    index: int
    records: memoryview | None
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    error_message: str | None
    record_errors: list[tuple[int, str | None]] | None
    current_leader: tuple[int, int] | None

@final
class ProduceTopic:
    name: str | None
    topic_id: Uuid | None
    partitions: list[ProducePartition]

@final
class ProduceCall:
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProduceTopic]
    throttle_time_ms: int
    node_endpoints: list[tuple[int, str, int, str | None]] | None

def read_produce(cursor: Cursor, version: int) -> ProduceCall: ...
def encode_produce(call: ProduceCall, version: int, correlation_id: int) -> list[bytes | memoryview]: ...
