"""A topic that changes while Spark streams read it, and the comparable outcome of a stream."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewPartitions
from eventually import BUDGET_S, eventually
from pyspark.errors import StreamingQueryException

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery

#: Spark's own source and ours.
SOURCES = ("kafka", "kafkacore")

#: Values that a stream returned, by the suffix of the topic and the partition.
Found = dict[tuple[str, int], list[Any]]


class Topic:
    """A topic with a unique name, and further topics whose names add a suffix."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.name = f"stream-{uuid.uuid4().hex[:8]}"

    def create(self, suffix: str = "", partitions: int = 2) -> None:
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(self.name + suffix, num_partitions=partitions)])

    def grow(self, partitions: int) -> None:
        """Add partitions by librdkafka, and wait until the broker reports them."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        for answer in admin.create_partitions([NewPartitions(self.name, partitions)]).values():
            answer.result(2 * BUDGET_S)
        eventually(
            lambda: _are_led(admin.list_topics(self.name, 2 * BUDGET_S).topics[self.name], partitions),
            "the partitions do not come",
        )

    def delete(self, suffix: str = "") -> None:
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            admin.delete_topics([self.name + suffix])
            # A broker may still list it for a moment.
            eventually(lambda: self.name + suffix not in admin.list_topics(), "the topic does not go")

    def send(self, count: int, suffix: str = "", partitions: int = 2) -> None:
        with KafkaProducer(bootstrap_servers=self.bootstrap_servers, linger_ms=5) as producer:
            for number in range(count):
                producer.send(
                    self.name + suffix, b"x", partition=number % partitions, timestamp_ms=1000 + number
                )


def _are_led(topic: confluent_kafka.admin.TopicMetadata, partitions: int) -> bool:
    return len(topic.partitions) == partitions and all(one.leader >= 0 for one in topic.partitions.values())


class Running:
    """A running query and its results."""

    def __init__(self, query: StreamingQuery, batches: list[Found]) -> None:
        self.query = query
        self.batches = batches

    def settle(self) -> Found:
        """Wait until all records are read, and return all results."""
        self.query.processAllAvailable()
        found: Found = {}
        for batch in list(self.batches):
            for place, rows in batch.items():
                found.setdefault(place, []).extend(rows)
        return found


class Streams:
    """Starts queries.

    Parameters
    ----------
    frames:
        Function that returns the DataFrame of a source with its options.
    folder:
        Folder of the checkpoints.
    """

    def __init__(self, frames: Callable[[str, dict[str, str]], DataFrame], folder: str) -> None:
        self._frames = frames
        self._folder = folder

    def drain(
        self,
        source: str,
        topic: Topic,
        folder: str = "",
        of: Callable[[Row], Any] = lambda row: row.offset,
        **options: str,
    ) -> list[Found]:
        """Run a query until nothing is left; return its batches as ``{(suffix, partition): offsets}``.

        Parameters
        ----------
        of:
            What to return for a row instead of the offset.
        options:
            Options of the source, with dots as ``__``. ``TOPIC`` in a value is replaced by the topic's name.
        """
        batches: list[Found] = []
        writer = self._writer(source, topic, folder, of, options, batches).trigger(availableNow=True)
        query = writer.start()
        try:
            assert query.awaitTermination(2 * BUDGET_S)
        finally:
            query.stop()
        return batches

    @contextlib.contextmanager
    def running(
        self,
        source: str,
        topic: Topic,
        folder: str = "",
        of: Callable[[Row], Any] = lambda row: row.offset,
        **options: str,
    ) -> Iterator[Running]:
        """Run a query as in :meth:`drain` until the end of the block."""
        batches: list[Found] = []
        query = self._writer(source, topic, folder, of, options, batches).start()
        try:
            yield Running(query, batches)
        finally:
            query.stop()

    def _writer(
        self,
        source: str,
        topic: Topic,
        folder: str,
        of: Callable[[Row], Any],
        options: dict[str, str],
        batches: list[Found],
    ) -> Any:
        def keep(frame: DataFrame, number: int) -> None:
            found: Found = {}
            for row in sorted(frame.select("topic", "partition", "offset", "value").collect()):
                suffix = row.topic.removeprefix(topic.name)
                found.setdefault((suffix, row.partition), []).append(of(row))
            if found:
                batches.append(found)

        given = {
            "kafka.bootstrap.servers": topic.bootstrap_servers,
            "startingOffsets": "earliest",
            "fetchOffset.retryIntervalMs": "100",
            **({} if {"subscribePattern", "assign"} & options.keys() else {"subscribe": topic.name}),
            **{
                name.replace("__", "."): value.replace("TOPIC", topic.name) for name, value in options.items()
            },
        }
        checkpoint = f"{self._folder}/{folder or source}"
        writer = self._frames(source, given).writeStream.foreachBatch(keep)
        return writer.option("checkpointLocation", checkpoint)


def outcome(run: Callable[..., Any], *args: Any, **options: str) -> Any:
    """Return the results or the kind of failure."""
    try:
        return run(*args, **options)
    except StreamingQueryException as error:
        return kind_of(error)


def kind_of(error: StreamingQueryException | None) -> str:
    """Return the part of a query's failure that is the same for both sources."""
    if error is None:
        return "none"
    text = str(error)
    loses = "may have been lost" in text or "KAFKA_DATA_LOSS" in text or "may have been missed" in text
    return "data loss" if loses else "failure"


def outcomes(run: Callable[..., Any], topic: Topic, **options: str) -> Any:
    """Return the outcomes of both sources, which must be equal."""
    theirs, ours = (outcome(run, source, topic, **options) for source in SOURCES)
    assert ours == theirs
    return ours
