from collections.abc import Collection
from typing import Self, final

@final
class RecordSource:
    def __new__(
        cls,
        values: object,
        keys: object = None,
        headers: object = None,
        timestamps: object = None,
        partitions: object = None,
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
        table: object,
        *,
        value: str = "value",
        key: str = "key",
        headers: str = "headers",
        timestamp: str = "timestamp",
        partition: str = "partition",
        ignored: Collection[str] = (),
    ) -> RecordSource: ...
