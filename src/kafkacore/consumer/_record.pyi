from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, final

_Deserialize = Callable[[str, list[tuple[str, bytes | None]], bytes | None], Any]

@final
class ConsumerRecord:
    _fields: ClassVar[tuple[str, ...]]
    __match_args__: ClassVar[tuple[str, ...]]
    topic: str
    partition: int
    leader_epoch: int
    offset: int
    timestamp: int
    timestamp_type: int
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
    def detach(self) -> ConsumerRecord: ...
    def _asdict(self) -> dict[str, Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class RecordReader:
    failed_in_deserializer: bool
    def __init__(
        self,
        batch: Any,
        topic: str,
        partition: int,
        key_deserializer: _Deserialize | None = None,
        value_deserializer: _Deserialize | None = None,
    ) -> None: ...
    def read(self, out: list[ConsumerRecord], limit: int, from_offset: int) -> bool: ...
    @property
    def pending_offset(self) -> int | None: ...
