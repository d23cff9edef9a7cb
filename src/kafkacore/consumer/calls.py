"""What every call of a consumer begins with: is it open, whose turn is it, how long may it take.

The façade is put together of such classes, one for each kind of call. Does not know: what they do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkacore.consumer._iteration import RecordLoop
from kafkacore.consumer.engine import ConsumerEngine
from kafkacore.consumer.guard import SingleOwnerGuard
from kafkacore.consumer.timer import Timer
from kafkacore.errors import IllegalStateError
from kafkacore.structs import TopicPartition


class ConsumerCalls(RecordLoop):
    """Of one consumer."""

    config: dict[str, Any]
    _closed: bool
    _engine: ConsumerEngine
    _guard: SingleOwnerGuard

    def _begin(self) -> None:
        self._engine.begin()

    def _check_open(self) -> None:
        if self._engine.closed:
            raise IllegalStateError("this KafkaConsumer is closed")

    def _timer(self, timeout_ms: float | None) -> Timer:
        return Timer(
            self._engine.clock, self.config["request_timeout_ms"] if timeout_ms is None else timeout_ms
        )


def check_partitions(partitions: Iterable[object]) -> None:
    for partition in partitions:
        if not isinstance(partition, TopicPartition):
            raise TypeError(f"a partition must be a TopicPartition, not {partition!r}")
