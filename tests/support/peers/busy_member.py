"""A member of a group in a process of its own that is busy when a line of its standard input asks it to be.

Each line is one step, answered by one line: ``join`` polls, ``c`` keeps the GIL in one C call, ``python``
computes; both go on until :data:`BEATS` heartbeats have been sent meanwhile. The answer is the number of its
partitions, its generation, and the number of heartbeats of the step. ``end`` closes.
"""

from __future__ import annotations

import sys

from eventually import BUDGET_MS
from model.held_gil import beats_while_gil_is_held

from kafkacore import KafkaConsumer

#: It does not expire while the machine is slow; the heartbeats are counted.
SESSION_TIMEOUT_MS = int(5 * BUDGET_MS)
HEARTBEAT_INTERVAL_MS = 100
#: Of one step: with an interval of a quarter of the session they are four sessions.
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
                beats_while_gil_is_held(heartbeat, BEATS)
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
