from collections.abc import Collection, Iterable
from typing import Any, Self, final

from typing_extensions import Buffer

@final
class RecordSource:
    def __new__(
        cls,
        values: Iterable[Buffer | None] | Any,
        keys: Iterable[Buffer | None] | Any | None = None,
        headers: Iterable[Iterable[tuple[str, Buffer | None]] | None] | Any | None = None,
        timestamps: Iterable[int | None] | Any | None = None,
        partitions: Iterable[int | None] | Any | None = None,
    ) -> Self: ...
    def __len__(self) -> int: ...
    @property
    def row_count(self) -> int: ...
    @property
    def has_keys(self) -> bool: ...
    @property
    def has_headers(self) -> bool: ...
    @property
    def has_timestamps(self) -> bool: ...
    @property
    def has_partitions(self) -> bool: ...
    @staticmethod
    def from_arrow(
        table: Any,
        *,
        value: str = "value",
        key: str = "key",
        headers: str = "headers",
        timestamp: str = "timestamp",
        partition: str = "partition",
        ignored: Collection[str] = (),
    ) -> RecordSource: ...
