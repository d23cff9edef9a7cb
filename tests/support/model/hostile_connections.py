"""Hostile connections, their cost for the broker's process, and a well-behaved client at the same time."""

from __future__ import annotations

import socket
import statistics
import struct
import time
from pathlib import Path

from eventually import BUDGET_S
from model.raw_line import Line

from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.testing.embedded_broker import EmbeddedBroker

MIB = 1 << 20


def memory_of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))


class Good(Line):
    """A well-behaved client that requests metadata."""

    def times(self, count: int = 1000) -> list[float]:
        """Return the response times in milliseconds."""
        took = []
        for _ in range(count):
            began = time.perf_counter()
            answer = self.ask(MetadataRequest(topics=[]), 12)
            took.append((time.perf_counter() - began) * 1e3)
            assert len(answer.brokers) == 1
        return took


def p99(took: list[float]) -> str:
    return f"{statistics.quantiles(took, n=100)[98]:.2f} ms"


def connect(broker: EmbeddedBroker) -> socket.socket:
    return socket.create_connection((broker.host, broker.port), BUDGET_S)


def is_closed(sock: socket.socket) -> bool:
    """Return whether the broker closes the connection, without sending anything except a TLS alert."""
    sock.settimeout(BUDGET_S)
    try:
        said = sock.recv(100)
        return said == b"" or (said[:1] == b"\x15" and sock.recv(100) == b"")
    except ConnectionResetError:
        return True


def frame(size: int, sent: bytes = b"") -> bytes:
    return struct.pack(">i", size) + sent
