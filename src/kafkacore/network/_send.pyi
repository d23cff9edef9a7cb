from collections.abc import Sequence
from typing import Self, final

from typing_extensions import Buffer

@final
class NetworkSend:
    destination_id: str
    size_in_bytes: int
    remaining: int
    def __new__(cls, destination_id: str, pieces: Sequence[Buffer]) -> Self: ...
    @property
    def is_completed(self) -> bool: ...
    @property
    def holds_pieces(self) -> bool: ...
    def drain(self) -> bytes: ...
