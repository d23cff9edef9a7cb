"""Batches that an application builds itself, for ``AIOKafkaProducer.send_batch``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.record._source import RecordSource

#: Size of the header of a batch, in bytes.
BATCH_OVERHEAD_BYTES = 61


class BatchRecordMetadata(NamedTuple):
    """The position of a record in a :class:`BatchBuilder`.

    ``offset`` is counted from the first record of the batch. ``size`` is in bytes. ``crc`` is always
    ``None``, because only batches have a checksum.
    """

    offset: int
    crc: None
    size: int
    timestamp: int


class BatchBuilder:
    """Collects records for ``AIOKafkaProducer.send_batch``; ``AIOKafkaProducer.create_batch`` creates it.

    Parameters
    ----------
    batch_size:
        Size in bytes, before compression, at which the batch is full. The first record always fits.
    key_serializer, value_serializer:
        Functions ``(topic, headers, data) → bytes``, or ``None`` for bytes.
    clock:
        Clock for records without a timestamp.
    """

    def __init__(
        self,
        batch_size: int,
        key_serializer: Callable[[str, Any, Any], Any] | None = None,
        value_serializer: Callable[[str, Any, Any], Any] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._batch_size = batch_size
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._clock = clock
        self._values: list[Any] = []
        self._keys: list[Any] = []
        self._headers: list[list[tuple[str, bytes | None]]] = []
        self._timestamps: list[int] = []
        self._size = BATCH_OVERHEAD_BYTES
        self._closed = False

    def __repr__(self) -> str:
        state = "closed, " if self._closed else ""
        return f"<BatchBuilder {state}{len(self._values)} records, {self._size} bytes>"

    def append(
        self,
        *,
        timestamp: int | None,
        key: Any,
        value: Any,
        headers: Sequence[tuple[str, bytes | None]] | None = (),
    ) -> BatchRecordMetadata | None:
        """Add a record.

        Parameters
        ----------
        timestamp:
            Milliseconds since the epoch; ``None`` for the current time.
        key, value:
            Bytes, or objects that the producer's serializers accept. A record needs a key or a value.
        headers:
            Pairs of a name and bytes.

        Returns
        -------
        BatchRecordMetadata or None
            ``None`` if the batch is full or closed. A full batch is closed.
        """
        if self._closed:
            return None
        of_record = list(headers or ())
        if self._key_serializer is not None:
            key = self._key_serializer("", of_record, key)
        if self._value_serializer is not None:
            value = self._value_serializer("", of_record, value)
        if key is None and value is None:
            raise ValueError("a record needs a key or a value")
        if timestamp is None:
            timestamp = self._clock.wall_ms()
        first = self._timestamps[0] if self._timestamps else timestamp
        size = _record_size(len(self._values), timestamp - first, key, value, of_record)
        if self._values and self._size + size > self._batch_size:
            self.close()
            return None
        self._values.append(value)
        self._keys.append(key)
        self._headers.append(of_record)
        self._timestamps.append(timestamp)
        self._size += size
        return BatchRecordMetadata(len(self._values) - 1, None, size, timestamp)

    def close(self) -> None:
        """Reject further records."""
        self._closed = True

    def closed(self) -> bool:
        """Return whether the batch rejects further records."""
        return self._closed

    def size(self) -> int:
        """Return the size of the batch in bytes, before compression."""
        return self._size

    def record_count(self) -> int:
        """Return the number of records."""
        return len(self._values)

    def source(self) -> RecordSource:
        """Close the batch and return its records as columns."""
        self.close()
        return RecordSource(self._values, self._keys, self._headers, self._timestamps)


def _record_size(
    index: int, timestamp_delta: int, key: Any, value: Any, headers: list[tuple[str, bytes | None]]
) -> int:
    """Return the size of a record in record format 2, including its length."""
    body = 1 + _varint_size(timestamp_delta) + _varint_size(index) + _varint_size(len(headers))
    body += _bytes_size(key) + _bytes_size(value)
    for name, data in headers:
        body += _bytes_size(name.encode()) + _bytes_size(data)
    return body + _varint_size(body)


def _bytes_size(data: Any) -> int:
    if data is None:
        return 1
    size = memoryview(data).nbytes
    return size + _varint_size(size)


def _varint_size(number: int) -> int:
    """Return the size of a signed number as a zigzag varint."""
    zigzag = 2 * number if number >= 0 else -2 * number - 1
    return max((zigzag.bit_length() + 6) // 7, 1)
