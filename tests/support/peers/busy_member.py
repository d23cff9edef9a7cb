"""A group member in a process of its own that computes when a line of its standard input requests it.

Each line is one step and gets one line as the answer: ``join`` polls, ``c`` holds the GIL in one C call,
``python`` computes in Python. The last two continue until :data:`BEATS` heartbeats have been sent. The answer
contains the number of its partitions, its generation, and the number of heartbeats of the step. ``end``
closes the consumer.
"""

from __future__ import annotations

import sys

from eventually import BUDGET_MS
from model.held_gil import beats_while_gil_is_held

from kafkacore import KafkaConsumer

#: Long enough not to expire on a slow machine; the heartbeats are counted.
SESSION_TIMEOUT_MS = int(5 * BUDGET_MS)
HEARTBEAT_INTERVAL_MS = 100
#: Heartbeats of one step: four sessions, with an interval of a quarter of the session timeout.
BEATS = 16


def run(servers: str, topic: str, group: str) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
    )
    heartbeat = consumer._engine.heartbeats._heartbeat
    for step in sys.stdin:
        before = heartbeat.sent_count
        match step.strip():
            case "join":
                consumer.poll(timeout_ms=200)
            case "c":
                beats_while_gil_is_held(heartbeat, BEATS, HEARTBEAT_INTERVAL_MS)
            case "python":
                while heartbeat.sent_count < before + BEATS:
                    sum(range(10_000))
            case "end":
                break
        beats = heartbeat.sent_count - before
        say(len(consumer.assignment()), consumer.group_metadata().generation_id, beats)
    consumer.close()


def say(*what: object) -> None:
    print(*what, flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    run(*sys.argv[1:])
