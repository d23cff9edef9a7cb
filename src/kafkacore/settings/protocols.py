"""The objects that a client accepts in its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class SupportsSerialize(Protocol):
    """An object such as :class:`kafkacore.serializer.Serializer`."""

    @property
    def serialize(self) -> Callable[..., object]: ...


class SupportsDeserialize(Protocol):
    """An object such as :class:`kafkacore.serializer.Deserializer`."""

    @property
    def deserialize(self) -> Callable[..., object]: ...


class SupportsPartition(Protocol):
    """An object such as :class:`kafkacore.partitioner.Partitioner`."""

    @property
    def partition(self) -> Callable[..., int]: ...


class TokenProvider(Protocol):
    """An object such as kafka-python's ``AbstractTokenProvider``."""

    @property
    def token(self) -> Callable[[], str]: ...
