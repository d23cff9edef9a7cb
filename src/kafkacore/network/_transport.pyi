from typing import Self, final

from typing_extensions import disjoint_base

@disjoint_base
class TransportLayer: ...

@final
class PlaintextTransportLayer(TransportLayer):
    def __new__(cls, fd: int) -> Self: ...
