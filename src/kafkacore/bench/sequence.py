"""Create numbered values, and check which of them were received, to find lost and duplicated records.

A value consists of its number (four bytes, big-endian) and text.

The check must not slow down the measured loop. So the values of a batch are joined, and their numbers are
extracted by slices with a stride, which takes about 20 ns per value. The numbers are checked afterwards.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacore.clock import Clock

if TYPE_CHECKING:
    from kafkacore.record import RecordColumns

NUMBER_BYTES = 4
#: The number in every warm-up record. Warm-up records are not counted.
WARM_UP = 0xFFFF_FFFF
#: Maximum total bytes of distinct values. A run with more bytes sends values several times, and counts the
#: copies of each.
DISTINCT_BYTES = 256 << 20
_PER_VALUE_BYTES = 41
#: Letters of the random part of a value, with four bits of information in each byte.
_LETTERS = b"0123456789abcdef"
_TEMPLATE = b'","customer_reference":"","shipping_address":"","order_status":"'


def distinct_count(records: int, size: int) -> int:
    """Return the number of distinct values in a run of ``records``."""
    return max(1, min(records, DISTINCT_BYTES // (size + _PER_VALUE_BYTES)))


def write_values(path: Path, count: int, size: int, compressible: float, seed: int = 7) -> None:
    """Write ``count`` numbered values of ``size`` bytes.

    Parameters
    ----------
    path:
        File to write.
    count, size:
        Number of values, and bytes of each.
    compressible:
        Fraction, from 0 to 1, of the bytes after the number that are the same in each value, like field names
        in JSON. The other bytes are random letters out of sixteen.
    seed:
        Seed of the random letters.
    """
    chance = Clock(seed).random
    body = size - NUMBER_BYTES
    same = round(body * compressible)
    repeats = -(-same // len(_TEMPLATE))
    text = (_TEMPLATE * repeats)[:same]
    half, letters = same // 2, body - same
    first, second = text[:half], text[half:]
    translation = bytes(_LETTERS[byte % len(_LETTERS)] for byte in range(256))
    left = letters // 2
    with path.open("wb") as file:
        for start in range(0, count, 10_000):
            numbers = range(start, min(start + 10_000, count))
            blob = chance.randbytes(letters * len(numbers)).translate(translation)
            pieces = []
            for at, number in enumerate(numbers):
                drawn = blob[at * letters : (at + 1) * letters]
                number_bytes = number.to_bytes(NUMBER_BYTES, "big")
                pieces += [number_bytes, first, drawn[:left], second, drawn[left:]]
            file.write(b"".join(pieces))


def read_values(path: Path, size: int) -> list[bytes]:
    """Return the values of a file that :func:`write_values` wrote."""
    data = path.read_bytes()
    return [data[at : at + size] for at in range(0, len(data), size)]


def warm_up_value(size: int) -> bytes:
    return WARM_UP.to_bytes(NUMBER_BYTES, "big") + bytes(size - NUMBER_BYTES)


@dataclass(frozen=True)
class Verdict:
    """Number of lost, duplicated and unexpected records of a run."""

    lost: int
    duplicated: int
    #: Number of received records that no producer has sent, or that have the wrong size.
    unexpected: int

    @property
    def reason(self) -> str | None:
        """Reason why the run does not count, or ``None`` if every record was received once."""
        found = [
            f"{count:,} {what}"
            for count, what in (
                (self.lost, "lost"),
                (self.duplicated, "duplicated"),
                (self.unexpected, "never sent"),
            )
            if count
        ]
        return ", ".join(found) or None


class Sequences:
    """Collector of the numbers of received values, which all have the same size."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._planes = [bytearray() for _ in range(NUMBER_BYTES)]
        self._unexpected = 0

    def add(self, values: Sequence[bytes]) -> None:
        """Add a batch of values."""
        size = self._size
        joined = b"".join(values)
        if len(joined) != len(values) * size:
            good = [value for value in values if len(value) == size]
            self._unexpected += len(values) - len(good)
            joined = b"".join(good)
        for at, plane in enumerate(self._planes):
            plane += joined[at::size]

    def add_columns(self, columns: RecordColumns) -> int:
        """Add the values of ``columns``, and return their number. Needs pyarrow and numpy."""
        import numpy as np
        import pyarrow as pa

        values = pa.record_batch(columns).column("value")
        count, size = len(values), self._size
        if not count:
            return 0
        _, offsets, data = values.buffers()
        assert offsets is not None, "a binary column has offsets"
        assert data is not None, "a binary column has data"
        # The differences of the offsets show whether all values have the same size, without a Python loop.
        starts = np.frombuffer(memoryview(offsets), np.int32)[values.offset : values.offset + count + 1]
        if values.null_count or not (np.diff(starts) == size).all():
            self.add([value or b"" for value in values.to_pylist()])
            return count
        numbers = np.ndarray((count,), ">u4", memoryview(data), int(starts[0]), (size,))
        as_bytes = np.ascontiguousarray(numbers).view(np.uint8)
        for at, plane in enumerate(self._planes):
            plane += as_bytes[at::NUMBER_BYTES].tobytes()
        return count

    def numbers(self) -> array[int]:
        """Return all numbers in the order in which they were received."""
        flat = bytearray(NUMBER_BYTES * len(self._planes[0]))
        for at, plane in enumerate(self._planes):
            flat[at::NUMBER_BYTES] = plane
        numbers = array("I")
        numbers.frombytes(flat)
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers

    def verdict(self, records: int, distinct: int) -> Verdict:
        """Compare the received numbers with the sent ones. Record ``i`` has the number ``i % distinct``."""
        counts = array("I", bytes(4 * distinct))
        unexpected = self._unexpected
        for number in self.numbers():
            if number < distinct:
                counts[number] += 1
            elif number != WARM_UP:
                unexpected += 1
        rounds, rest = divmod(records, distinct)
        lost = duplicated = 0
        for expected, part in ((rounds + 1, counts[:rest]), (rounds, counts[rest:])):
            if part.count(expected) != len(part):
                lost += sum(expected - count for count in part if count < expected)
                duplicated += sum(count - expected for count in part if count > expected)
        return Verdict(lost, duplicated, unexpected)
