"""A topic for one test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.consumer import ConsumerRecord, KafkaConsumer
from kafkacore.consumer.timer import Timer
from kafkacore.structs import TopicPartition


class KafkaTopic:
    """A topic that belongs to one test: the fixture ``kafka_topic``.

    Parameters
    ----------
    name:
        Name of an existing topic.
    settings:
        Settings with which a client connects, at least ``bootstrap_servers``.
    """

    def __init__(self, name: str, settings: Mapping[str, Any]) -> None:
        self.name = name
        self._settings = dict(settings)

    def __repr__(self) -> str:
        return f"<KafkaTopic {self.name!r} on {self.bootstrap_servers}>"

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of the brokers, for the program under test."""
        return str(self._settings["bootstrap_servers"])

    def client_settings(self) -> dict[str, Any]:
        """Return the settings that a kafkacore client needs: ``KafkaProducer(**topic.client_settings())``."""
        return dict(self._settings)

    def records(self, **settings: Any) -> list[ConsumerRecord]:
        """Return all records that the topic has now, in the order of each partition.

        Parameters
        ----------
        **settings:
            Settings of the :class:`~kafkacore.KafkaConsumer` that reads, for example ``value_deserializer``
            or ``isolation_level="read_committed"``.
        """
        found: list[ConsumerRecord] = []
        with self._reader(settings) as consumer:
            ends = consumer.end_offsets(consumer.assignment())
            while any(consumer.position(partition) < end for partition, end in ends.items()):
                for records in consumer.poll(1000).values():
                    found += records
        return before(ends, found)

    def wait_for(self, count: int, timeout: float = 30.0, **settings: Any) -> list[ConsumerRecord]:
        """Wait until the topic has ``count`` records, and return all records that were read until then.

        Parameters
        ----------
        count:
            Number of records, counted from the beginning of the topic.
        timeout:
            Seconds to wait.
        **settings:
            Settings of the consumer, as for :meth:`records`.

        Raises
        ------
        AssertionError
            The topic has fewer records when the time is over.
        """
        found: list[ConsumerRecord] = []
        timer = Timer(SYSTEM_CLOCK, timeout * 1000)
        with self._reader(settings) as consumer:
            while len(found) < count:
                if timer.expired:
                    raise too_few(self.name, found, count, timeout)
                for records in consumer.poll(timer.remaining_ms).values():
                    found += records
        return found

    def _reader(self, settings: Mapping[str, Any]) -> KafkaConsumer:
        consumer = KafkaConsumer(**{**self._settings, "auto_offset_reset": "earliest", **settings})
        try:
            partitions = consumer.partitions_for_topic(self.name)
            consumer.assign([TopicPartition(self.name, number) for number in partitions])
        except BaseException:
            consumer.close()
            raise
        return consumer


def before(ends: Mapping[TopicPartition, int], found: list[ConsumerRecord]) -> list[ConsumerRecord]:
    """Return the records before the end offset of their partition."""
    return [each for each in found if each.offset < ends[TopicPartition(each.topic, each.partition)]]


def too_few(topic: str, found: list[ConsumerRecord], count: int, timeout: float) -> AssertionError:
    """Return the error of a topic that has fewer than ``count`` records after ``timeout`` seconds."""
    return AssertionError(f"topic {topic} has {len(found)} of {count} records after {timeout:g} s")
