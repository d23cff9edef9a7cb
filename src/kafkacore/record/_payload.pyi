from typing import Self, final

from typing_extensions import Buffer

@final
class Payload:
    def __new__(cls, buffer: Buffer) -> Self: ...
