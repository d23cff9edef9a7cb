from typing import Self, final

from kafkacore.network._idle import IdleExpiry
from kafkacore.network._poller import Poller

@final
class ChannelSet:
    poller: Poller
    def __new__(cls, poller: Poller, idle: IdleExpiry | None = None) -> Self: ...
    def __len__(self) -> int: ...
