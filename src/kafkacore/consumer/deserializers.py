"""Turn each configured deserializer into a function for keys or values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkacore.errors import SerializationError
from kafkacore.structs import TopicPartition

#: Function of topic, headers and bytes that returns an object.
Deserialize = Callable[[str, list[tuple[str, bytes | None]], bytes | None], Any]


class RecordDeserializationError(SerializationError):
    """A deserializer raised an exception, which is the cause of this error. The position stays at the record.

    To skip the record, call ``consumer.seek(error.topic_partition, error.offset + 1)``.
    """

    def __init__(self, topic_partition: TopicPartition, offset: int) -> None:
        super().__init__(
            f"cannot deserialize the record of {topic_partition} at offset {offset}; "
            f"to skip it, seek to offset {offset + 1}"
        )
        self.topic_partition = topic_partition
        self.offset = offset

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.topic_partition, self.offset)


def deserialize_function(deserializer: object) -> Deserialize | None:
    """Return a function ``(topic, headers, data) → object`` for a deserializer.

    The deserializer is an object with a ``deserialize`` method, or a function of the data. As in
    kafka-python, the deserializer is also called with ``None``, for a null key or a tombstone.
    """
    if deserializer is None:
        return None
    method = getattr(deserializer, "deserialize", None)
    if method is not None:
        assert callable(method)
        return method  # type: ignore[no-any-return]  # a user's object, known to be callable but not its type
    if not callable(deserializer):
        raise TypeError(
            f"a deserializer must be a function or an object with a deserialize method, "
            f"but {deserializer!r} is neither"
        )
    function: Callable[[bytes | None], Any] = deserializer
    return lambda topic, headers, data: function(data)


def close_deserializer(deserializer: object) -> None:
    """Call the ``close`` method of the deserializer if it has one."""
    close = getattr(deserializer, "close", None)
    if callable(close):
        close()
