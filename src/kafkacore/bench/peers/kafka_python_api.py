"""Loops over the API of kafka-python, which kafka-python and kafkacore share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkacore.bench.pacing import Pacer
from kafkacore.bench.peers import CHUNK_RECORDS, POLL_MS, Take, stream
from kafkacore.clock import SYSTEM_CLOCK


class SendLoop:
    """Sends records by calling ``KafkaProducer.send`` in a loop."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def send_all(self, topic: str, values: Sequence[bytes], count: int) -> None:
        send = self._client.send
        for value in stream(values, count):
            send(topic, value)
        self._client.flush()

    def send_paced(self, topic: str, values: Sequence[bytes], pacer: Pacer) -> None:
        send = self._client.send

        def send_one(index: int) -> None:
            future = send(topic, values[index % len(values)])
            future.add_callback(lambda _: pacer.done(index)).add_errback(lambda _: pacer.fail())

        pacer.begin()
        pacer.send_all(send_one, SYSTEM_CLOCK.sleep_ms)
        self._client.flush()

    def close(self) -> None:
        self._client.close()


class PollLoop:
    """Reads records by calling ``KafkaConsumer.poll`` in a loop."""

    def __init__(self, client: Any, topic_partition: Any) -> None:
        self._client = client
        self._topic_partition = topic_partition

    def assign(self, topic: str, partitions: int) -> None:
        self._client.assign([self._topic_partition(topic, number) for number in range(partitions)])

    def subscribe(self, topic: str) -> None:
        self._client.subscribe([topic])

    def read(self, count: int, take: Take) -> None:
        poll, got = self._client.poll, 0
        while got < count:
            found = poll(POLL_MS)
            for records in found.values():
                got += len(records)
                for at in range(0, len(records), CHUNK_RECORDS):
                    take([record.value for record in records[at : at + CHUNK_RECORDS]])
            if not found:
                take([])

    def rewind(self) -> None:
        self._client.seek_to_beginning()

    def close(self) -> None:
        self._client.close()
