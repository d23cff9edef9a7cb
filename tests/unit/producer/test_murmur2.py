"""The murmur2 hash that selects a key's partition, compared with Java's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python
from model.murmur2_by_the_book import murmur2 as murmur2_by_the_book

from kafkacore.partitioner import murmur2

#: Input → Java's signed result, from Apache Kafka's ``UtilsTest.testMurmur2``.
OF_JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("data", "signed"), OF_JAVA.items())
def test_murmur2_is_that_of_java(data: bytes, signed: int) -> None:
    assert murmur2(data) == signed & 0xFFFFFFFF


@given(st.binary(max_size=200))
def test_murmur2_is_that_of_the_book_and_of_kafka_python(data: bytes) -> None:
    assert murmur2(data) == murmur2_by_the_book(data) == murmur2_of_kafka_python(data)


def test_murmur2_takes_any_buffer_of_bytes() -> None:
    assert murmur2(bytearray(b"abc")) == murmur2(memoryview(b"xabc")[1:]) == murmur2(b"abc")


def test_murmur2_refuses_text() -> None:
    with pytest.raises(TypeError):
        murmur2("abc")  # type: ignore[arg-type]  # the wrong type is the point
