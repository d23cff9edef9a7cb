from collections.abc import Callable, Sequence
from typing import final

from kafkacore.clock import Clock
from kafkacore.metrics import Sensor
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._buffer_pool import BufferPool

@final
class TopicSensors:
    records: Sensor
    size: Sensor
    compression: Sensor
    retries: Sensor
    errors: Sensor
    def __init__(
        self, records: Sensor, size: Sensor, compression: Sensor, retries: Sensor, errors: Sensor
    ) -> None: ...

@final
class BatchCounter:
    acknowledged_count: int
    def __init__(
        self,
        register_topic: Callable[[str], TopicSensors],
        clock: Clock,
        pool: BufferPool,
        request_records: Sensor,
        queue_time: Sensor,
        record_size: Sensor,
        splits: Sensor,
        pool_wait: Sensor,
    ) -> None: ...
    def sent(self, batches: Sequence[ProducerBatch], now_ms: float) -> None: ...
    def acknowledged(self, batch: ProducerBatch) -> None: ...
    def retried(self, batch: ProducerBatch) -> None: ...
    def split(self, batch: ProducerBatch) -> None: ...
    def failed(self, batch: ProducerBatch) -> None: ...
