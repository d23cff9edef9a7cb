from typing import Final, Self

from typing_extensions import Buffer, disjoint_base

BYTES_PER_ENTRY: Final[int]

@disjoint_base
class OffsetMap:
    max_entries: int
    entries: int
    latest_offset: int
    def __new__(cls, memory_bytes: int, load_factor: float, seed: int) -> Self: ...
    def __setitem__(self, key: Buffer, offset: int, /) -> None: ...
    def __getitem__(self, key: Buffer, /) -> int: ...
    def __len__(self) -> int: ...
