import sys
from typing import Self, final

from typing_extensions import Buffer

from kafkacore.structs import Compression, TimestampType

@final
class LegacyBatchBuilder:
    def __new__(
        cls,
        magic: int,
        compression: Compression | int = ...,
        compression_level: int | None = None,
        timestamp_type: TimestampType | int = ...,
        log_append_time_ms: int = -1,
    ) -> Self: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
    @property
    def magic(self) -> int: ...
    @property
    def record_count(self) -> int: ...
    def append(self, offset: int, timestamp_ms: int, key: Buffer | None, value: Buffer | None) -> None: ...
    def close(self) -> memoryview: ...

def down_convert(
    buffer: Buffer, to_magic: int, first_offset: int = 0, max_decompressed_size: int = ...
) -> bytes: ...
def down_convert_some(
    buffer: Buffer,
    to_magic: int,
    first_offset: int = 0,
    max_decompressed_size: int = ...,
    max_plain_bytes: int = ...,
) -> tuple[bytes, int]: ...
