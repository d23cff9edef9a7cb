"""The builder of batches for ``send_batch``."""

from __future__ import annotations

import pytest

from kafkacore.aio import BatchBuilder
from kafkacore.record import encode
from kafkacore.testing import VirtualClock


def test_size_is_that_of_the_encoded_batch():
    builder = BatchBuilder(1 << 20, clock=VirtualClock(5000))
    values = [b"", b"v" * 63, b"v" * 64, None, b"v" * 10_000]
    for index, value in enumerate(values):
        headers = [("name", b"data"), ("none", None)] if index == 1 else []
        metadata = builder.append(timestamp=5000 + index * 100, key=b"k", value=value, headers=headers)
        assert (metadata.offset, metadata.timestamp) == (index, 5000 + index * 100)
    (batch,) = encode(
        values,
        [b"k"] * 5,
        [[], [("name", b"data"), ("none", None)], [], [], []],
        timestamps=[5000, 5100, 5200, 5300, 5400],
    )
    assert (builder.size(), builder.record_count()) == (len(batch), 5)


def test_a_full_batch_is_closed():
    builder = BatchBuilder(200, clock=VirtualClock(5000))
    assert builder.append(timestamp=None, key=None, value=b"v" * 500).timestamp == 5000
    assert builder.append(timestamp=None, key=None, value=b"v") is None
    assert builder.closed()
    assert builder.record_count() == 1


def test_a_closed_batch_takes_no_record():
    builder = BatchBuilder(200, clock=VirtualClock())
    builder.append(timestamp=1, key=b"k", value=None)
    assert len(builder.source()) == 1
    assert builder.append(timestamp=1, key=b"k", value=None) is None


def test_keys_and_values_are_serialized():
    builder = BatchBuilder(
        200, lambda topic, headers, data: data.encode(), lambda topic, headers, data: b"%d" % data
    )
    assert builder.append(timestamp=1, key="key", value=12345, headers=None).size == 15


def test_a_record_without_key_and_value_is_refused():
    with pytest.raises(ValueError, match="key or a value"):
        BatchBuilder(200).append(timestamp=1, key=None, value=None)
