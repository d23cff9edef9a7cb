"""The consumers that a worker keeps between the ranges that it reads. Does not know: ranges, offsets."""

from __future__ import annotations

from kafkacore.consumer import KafkaConsumer
from kafkacore.spark.worker.client_pool import ClientPool

#: As Spark's ``spark.kafka.consumer.cache.timeout``, which a Python worker cannot see.
IDLE_LIMIT_MS = 5 * 60_000.0
#: A worker has one task at a time; more are of other settings.
MAX_IDLE = 8


def drop_consumer(consumer: KafkaConsumer) -> None:
    """Close it without waiting for the broker: a task waits for us."""
    consumer.close(timeout_ms=0)


#: Of this process.
CONSUMERS = ClientPool(KafkaConsumer, drop_consumer, IDLE_LIMIT_MS, MAX_IDLE)
