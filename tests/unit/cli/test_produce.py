"""How ``produce`` divides its input into lines and blocks, and which line it names after an error."""

import argparse
import io

import pytest

from kafkacore.cli import produce
from kafkacore.cli.common import CommandError
from kafkacore.errors import KafkaTimeoutError, MessageSizeTooLargeError

DEFAULTS = {
    "topic": "t", "file": None, "key": None, "key_separator": None, "header": [], "null": None,
    "tombstone": False, "json": False, "partition": None,
}  # fmt: skip


class Pipe(io.RawIOBase):
    """Returns one chunk at each read, like a pipe whose writer is slow."""

    def __init__(self, chunks):
        self.chunks = list(chunks)

    def readable(self):
        return True

    def readinto(self, buffer):
        chunk = self.chunks.pop(0) if self.chunks else b""
        buffer[: len(chunk)] = chunk
        return len(chunk)


class Future:
    """Future of one record, or of several ones."""

    def __init__(self, errors):
        self.errors = errors
        self.is_done = True

    def failed(self):
        return any(self.errors)

    @property
    def exception(self):
        return next(filter(None, self.errors), None)

    def __len__(self):
        return len(self.errors)

    def __getitem__(self, row):
        return Future(self.errors[row : row + 1])


class Producer:
    """Records what is sent. A value `b"large"` cannot be sent, and `b"lost"` is not acknowledged."""

    def __init__(self, memory=100):
        self.sent = []
        self.memory = memory

    def send_batch(self, topic, values, keys, headers, timestamps, partition):
        if b"large" in values:
            raise MessageSizeTooLargeError("row 1 is large; no row was sent")
        errors = [KafkaTimeoutError("lost") if value == b"lost" else None for value in values]
        if len(values) > self.memory:
            error = KafkaTimeoutError("no memory")
            error.future = Future(errors[: self.memory] + [error] * (len(values) - self.memory))
            raise error
        self.sent.append(list(values))
        return Future(errors)

    def send(self, topic, value, key, headers, partition, timestamp_ms):
        if value == b"large":
            raise MessageSizeTooLargeError("the record is large")
        return self.send_batch(topic, [value], [key], [headers], [timestamp_ms], partition)


def rows_of(chunks, **options):
    source = io.BufferedReader(Pipe(chunks))
    return produce._rows(produce._split(source), argparse.Namespace(**(DEFAULTS | options)))


def send(chunks, producer, **options):
    outcome = produce._Outcome()
    for rows in rows_of(chunks, **options):
        produce._send(producer, "t", rows, outcome)
    return outcome


@pytest.mark.parametrize(
    ("chunks", "blocks"),
    [
        ([], []),
        ([b"a\n", b"b\n"], [[b"a"], [b"b"]]),
        ([b"a\nb\nc", b"d", b"\n\ne"], [[b"a", b"b"], [b"cd", b""], [b"e"]]),
        ([b"\n"], [[b""]]),
        ([b"a\r\n\0\xff"], [[b"a\r"], [b"\0\xff"]]),
    ],
)
def test_each_read_is_a_block_of_complete_lines(chunks, blocks):
    assert list(produce._split(io.BufferedReader(Pipe(chunks)))) == blocks


def test_line_is_sent_before_the_next_one_is_read():
    reads = []
    pipe = Pipe([b"a\n", b"b\n"])
    for rows in produce._split(io.BufferedReader(pipe)):
        reads.append((rows, list(pipe.chunks)))
    assert reads == [([b"a"], [b"b\n"]), ([b"b"], [])]


def test_keys_nulls_headers_and_partition_are_columns():
    (rows,) = rows_of([b"k:v\n:x\nk:\n"], key_separator=":", null="", header=[("a", "1")], partition=2)
    assert list(rows.keys) == [b"k", None, b"k"]
    assert list(rows.values) == [b"v", b"x", None]
    assert rows.headers == [[("a", b"1")]] * 3
    assert rows.partition == 2


def test_rows_before_a_wrong_line_are_sent():
    producer = Producer()
    with pytest.raises(CommandError, match="line 4 has no key separator ':'"):
        send([b"a:1\n", b"b:2\nc:3\nd\ne:5\n"], producer, key_separator=":")
    assert producer.sent == [[b"1"], [b"2", b"3"]]
    producer = Producer()
    with pytest.raises(CommandError, match="line 3 is not JSON"):
        send([b'{"value": "1"}\n', b'{"value": 2}\nx\n'], producer, json=True)
    assert producer.sent == [[b"1"], [b"2"]]


def test_line_that_cannot_be_sent_is_named():
    producer = Producer()
    with pytest.raises(CommandError, match=r"line 4 cannot be sent: .+ the record is large"):
        send([b"1\n", b"2\n3\nlarge\n5\n"], producer)
    assert producer.sent == [[b"1"], [b"2"], [b"3"]]


def test_line_without_memory_is_named():
    with pytest.raises(CommandError, match="line 5 cannot be sent: no memory"):
        send([b"1\n2\n", b"3\n4\n5\n6\n"], Producer(memory=2))


def test_failures_are_counted_in_order():
    outcome = send([b"1\nlost\n3\n", b"lost\n"], Producer())
    assert outcome.sent == 4
    assert [str(error) for error in outcome.failures()] == ["lost", "lost"]
