from typing import final

from kafkacore.clock import Clock
from kafkacore.producer._buffer_pool import BufferPool
from kafkacore.record._builder import RecordBatchBuilder
from kafkacore.structs import Compression

@final
class BatchMemory:
    pool: BufferPool
    network_thread_id: int | None
    ratios: dict[str, float]
    def __init__(
        self, pool: BufferPool, clock: Clock, compression: Compression, compression_level: int | None
    ) -> None: ...
    def new_builder(self, size: int) -> RecordBatchBuilder: ...
