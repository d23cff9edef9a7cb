"""The client confluent-kafka, which uses librdkafka."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import import_module

from kafkacore.bench.pacing import Pacer
from kafkacore.bench.peers import CHUNK_RECORDS, POLL_MS, Take, stream
from kafkacore.bench.task import ClientSettings
from kafkacore.clock import SYSTEM_CLOCK

#: Number of records between two calls of ``poll`` for delivery reports. A ``poll`` costs as much as a send.
RECORDS_PER_POLL = 10_000
#: Maximum seconds of one call of ``poll`` in the thread that calls the callbacks.
SERVE_S = 0.1
SEEK_TRIES = 100
SEEK_WAIT_S = 0.01


class Producer:
    """Loop over ``Producer.produce``. When the queue is full, the loop calls ``poll``, as documented."""

    def __init__(self, settings: ClientSettings) -> None:
        self._client = import_module("confluent_kafka").Producer(settings)

    def send_all(self, topic: str, values: Sequence[bytes], count: int) -> None:
        produce, poll = self._client.produce, self._client.poll
        records = stream(values, count)
        for _ in range(0, count, RECORDS_PER_POLL):
            for _, value in zip(range(RECORDS_PER_POLL), records, strict=False):
                try:
                    produce(topic, value)
                except BufferError:
                    self._wait_and_produce(topic, value)
            poll(0)
        self._client.flush()

    def _wait_and_produce(self, topic: str, value: bytes) -> None:
        while True:
            self._client.poll(0.01)
            try:
                self._client.produce(topic, value)
            except BufferError:
                continue
            return

    def send_paced(self, topic: str, values: Sequence[bytes], pacer: Pacer) -> None:
        produce, poll = self._client.produce, self._client.poll
        is_done = threading.Event()

        def serve_reports() -> None:
            while not is_done.is_set():
                poll(SERVE_S)

        def send_one(index: int) -> None:
            def acknowledged(error: object, _: object) -> None:
                if error is None:
                    pacer.done(index)
                else:
                    pacer.fail()

            while True:
                try:
                    produce(topic, values[index % len(values)], on_delivery=acknowledged)
                except BufferError:
                    SYSTEM_CLOCK.sleep_ms(1)
                    continue
                return

        # A thread calls the callbacks, as in the client's own examples. poll() rounds its timeout down to
        # whole milliseconds. If it waited for the next record, it would be a busy loop above 1,000 records/s.
        server = threading.Thread(target=serve_reports)
        server.start()
        pacer.begin()
        pacer.send_all(send_one, SYSTEM_CLOCK.sleep_ms)
        self._client.flush()
        is_done.set()
        server.join()

    def close(self) -> None:
        self._client.flush()


class Consumer:
    """Loop over ``Consumer.consume``, librdkafka's call for many records."""

    def __init__(self, settings: ClientSettings, poll_records: int) -> None:
        self._module = import_module("confluent_kafka")
        self._client = self._module.Consumer(settings)
        self._poll_records = poll_records

    def assign(self, topic: str, partitions: int) -> None:
        self._client.assign([self._module.TopicPartition(topic, number, 0) for number in range(partitions)])

    def subscribe(self, topic: str) -> None:
        self._client.subscribe([topic])

    def read(self, count: int, take: Take) -> None:
        consume, poll_records, got = self._client.consume, self._poll_records, 0
        while got < count:
            # consume() waits for as many records as requested, so do not request more than remain.
            messages = consume(min(poll_records, count - got), POLL_MS / 1000)
            got += len(messages)
            for at in range(0, len(messages), CHUNK_RECORDS):
                take([message.value() for message in messages[at : at + CHUNK_RECORDS]])
            if not messages:
                take([])

    def rewind(self) -> None:
        for partition in self._client.assignment():
            partition.offset = 0
            self._seek(partition)

    def _seek(self, partition: object) -> None:
        for _ in range(SEEK_TRIES):
            try:
                self._client.seek(partition)
            except self._module.KafkaException:
                # seek() fails until fetching from the partition has started, so retry.
                self._client.poll(SEEK_WAIT_S)
            else:
                return
        self._client.seek(partition)

    def close(self) -> None:
        self._client.close()
