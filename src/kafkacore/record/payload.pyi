from typing import Self

from typing_extensions import Buffer

class Payload:
    def __new__(cls, buffer: Buffer) -> Self: ...
