"""Non-blocking network I/O for the client and the broker: connections that send and receive whole frames.

Each :class:`Selector` belongs to one thread and releases the GIL while it waits.
"""

from kafkacore.network._channel import KafkaChannel
from kafkacore.network._memory import MemoryPool
from kafkacore.network._native_heartbeat import NativeHeartbeat
from kafkacore.network._receive import FrameReader, NetworkReceive
from kafkacore.network._selector import Selector
from kafkacore.network._send import NetworkSend
from kafkacore.network.channel_builder import ChannelBuilder
from kafkacore.network.channel_state import ChannelState, ConnectionPhase
from kafkacore.network.heartbeat_event import HeartbeatEvent
from kafkacore.network.selectable import Selectable
from kafkacore.network.tunnel import Tunnel

__all__ = [
    "ChannelBuilder",
    "ChannelState",
    "ConnectionPhase",
    "FrameReader",
    "HeartbeatEvent",
    "KafkaChannel",
    "MemoryPool",
    "NativeHeartbeat",
    "NetworkReceive",
    "NetworkSend",
    "Selectable",
    "Selector",
    "Tunnel",
]
