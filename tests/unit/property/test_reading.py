"""Reading a random log by records or columns, with any limits, from any offset.

Each visible record is returned once and in order. A corrupt batch is reported with its offset until a seek
past it.
"""

from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.consumer_cluster import ModelCluster, ModelMetadata, ModelNetwork
from model.reading import logs

from kafkacore.consumer import RecordDeserializationError, kafka_consumer
from kafkacore.consumer.kafka_consumer import KafkaConsumer
from kafkacore.errors import CorruptRecordError
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

PARTITION = TopicPartition("a", 0)
STEPS = ["records", "records", "columns", "columns", "bounded columns", "iteration", "seek", "pause"]


class Reader:
    """A consumer of one random log, with its expected position."""

    def __init__(self, drawn, is_committed, refused, **configs):
        self.refused = {offset for offset in refused if offset in drawn.visible(is_committed)}
        self.visible, self.broken = drawn.visible(is_committed), drawn.broken
        self.end = drawn.log.end_offset
        clock = VirtualClock()
        cluster = ModelCluster(clock, {PARTITION: drawn.log})
        metadata = ModelMetadata(cluster)
        parts = (ModelNetwork(cluster, metadata), metadata)
        with mock.patch.object(kafka_consumer, "bootstrap_client", return_value=parts):
            self.consumer = KafkaConsumer(
                clock=clock,
                bootstrap_timeout_ms=0,
                isolation_level="read_committed" if is_committed else "read_uncommitted",
                consumer_timeout_ms=20,
                fetch_max_wait_ms=10,
                value_deserializer=self.deserialize,
                **configs,
            )
        self.consumer.assign([PARTITION])
        self.seek(0)

    def deserialize(self, data):
        """Return the value, or raise ValueError at a refused offset; columns are not deserialized."""
        if int(data[1:]) in self.refused:
            raise ValueError(data)
        return data

    def seek(self, offset):
        self.consumer.seek(PARTITION, offset)
        self.position = offset

    def expected(self, end=None, deserialized=True):
        """Return the offsets up to ``end``, the corrupt batch, or a record that the deserializer refuses."""
        stop = self.end if end is None else end
        if deserialized:
            stop = min([stop, *(offset for offset in self.refused if offset >= self.position)])
        if self.broken is not None and self.position <= self.broken[1]:
            stop = min(stop, self.broken[0])
        return [offset for offset in self.visible if self.position <= offset < stop]

    def took(self, offsets, limit, end=None, deserialized=True):
        """Check the offsets that a call returned, and update the position."""
        expected = self.expected(end, deserialized)
        assert offsets == expected[: len(offsets)]
        assert len(offsets) <= limit
        position = self.consumer.position(PARTITION)
        if end is not None:
            assert position <= max(end, self.position)
        assert position >= self.position
        assert all(offset < position for offset in offsets)
        assert all(offset >= position for offset in expected[len(offsets) :])
        self.position = position
        assert offsets or not expected, "the call must return the available records"

    def failed(self, error):
        """Check that the error is due to the corrupt batch or a refused record, and seek past it.

        The error must be raised again until that seek.
        """
        assert self.expected() == []
        if isinstance(error, RecordDeserializationError):
            assert error.offset == min(offset for offset in self.refused if offset >= self.position)
            with pytest.raises(RecordDeserializationError):
                self.consumer.poll(50)
            self.seek(error.offset + 1)
            return
        assert self.broken is not None
        first, last = self.broken
        assert error.topic_partition == PARTITION
        assert first <= error.offset <= last
        assert self.consumer.position(PARTITION) <= last
        with pytest.raises(CorruptRecordError):
            self.consumer.poll(50)
        self.seek(last + 1)

    def records(self, limit):
        found = self.consumer.poll(50, max_records=limit)
        self.took([record.offset for record in found.get(PARTITION, [])], limit)

    def columns(self, limit, end=None):
        ends = None if end is None else {PARTITION: end}
        found = self.consumer.poll_arrow(50, max_records=limit, columns=("offset",), end_offsets=ends)
        offsets = pa.record_batch(found[PARTITION]).column(0).to_pylist() if found else []
        self.took(offsets, limit, end, deserialized=False)

    def iteration(self, limit):
        offsets = []
        try:
            for record in self.consumer:
                offsets.append(record.offset)
                if len(offsets) == limit:
                    break
        finally:
            self.took(offsets, limit)

    def step(self, data):
        kind, limit = data.draw(st.sampled_from(STEPS)), data.draw(st.integers(1, 9))
        if kind == "seek":
            self.seek(data.draw(st.integers(0, self.end)))
        elif kind == "pause":
            self.consumer.pause(PARTITION)
            assert self.consumer.poll(10) == {}
            self.consumer.resume(PARTITION)
        elif kind == "bounded columns":
            self.columns(limit, data.draw(st.integers(self.position, self.end)))
        else:
            getattr(self, kind)(limit)


@pytest.mark.kafka(
    "FetcherTest.testMultipleAbortMarkers",
    "FetcherTest.testReadCommittedAbortMarkerWithNoData",
    "FetcherTest.testReadCommittedWithCompactedTopic",
)
@pytest.mark.behaviour(
    "Fetcher",
    "earlier records come first; then every poll raises the corrupt batch with its offset until a seek",
)
@pytest.mark.behaviour("Fetcher", "read_committed drops aborted and control records and moves past them")
@settings(max_examples=150, deadline=None)
@given(
    st.data(),
    logs(),
    st.booleans(),
    st.sampled_from([1, 100, 1 << 20]),
    st.sets(st.integers(0, 30), max_size=3),
)
def test_every_visible_record_comes_once_and_in_order(data, drawn, is_committed, fetch_bytes, refused):
    reader = Reader(drawn, is_committed, refused, max_partition_fetch_bytes=fetch_bytes)
    try:
        for _ in range(data.draw(st.integers(1, 10))):
            try:
                reader.step(data)
            except (CorruptRecordError, RecordDeserializationError) as error:
                reader.failed(error)
        while reader.position < reader.end:
            try:
                reader.records(100) if data.draw(st.booleans()) else reader.columns(100)
            except (CorruptRecordError, RecordDeserializationError) as error:
                reader.failed(error)
        assert reader.expected() == []
    finally:
        reader.consumer.close(timeout_ms=0)
