"""What turns bytes into the user's objects: a configured deserializer in, one plain function out.

Does not know: records, when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkacore.errors import SerializationError
from kafkacore.structs import TopicPartition

#: Topic, headers, data → object.
Deserialize = Callable[[str, list[tuple[str, bytes | None]], bytes | None], Any]


class RecordDeserializationError(SerializationError):
    """A deserializer refused a record; its own error is the cause. The position stays before the record.

    ``consumer.seek(error.topic_partition, error.offset + 1)`` goes on behind it.
    """

    def __init__(self, topic_partition: TopicPartition, offset: int) -> None:
        super().__init__(
            f"cannot deserialize the record of {topic_partition} at offset {offset}; "
            "seek past it to go on with the records behind"
        )
        self.topic_partition = topic_partition
        self.offset = offset

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.topic_partition, self.offset)


def deserialize_function(deserializer: object) -> Deserialize | None:
    """``(topic, headers, data) → object`` of an object with a ``deserialize`` method, or of a function of
    the data.

    As in kafka-python, ``None`` (a null key, a tombstone) is handed to the deserializer too.
    """
    if deserializer is None:
        return None
    method = getattr(deserializer, "deserialize", None)
    if method is not None:
        assert callable(method)
        return method  # type: ignore[no-any-return]  # the user's object, checked to be callable only
    if not callable(deserializer):
        raise TypeError(
            f"a deserializer is a function or has a deserialize method; {deserializer!r} is neither"
        )
    function: Callable[[bytes | None], Any] = deserializer
    return lambda topic, headers, data: function(data)


def close_deserializer(deserializer: object) -> None:
    """Call the ``close`` method of those that have one."""
    close = getattr(deserializer, "close", None)
    if callable(close):
        close()
