from collections.abc import Iterable
from typing import Literal, Never, Self, final

from kafkacore.record._batch import BatchIterator, RecordBatch

@final
class RecordColumns:
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __len__(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class ColumnBuilder:
    def __new__(
        cls,
        columns: Iterable[str],
        timestamp_unit: Literal["ms", "us"] = "ms",
        timezone: str | None = None,
        headers_null_when_empty: bool = True,
        max_column_bytes: int = ...,
    ) -> Self: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def append(
        self,
        batch: RecordBatch,
        from_offset: int = 0,
        max_records: int | None = None,
        end_offset: int | None = None,
    ) -> tuple[int, int]: ...
    def append_all(
        self,
        batches: BatchIterator,
        from_offset: int = 0,
        max_records: int | None = None,
        end_offset: int | None = None,
        read_committed: bool = False,
    ) -> tuple[int, int, int]: ...
    def finish(self) -> RecordColumns: ...
