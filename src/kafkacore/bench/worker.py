"""Program that performs one run of one client: ``python -m kafkacore.bench.worker TASK``.

The argument is a :class:`Task` in JSON. The program prints one line of JSON with the resources that the run
used (``meter``) and its outcome. A receiver first prints ``{"event": "ready"}``. The program exits when its
parent does, because its standard input is a pipe from the parent.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacore.bench.meter import Meter
from kafkacore.bench.pacing import Pacer, percentiles
from kafkacore.bench.peers import ArrowConsumer, ArrowProducer, Producer, consumer_of, producer_of
from kafkacore.bench.security import settings_of
from kafkacore.bench.sequence import WARM_UP, Sequences, read_values, warm_up_value
from kafkacore.bench.settings import client_of
from kafkacore.bench.task import Answer, Task
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaTimeoutError

if TYPE_CHECKING:
    from kafkacore.record import RecordColumns

#: Pause between the warm-up and the first record of a paced run. The warm-up is received during the pause.
SETTLE_MS = 500


def run(task: Task) -> Answer:
    """Perform a task and return its figures."""
    if task.is_secure:
        task = replace(task, settings=task.settings | settings_of(client_of(task.peer)))
    role = {"produce": _produce, "paced": _paced, "consume": _consume, "receive": _receive}[task.role]
    return _traced(role, task) if task.stages_file else role(task)


def _traced(role: Callable[[Task], Answer], task: Task) -> Answer:
    """Perform a task and write the stamps of its trace to a file."""
    from kafkacore.bench.stages import capacity, write_stamps
    from kafkacore.wire import _trace

    _trace.start(capacity(task.warm_up_records + task.records))
    answer = role(task)
    stamps, lost = _trace.stop()
    assert not lost, f"the trace has no space for {lost} stamps"
    write_stamps(Path(task.stages_file), stamps)
    return answer


# ---- Sending -----------------------------------------------------------------------------------------------


def _warm_producer(task: Task, producer: Producer) -> None:
    warm = [warm_up_value(task.size)]
    producer.send_all(task.topic, warm, task.warm_up_records)
    for topic in task.other_topics:
        producer.send_all(topic, warm, 1)


def _produce(task: Task) -> Answer:
    values = read_values(Path(task.values_file), task.size)
    producer = producer_of(task.peer, task.settings)
    _warm_producer(task, producer)
    if task.arrow:
        assert isinstance(producer, ArrowProducer), "the peer does not support Arrow"
        producer.prepare(values)
    each = task.records // task.flushes
    meter = Meter()
    for _ in range(task.flushes):
        producer.send_all(task.topic, values, each)
    used = meter.stop()
    producer.close()
    return {**used, "records": each * task.flushes}


def _paced(task: Task) -> Answer:
    values = read_values(Path(task.values_file), task.size)
    producer = producer_of(task.peer, task.settings)
    _warm_producer(task, producer)
    SYSTEM_CLOCK.sleep_ms(SETTLE_MS)
    if task.has_busy_thread:
        threading.Thread(target=_compute, daemon=True).start()
    pacer = Pacer(task.rate, task.records)
    meter = Meter()
    producer.send_paced(task.topic, values, pacer)
    used = meter.stop()
    producer.close()
    return {
        **used,
        "records": task.records,
        "failed": pacer.failed,
        "start_ms": pacer.start_ms,
        "latency_ms": percentiles(pacer.latencies_ms()),
    }


def _compute() -> None:
    """Compute without a pause, so that all other threads must wait for the GIL."""
    number = 0
    while True:
        number += 1


# ---- Reading -----------------------------------------------------------------------------------------------


class _ReadTimeout:
    """Raises an error if reading has returned no record for too long."""

    def __init__(self, task: Task) -> None:
        self._limit_ms = task.patience_s * 1000
        self._topic = task.topic
        self._last_ms = SYSTEM_CLOCK.monotonic_ms()

    def check(self, count: int) -> None:
        now_ms = SYSTEM_CLOCK.monotonic_ms()
        if count:
            self._last_ms = now_ms
        elif now_ms - self._last_ms > self._limit_ms:
            raise KafkaTimeoutError(f"received no record of {self._topic} in {self._limit_ms / 1000:g} s")


def _consume(task: Task) -> Answer:
    consumer = consumer_of(task.peer, task.settings, task.poll_records)
    if task.as_member:
        consumer.subscribe(task.topic)
    else:
        consumer.assign(task.topic, task.partitions)
    consumer.read(min(task.warm_up_records, task.records), lambda values: None)
    consumer.rewind()
    sequences, timeout = Sequences(task.size), _ReadTimeout(task)
    if task.arrow:
        import numpy as np
        import pyarrow as pa

        del np, pa  # Both are imported here, so that the import is not part of the measurement.

    def take(values: list[bytes]) -> None:
        timeout.check(len(values))
        sequences.add(values)

    def take_columns(columns: RecordColumns | None) -> int:
        count = sequences.add_columns(columns) if columns is not None else 0
        timeout.check(count)
        return count

    meter = Meter()
    if task.arrow:
        assert isinstance(consumer, ArrowConsumer), "the peer does not support Arrow"
        consumer.read_arrow(task.records, take_columns)
    else:
        consumer.read(task.records, take)
    used = meter.stop()
    consumer.close()
    verdict = sequences.verdict(task.records, _distinct(task))
    return {**used, "records": task.records, "void": verdict.reason}


def _distinct(task: Task) -> int:
    return Path(task.values_file).stat().st_size // task.size


class _Arrivals:
    """Arrival time of each record: the end of the call that returned the record."""

    def __init__(self, task: Task) -> None:
        self._timeout = _ReadTimeout(task)
        self._is_ready = False
        self.sequences = Sequences(task.size)
        self.times_ms = array("d")

    def take(self, values: list[bytes]) -> None:
        now_ms = SYSTEM_CLOCK.monotonic_ms()
        if not self._is_ready:
            # The first call shows that the client has the topic's metadata, and that its fetch request waits
            # on the broker.
            self._is_ready = True
            print(json.dumps({"event": "ready"}), flush=True)  # noqa: T201 - for the runner
        self._timeout.check(len(values))
        self.sequences.add(values)
        self.times_ms.extend([now_ms] * len(values))


def _receive(task: Task) -> Answer:
    consumer = consumer_of(task.peer, task.settings, task.poll_records)
    arrivals = _Arrivals(task)
    consumer.assign(task.topic, task.partitions)
    consumer.read(task.warm_up_records, arrivals.take)
    meter = Meter()
    consumer.read(task.records + task.warm_up_records - len(arrivals.times_ms), arrivals.take)
    used = meter.stop()
    consumer.close()
    numbers = arrivals.sequences.numbers()
    with Path(task.times_file).open("wb") as file:
        for number, at_ms in zip(numbers, arrivals.times_ms, strict=True):
            if number != WARM_UP:
                array("d", (number, at_ms)).tofile(file)
    verdict = arrivals.sequences.verdict(task.records, _distinct(task))
    return {**used, "records": task.records, "void": verdict.reason}


# ---- The process -------------------------------------------------------------------------------------------


def _end_with_parent() -> None:
    """Exit when standard input ends, because this means that the parent has exited."""
    os.read(0, 1)
    os._exit(1)


def main() -> int:
    """Run the task given on the command line."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    print(json.dumps(run(Task.from_json(sys.argv[1]))), flush=True)  # noqa: T201 - for the runner
    return 0


if __name__ == "__main__":
    sys.exit(main())
