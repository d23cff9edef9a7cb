"""Serializers and deserializers: base classes, and implementations for text and JSON.

Names and arguments are those of kafka-python (``kafka.serializer``).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, TypeAlias

#: Key or value of the application. It is ``Any`` so that a subclass may declare its own type.
UserObject: TypeAlias = Any
Headers = list[tuple[str, bytes | None]]


class Serializer(ABC):
    """Base class of objects that convert keys or values to bytes."""

    @abstractmethod
    def serialize(
        self, topic: str, headers: Headers, data: UserObject
    ) -> bytes | bytearray | memoryview | None:
        """Return ``data`` as bytes, or ``None`` for a null.

        Parameters
        ----------
        topic:
            Name of the topic that the record is sent to.
        headers:
            Headers of the record. The method may add to them.
        data:
            Key or value of the record.
        """

    def close(self) -> None:
        """Release resources. The producer calls this when it is closed."""
        return


class Deserializer(ABC):
    """Base class of objects that convert bytes to keys or values."""

    @abstractmethod
    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> UserObject:
        """Return the object that ``data`` represents.

        Parameters
        ----------
        topic:
            Name of the topic that the record was read from.
        headers:
            Headers of the record.
        data:
            Key or value of the record; ``None`` for a null.
        """

    def close(self) -> None:
        """Release resources. The consumer calls this when it is closed."""
        return


class DefaultSerializer(Serializer, Deserializer):
    """Serializer and deserializer of text. It serializes bytes-like objects unchanged.

    Parameters
    ----------
    encoding:
        Name of the text encoding, as in Python's module ``codecs``.
    """

    def __init__(self, encoding: str = "utf-8") -> None:
        self.encoding = encoding

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.encoding!r})"

    def serialize(
        self, topic: str, headers: Headers, data: UserObject
    ) -> bytes | bytearray | memoryview | None:
        if data is None or isinstance(data, bytes | bytearray | memoryview):
            return data
        if isinstance(data, str):
            return data.encode(self.encoding)
        raise TypeError(f"data must be str, bytes or None, not {type(data).__name__}")

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> UserObject:
        return None if data is None else data.decode(self.encoding)


class JsonSerializer(DefaultSerializer):
    """Serializer and deserializer of JSON. ``None`` becomes a null value, not the JSON text ``null``."""

    def serialize(
        self, topic: str, headers: Headers, data: UserObject
    ) -> bytes | bytearray | memoryview | None:
        return None if data is None else json.dumps(data).encode(self.encoding)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> UserObject:
        return None if data is None else json.loads(data)
