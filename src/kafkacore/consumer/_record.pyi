from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, final

@final
class ConsumerRecord:
    """A record as kafka-python names it; compares, unpacks and pickles like its named tuple.

    Parameters
    ----------
    topic, partition, offset
        Where it was.
    leader_epoch
        Epoch of the leader that wrote it, -1 if unknown.
    timestamp
        Milliseconds since the epoch, -1 if it has none.
    timestamp_type
        0 for the producer's clock, 1 for the broker's.
    key, value
        As the deserializer made them; ``bytes`` or ``None`` without one, made anew by each reading.
    headers
        List of ``(str, bytes or None)``.
    checksum
        Always ``None`` since message format 2.
    serialized_key_size, serialized_value_size, serialized_header_size
        Bytes; -1 for none.
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
        """Let go of the fetch response: copy key, value and headers out, so that a small record does not pin
        a large buffer.

        Returns
        -------
        ConsumerRecord
            The record itself.
        """
    def _asdict(self) -> dict[str, Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class OwnFields:
    """What a record has as Python objects."""
