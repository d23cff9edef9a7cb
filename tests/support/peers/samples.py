"""Records of the cross-client tests: null and empty parts, headers, and values from 1 B to 1 MB."""

from __future__ import annotations

import random
from collections.abc import Sequence

from peers.java_peer import Received, Sample

T0 = 1_700_000_000_000

#: Headers of every form that all five clients can send.
HEADERS = (("a", b"1"), ("a", b"2"), ("empty", b""), ("ключ-鍵-🔑", b"Unicode"))


def edge_samples(partitions: int) -> list[Sample]:
    """Return small records with each part null, empty and non-empty, spread over ``partitions``."""
    shapes: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]] = [
        (b"key", b"value", ()),
        (None, b"no key", ()),
        (b"no value", None, ()),
        (b"", b"", ()),
        (b"headers", b"value", HEADERS),
        (None, b"headers, no key", HEADERS[:1]),
        (b"\x00\xff\r\n", bytes(range(256)), ()),
    ]
    return [
        Sample(value, key, number % partitions, T0 + number, headers)
        for number, (key, value, headers) in enumerate(shapes * 2)
    ]


def sized_samples(sizes: Sequence[int] = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)) -> list[Sample]:
    """Return values of these sizes in bytes for partition 0. Half of each is incompressible."""
    chance = random.Random(20_260_101)
    return [
        Sample(chance.randbytes(size - size // 2) + b"x" * (size // 2), b"%d" % size, 0, T0 + number)
        for number, size in enumerate(sizes)
    ]


def expected(samples: Sequence[Sample], places: Sequence[tuple[int, int]]) -> list[Received]:
    """Return the expected records by partition and offset, from the places that the producer reported."""
    return sorted(
        (
            Received(partition, offset, _set(sample.timestamp), 0, sample.key, sample.value, sample.headers)
            for sample, (partition, offset) in zip(samples, places, strict=True)
        ),
        key=by_place,
    )


def by_place(record: Received) -> tuple[int, int]:
    """Return the sort key: partition, then offset."""
    return record.partition, record.offset


def _set(timestamp: int | None) -> int:
    assert timestamp is not None, "only records with a timestamp of their own can be compared"
    return timestamp
