"""What turns a user's objects into bytes and back: classes to derive from, and two that do.

Names and arguments are kafka-python's (``kafka.serializer``). Knows nothing else.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, TypeAlias

#: A user's key or value of any type, so that a subclass may name its own.
UserObject: TypeAlias = Any
Headers = list[tuple[str, bytes | None]]


class Serializer(ABC):
    """Turns keys or values into bytes."""

    @abstractmethod
    def serialize(
        self, topic: str, headers: Headers, data: UserObject
    ) -> bytes | bytearray | memoryview | None:
        """The bytes of ``data``, which goes to ``topic``; ``None`` for a null. It may add to ``headers``."""

    def close(self) -> None:
        """Called when the producer closes."""
        return


class Deserializer(ABC):
    """Turns bytes into keys or values."""

    @abstractmethod
    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> UserObject:
        """The object that ``data``, which came from ``topic``, stands for."""

    def close(self) -> None:
        """Called when the consumer closes."""
        return


class DefaultSerializer(Serializer, Deserializer):
    """Text, in an encoding; bytes pass as they are on the way out.

    Parameters
    ----------
    encoding:
        Python's name of it.
    """

    def __init__(self, encoding: str = "utf-8") -> None:
        self.encoding = encoding

    def serialize(
        self, topic: str, headers: Headers, data: UserObject
    ) -> bytes | bytearray | memoryview | None:
        if data is None or isinstance(data, bytes | bytearray | memoryview):
            return data
        if isinstance(data, str):
            return data.encode(self.encoding)
        raise TypeError(f"text or bytes can be serialised, not {type(data).__name__}")

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> UserObject:
        return None if data is None else data.decode(self.encoding)


class JsonSerializer(DefaultSerializer):
    """JSON; ``None`` is a null, not JSON's."""

    def serialize(
        self, topic: str, headers: Headers, data: UserObject
    ) -> bytes | bytearray | memoryview | None:
        return None if data is None else json.dumps(data).encode(self.encoding)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> UserObject:
        return None if data is None else json.loads(data)
