"""A group member in a process of its own, controlled by lines of its standard input.

Each word is one step and gets one line as the answer: ``read`` polls until there are records and returns
their number; ``commit`` commits all records read, and returns ``done`` or the name of the error; ``end``
closes the consumer.
"""

from __future__ import annotations

import sys

from kafkacore import KafkaConsumer
from kafkacore.errors import KafkaError

SESSION_TIMEOUT_MS = 5000


def run(servers: str, topic: str, group: str) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=SESSION_TIMEOUT_MS / 4,
    )
    for line in sys.stdin:
        match line.strip():
            case "read":
                while not (records := consumer.poll(timeout_ms=500)):
                    pass
                say(sum(map(len, records.values())))
            case "commit":
                try:
                    consumer.commit()
                except KafkaError as error:
                    say(type(error).__name__)
                else:
                    say("done")
            case "end":
                break
    consumer.close()


def say(what: object) -> None:
    print(what, flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    run(*sys.argv[1:])
