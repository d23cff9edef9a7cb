"""Ranges of which records are gone, with both values of failOnDataLoss.

Either the log start passes the range while it is read, or the log ends before the range.
"""

import os

import pytest
from log_start import move_log_start

from kafkacore import KafkaConsumer
from kafkacore.spark.columns.output import KafkaColumns
from kafkacore.spark.reader import fetch
from kafkacore.spark.reader.consumers import CONSUMERS
from kafkacore.spark.reader.data_loss import DataLossError
from kafkacore.spark.reader.fetch import read_range
from kafkacore.spark.reader.offsets import OffsetRange
from kafkacore.spark.reader.options import parse_options
from kafkacore.testing import VirtualClock

ROWS = 60
#: Maximum bytes per fetch. Each record fills a batch and a response.
FETCH_BYTES = 16 * 1_024


@pytest.fixture
def topic(make_topic):
    return make_topic([(0, None, os.urandom(FETCH_BYTES)) for _ in range(ROWS)], partitions=1)


@pytest.fixture(autouse=True)
def _nothing_idle():
    yield
    CONSUMERS.close()


@pytest.fixture
def options(our_broker, topic):
    def of(loss, **more):
        return parse_options(
            {
                "kafka.bootstrap.servers": our_broker.bootstrap_servers,
                "kafka.max.partition.fetch.bytes": str(FETCH_BYTES),
                "subscribe": topic,
                "failOnDataLoss": loss,
                **more,
            },
            False,
        )

    return of


def read(options, topic, start, end):
    output = KafkaColumns(("offset",)).output()
    for batch in read_range(options, OffsetRange(topic, 0, start, end), output):
        yield from batch.column("offset").to_pylist()


@pytest.mark.parametrize("loss", ["true", "false"])
def test_a_range_that_is_still_there_is_read_whole(options, topic, loss, our_broker):
    move_log_start(our_broker.bootstrap_servers, topic, 0, 10)
    assert list(read(options(loss), topic, 10, ROWS)) == list(range(10, ROWS))


def test_a_range_that_has_been_deleted_in_part_fails(options, topic, our_broker):
    move_log_start(our_broker.bootstrap_servers, topic, 0, 20)
    with pytest.raises(
        DataLossError, match=r"5 to 19 of the range 5 to 60 .*the log has 20 to 60.*failOnDataLoss"
    ):
        list(read(options("true"), topic, 5, ROWS))


def test_what_is_left_of_it_is_read_where_loss_is_accepted(options, topic, our_broker, caplog):
    move_log_start(our_broker.bootstrap_servers, topic, 0, 20)
    assert list(read(options("false"), topic, 5, ROWS)) == list(range(20, ROWS))
    assert f"data loss accepted (failOnDataLoss=false): {topic}-0: offsets 5 to 19" in caplog.text


def test_a_range_that_has_been_deleted_whole_gives_nothing_then(options, topic, our_broker, caplog):
    move_log_start(our_broker.bootstrap_servers, topic, 0, 20)
    assert list(read(options("false"), topic, 5, 15)) == []
    assert f"{topic}-0: offsets 5 to 14" in caplog.text


def test_a_range_behind_the_logs_end_gives_nothing_then(options, topic, caplog):
    """Read a range of a topic that was deleted and created again with fewer records."""
    assert list(read(options("false"), topic, ROWS + 5, ROWS + 10)) == []
    assert f"{topic}-0: offsets {ROWS + 5} to {ROWS + 9}" in caplog.text
    with pytest.raises(DataLossError, match=f"the log has 0 to {ROWS}"):
        list(read(options("true"), topic, ROWS + 5, ROWS + 10))


@pytest.fixture
def _little_ahead(monkeypatch):
    """Limit the read-ahead, so that not all records are fetched before the log start moves."""
    monkeypatch.setattr(fetch, "AHEAD_BYTES", 1)


@pytest.mark.usefixtures("_little_ahead")
def test_the_logs_start_passes_the_position_while_reading(options, topic, our_broker):
    offsets = read(options("false"), topic, 0, ROWS)
    got = [next(offsets)]
    move_log_start(our_broker.bootstrap_servers, topic, 0, ROWS - 10)
    got += offsets
    # The reader returns the records that it has fetched ahead, and continues at the log start.
    jump = next(index for index, offset in enumerate(got) if offset != index)
    assert jump < ROWS // 2
    assert got == [*range(jump), *range(ROWS - 10, ROWS)]


@pytest.mark.usefixtures("_little_ahead")
def test_the_same_fails_where_loss_is_not_accepted(options, topic, our_broker):
    offsets = read(options("true"), topic, 0, ROWS)
    next(offsets)
    move_log_start(our_broker.bootstrap_servers, topic, 0, ROWS - 10)
    with pytest.raises(DataLossError, match="Set failOnDataLoss to false"):
        list(offsets)
    assert len(CONSUMERS) == 0


@pytest.fixture
def reading_at_the_logs_end(our_broker, topic):
    """Return a function that reads a range past the log end; each poll advances a virtual clock."""
    clock = VirtualClock()
    lent = []

    class Waiting:
        def __init__(self, consumer):
            self._consumer = consumer

        def __getattr__(self, name):
            return getattr(self._consumer, name)

        def poll_arrow(self, timeout_ms, **more):
            clock.advance(timeout_ms)
            return self._consumer.poll_arrow(timeout_ms=0, **more)

    def of(options):
        consumer = KafkaConsumer(bootstrap_servers=our_broker.bootstrap_servers, auto_offset_reset="none")
        lent.append(consumer)
        offsets = OffsetRange(topic, 0, ROWS, ROWS + 5)
        return fetch._Reading(Waiting(consumer), options, offsets, KafkaColumns(("offset",)).output(), clock)

    yield of
    for consumer in lent:
        consumer.close()


def test_a_log_that_ends_where_the_range_begins_is_data_loss_when_nothing_comes(
    options, reading_at_the_logs_end
):
    with pytest.raises(DataLossError, match=f"the log has 0 to {ROWS}"):
        list(reading_at_the_logs_end(options("true")).batches())
    assert list(reading_at_the_logs_end(options("false")).batches()) == []
