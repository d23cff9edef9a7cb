"""The client kafkacore, with records and with Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkacore.bench.peers import POLL_MS, TakeColumns
from kafkacore.bench.peers.kafka_python_api import PollLoop, SendLoop
from kafkacore.bench.task import ClientSettings
from kafkacore.consumer import KafkaConsumer
from kafkacore.producer import KafkaProducer
from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of an Arrow record batch that is sent in one call.
ARROW_ROWS = 100_000


class Producer(SendLoop):
    """Loop over kafkacore's ``KafkaProducer``."""

    def __init__(self, settings: ClientSettings) -> None:
        super().__init__(KafkaProducer(**settings))


class ArrowProducer(SendLoop):
    """Loop over ``KafkaProducer.send_arrow``, with :data:`ARROW_ROWS` rows per call. Needs pyarrow."""

    def __init__(self, settings: ClientSettings) -> None:
        super().__init__(KafkaProducer(**settings))
        self._batches: list[pa.RecordBatch] = []

    def prepare(self, values: Sequence[bytes]) -> None:
        """Create the columns before the measurement."""
        import pyarrow as pa

        self._batches = [
            pa.record_batch({"value": pa.array(values[at : at + ARROW_ROWS], pa.binary())})
            for at in range(0, len(values), ARROW_ROWS)
        ]

    def send_all(self, topic: str, values: Sequence[bytes], count: int) -> None:
        if not self._batches:
            super().send_all(topic, values, count)  # The warm-up runs before ``prepare``.
            return
        send_arrow = self._client.send_arrow
        while count:
            for batch in self._batches:
                rows = batch if batch.num_rows <= count else batch.slice(0, count)
                send_arrow(topic, rows)
                count -= rows.num_rows
                if not count:
                    break
        self._client.flush()


class Consumer(PollLoop):
    """A poll loop with kafkacore's ``KafkaConsumer``."""

    def __init__(self, settings: ClientSettings, poll_records: int) -> None:
        super().__init__(KafkaConsumer(**settings), TopicPartition)

    def read_arrow(self, count: int, take: TakeColumns) -> None:
        """Read like :meth:`read`, but pass columns to ``take``."""
        poll_arrow, got = self._client.poll_arrow, 0
        while got < count:
            found = poll_arrow(POLL_MS, columns=("value",))
            for columns in found.values():
                got += take(columns)
            if not found:
                take(None)
