"""The producers that a worker keeps between the tasks that write. Does not know: rows, transactions."""

from __future__ import annotations

from contextlib import AbstractContextManager

from kafkacore.producer import KafkaProducer
from kafkacore.settings import Config
from kafkacore.spark.worker.client_pool import ClientPool

#: As ``spark.kafka.producer.cache.timeout``.
IDLE_LIMIT_MS = 600_000.0
#: A worker rarely has more than one query's.
MAX_IDLE = 4

#: Of this process. What is idle has sent all, so that closing it waits for nothing.
PRODUCERS = ClientPool(KafkaProducer, KafkaProducer.close, IDLE_LIMIT_MS, MAX_IDLE)


def lend_producer(configs: Config, abort_timeout_s: float = 0.0) -> AbstractContextManager[KafkaProducer]:
    """A producer of these arguments, the borrower's alone until the block ends.

    One whose block ends by an exception is closed, and what it had not sent is dropped.

    Parameters
    ----------
    abort_timeout_s:
        How long that close may take, with a transaction that is open, to abort it.
    """
    return PRODUCERS.lend(configs, lambda producer: producer.close(timeout=abort_timeout_s))
