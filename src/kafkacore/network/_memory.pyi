from typing import Self, final

@final
class MemoryPool:
    limit: int
    used: int
    def __new__(cls, limit: int) -> Self: ...

@final
class Chunk: ...
