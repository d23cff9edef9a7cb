from typing import Self, final

@final
class IdleExpiry:
    max_idle_ms: float
    def __new__(cls, max_idle_ms: float) -> Self: ...
