from typing import Any, Self

from typing_extensions import disjoint_base

from kafkacore.clock import Clock
from kafkacore.network.channel_state import OnAuthenticated
from kafkacore.network.poller import Poller
from kafkacore.network.receive import NetworkReceive

@disjoint_base
class ChannelLife:
    connected: list[str]
    completed_receives: list[NetworkReceive]
    poller: Poller
    on_authenticated: OnAuthenticated | None
    def __new__(cls, clock: Clock, **options: Any) -> Self: ...
