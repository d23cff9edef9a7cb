"""A process that sends records, and prints its results and its memory use as a line of JSON.

It is separate from the test, whose own memory would be measured too. The first eight bytes of a record are
unique.

    PYTHONPATH=tests/support python -m model.sending_process SERVERS TOPIC RECORDS SIZE PARTITIONS OPTIONS

OPTIONS are JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventually import BUDGET_S

from kafkacore import KafkaProducer
from kafkacore.clock import SYSTEM_CLOCK

SUPPORT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Sent:
    """The printed line."""

    acknowledged: int
    failed: int
    #: Maximum growth of the memory in bytes while it sent, including the memory of its records.
    grown: int
    elapsed_s: float
    error: str | None


def send_in_a_process(
    servers: str, topic: str, records: int, size: int, partitions: int, **options: Any
) -> Sent:
    """Run the process to its end and return its result."""
    command = [sys.executable, "-m", "model.sending_process", servers, topic]
    command += [str(records), str(size), str(partitions), json.dumps(options)]
    done = subprocess.run(
        command, cwd=SUPPORT, capture_output=True, text=True, timeout=5 * BUDGET_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return Sent(**json.loads(done.stdout))


def value_of(number: int, size: int) -> bytes:
    return (b"%08d" % number + b"kafkacore " * (size // 10))[:size]


class _Outcomes:
    acknowledged = 0
    failed = 0
    error: str | None = None

    def on_acknowledged(self, _: Any) -> None:
        self.acknowledged += 1

    def on_failed(self, error: BaseException) -> None:
        self.failed += 1
        self.error = self.error or repr(error)


def memory(name: str) -> int:
    """Return ``VmRSS`` or ``VmHWM`` in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def main() -> None:
    servers, topic, *numbers, options = sys.argv[1:]
    records, size, partitions = map(int, numbers)
    outcomes = _Outcomes()
    with KafkaProducer(bootstrap_servers=servers, **json.loads(options)) as producer:
        producer.send(topic, value_of(99_999_999, size), partition=0).get(BUDGET_S)
        before, begun_ms = memory("VmRSS"), SYSTEM_CLOCK.monotonic_ms()
        for number in range(records):
            future = producer.send(topic, value_of(number, size), partition=number % partitions)
            future.add_callback(outcomes.on_acknowledged).add_errback(outcomes.on_failed)
        producer.flush(5 * BUDGET_S)
        elapsed_s = (SYSTEM_CLOCK.monotonic_ms() - begun_ms) / 1000
        grown = memory("VmHWM") - before
    sent = Sent(outcomes.acknowledged, outcomes.failed, grown, elapsed_s, outcomes.error)
    sys.stdout.write(json.dumps(sent.__dict__) + "\n")


if __name__ == "__main__":
    main()
