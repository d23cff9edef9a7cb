"""The record of aiokafka, for programs that run with ``kafkacore.aio.as_aiokafka``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from kafkacore.consumer import ConsumerRecord

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class AiokafkaRecord(Generic[K, V]):
    """A record that a program may create, change, and add attributes to, as FastStream does.

    The fields are those of :class:`~kafkacore.ConsumerRecord`.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: K | None
    value: V | None
    checksum: int | None
    serialized_key_size: int
    serialized_value_size: int
    headers: Sequence[tuple[str, bytes | None]]

    @classmethod
    def of(cls, record: ConsumerRecord) -> Self:
        """Return a copy of ``record``."""
        return cls(
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            record.timestamp_type,
            record.key,
            record.value,
            record.checksum,
            record.serialized_key_size,
            record.serialized_value_size,
            tuple(record.headers),
        )


#: Any record of a consumer.
AnyRecord = AiokafkaRecord[Any, Any]
