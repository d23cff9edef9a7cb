from typing import Self, final

@final
class Block:
    def __new__(cls) -> Self: ...

@final
class HeldBuffers:
    def __new__(cls) -> Self: ...
