"""The producers that a worker process keeps between tasks."""

from __future__ import annotations

from contextlib import AbstractContextManager

from kafkacore.producer import KafkaProducer
from kafkacore.settings import Config
from kafkacore.spark.worker.client_pool import ClientPool

#: Time after which an idle producer is closed: the default of ``spark.kafka.producer.cache.timeout``.
IDLE_LIMIT_MS = 600_000.0
#: Maximum number of idle producers. A worker rarely has tasks of more than one query.
MAX_IDLE = 4

#: The idle producers of this process. An idle producer has sent all its records, so close() does not block.
PRODUCERS = ClientPool(KafkaProducer, KafkaProducer.close, IDLE_LIMIT_MS, MAX_IDLE)


def lend_producer(configs: Config, abort_timeout_s: float = 0.0) -> AbstractContextManager[KafkaProducer]:
    """Lend a producer with these settings exclusively until the block ends.

    If the block ends with an exception, the producer is closed and unsent records are dropped.

    Parameters
    ----------
    configs:
        Settings of the producer.
    abort_timeout_s:
        Maximum seconds to wait until an open transaction is aborted, if the block ends with an exception.
    """
    return PRODUCERS.lend(configs, lambda producer: producer.close(timeout=abort_timeout_s))
