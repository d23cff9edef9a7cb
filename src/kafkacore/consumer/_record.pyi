from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, final

@final
class ConsumerRecord:
    """A record, with kafka-python's field names.

    It compares, unpacks and pickles like kafka-python's named tuple.

    Parameters
    ----------
    topic, partition, offset
        Position of the record.
    leader_epoch
        Epoch of the leader that wrote the record, or -1 if unknown.
    timestamp
        Milliseconds since the epoch, or -1 without a timestamp.
    timestamp_type
        0 if the producer set the timestamp, 1 if the broker did.
    key, value
        Objects that the deserializers returned. Without a deserializer, each access creates a ``bytes``
        object or returns ``None``.
    headers
        List of ``(str, bytes or None)``.
    checksum
        Always ``None``; message format 2 has no checksum per record.
    serialized_key_size, serialized_value_size, serialized_header_size
        Size in bytes, or -1 without a key, value or headers.
    """

    _fields: ClassVar[tuple[str, ...]]
    __match_args__: ClassVar[tuple[str, ...]]
    offset: int
    timestamp: int
    def __init__(
        self,
        topic: str,
        partition: int,
        leader_epoch: int,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: Any,
        value: Any,
        headers: Iterable[tuple[str, bytes | None]] = (),
        checksum: None = None,
        serialized_key_size: int | None = None,
        serialized_value_size: int | None = None,
        serialized_header_size: int | None = None,
    ) -> None: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def timestamp_type(self) -> int: ...
    @property
    def key(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def headers(self) -> list[tuple[str, bytes | None]]: ...
    @property
    def checksum(self) -> None: ...
    @property
    def serialized_key_size(self) -> int: ...
    @property
    def serialized_value_size(self) -> int: ...
    @property
    def serialized_header_size(self) -> int: ...
    def detach(self) -> ConsumerRecord:
        """Copy key, value and headers, and release the fetch response.

        A record that is kept for a long time then does not keep a large response in memory.

        Returns
        -------
        ConsumerRecord
            The record itself.
        """
    def _asdict(self) -> dict[str, Any]: ...
    def _replace(self, **changes: Any) -> ConsumerRecord:
        """Return a copy with other values for the named fields, like ``_replace`` of a named tuple."""
    @classmethod
    def _make(cls, fields: Iterable[Any]) -> ConsumerRecord:
        """Return a record with these 13 values, in the order of ``_fields``."""
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class OwnFields:
    """The fields of a record that exist as Python objects."""
