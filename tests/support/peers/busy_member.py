"""A member of a group in a process of its own that is told to be busy, by lines of its standard input.

Each line is one step, answered by one line: ``join`` polls, ``c`` keeps the GIL in C for some seconds,
``python`` computes for as long; the answer is how many partitions it has, its generation, and how many
heartbeats went out within the step. ``end`` closes.
"""

from __future__ import annotations

import ctypes
import sys

from kafkacore import KafkaConsumer
from kafkacore.clock import SYSTEM_CLOCK

SESSION_TIMEOUT_MS = 5000
BUSY_S = 11


def run(servers: str, topic: str, group: str) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=SESSION_TIMEOUT_MS / 4,
    )
    heartbeat = consumer._engine.heartbeats._heartbeat
    for step in sys.stdin:
        before = heartbeat.sent_count
        match step.strip():
            case "join":
                consumer.poll(timeout_ms=200)
            case "c":
                # PyDLL, unlike CDLL, keeps the GIL during the call.
                ctypes.PyDLL(None).sleep(BUSY_S)
            case "python":
                compute(BUSY_S * 1000)
            case "end":
                break
        beats = heartbeat.sent_count - before
        say(len(consumer.assignment()), consumer.group_metadata().generation_id, beats)
    consumer.close()


def compute(duration_ms: float) -> None:
    end_ms = SYSTEM_CLOCK.monotonic_ms() + duration_ms
    while SYSTEM_CLOCK.monotonic_ms() < end_ms:
        sum(range(10_000))


def say(*what: object) -> None:
    print(*what, flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    run(*sys.argv[1:])
