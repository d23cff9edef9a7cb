"""Sockets of both roles: connections by id in, whole frames in and out. Does not know: messages, DNS.

One thread owns a :class:`Selector`; what it reads and writes is Cython, without the GIL.
"""

from kafkacore.network.channel import KafkaChannel
from kafkacore.network.channel_builder import ChannelBuilder
from kafkacore.network.channel_state import ChannelState, ConnectionPhase
from kafkacore.network.heartbeat_line import HeartbeatLine
from kafkacore.network.line_notice import LineNotice
from kafkacore.network.memory import MemoryPool
from kafkacore.network.receive import FrameReader, NetworkReceive
from kafkacore.network.selectable import Selectable
from kafkacore.network.selector import Selector
from kafkacore.network.send import NetworkSend

__all__ = [
    "ChannelBuilder",
    "ChannelState",
    "ConnectionPhase",
    "FrameReader",
    "HeartbeatLine",
    "KafkaChannel",
    "LineNotice",
    "MemoryPool",
    "NetworkReceive",
    "NetworkSend",
    "Selectable",
    "Selector",
]
