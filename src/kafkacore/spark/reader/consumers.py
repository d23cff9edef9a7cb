"""The consumers that a worker process keeps between tasks."""

from __future__ import annotations

from kafkacore.consumer import KafkaConsumer
from kafkacore.spark.worker.client_pool import ClientPool

#: Time after which an idle consumer is closed: the default of ``spark.kafka.consumer.cache.timeout``, which a
#: Python worker cannot read.
IDLE_LIMIT_MS = 5 * 60_000.0
#: Maximum number of idle consumers. A worker runs one task at a time, but tasks may have different settings.
MAX_IDLE = 8


def drop_consumer(consumer: KafkaConsumer) -> None:
    """Close a consumer. Do not wait for the broker, because a wait would delay a task."""
    consumer.close(timeout_ms=0)


#: The idle consumers of this process.
CONSUMERS = ClientPool(KafkaConsumer, drop_consumer, IDLE_LIMIT_MS, MAX_IDLE)
