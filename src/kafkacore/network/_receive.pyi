import sys
from typing import Self, final

from typing_extensions import Buffer

from kafkacore.network._memory import MemoryPool

@final
class NetworkReceive:
    source_id: str
    def __init__(self, source_id: str, payload: memoryview) -> None: ...
    @property
    def payload(self) -> memoryview: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class ReadBuffer: ...

@final
class FrameReader:
    source_id: str
    max_size: int
    def __new__(cls, source_id: str, max_size: int = -1, pool: MemoryPool | None = None) -> Self: ...
    @property
    def is_within_frame(self) -> bool: ...
    def feed(self, data: Buffer) -> list[NetworkReceive]: ...
