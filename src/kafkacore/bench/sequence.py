"""Values that are numbered, and the count of those that came: none lost, none twice.

A value is its number (four bytes, big-endian) and text. Lists of values or Arrow columns in, a verdict out.
Does not know: where the values come from.

The loop that is measured must not pay for the check. So a batch of values is joined and its numbers are cut
out by slices with a stride, about 20 ns a value; they are looked at after the clock has stopped.
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
#: The number of all warm-up records; they are not counted.
WARM_UP = 0xFFFF_FFFF
#: Distinct values are made up to so many bytes; then their numbers come again, and are counted.
DISTINCT_BYTES = 256 << 20
_PER_VALUE_BYTES = 41
#: Where the random part of a value takes its letters: four bits of information in each byte.
_LETTERS = b"0123456789abcdef"
_TEMPLATE = b'","customer_reference":"","shipping_address":"","order_status":"'


def distinct_count(records: int, size: int) -> int:
    """How many different values a run of ``records`` has."""
    return max(1, min(records, DISTINCT_BYTES // (size + _PER_VALUE_BYTES)))


def write_values(path: Path, count: int, size: int, compressible: float, seed: int = 7) -> None:
    """Write ``count`` numbered values of ``size`` bytes.

    Parameters
    ----------
    compressible:
        Share of the bytes behind the number that is the same text in each value, as the names of fields are
        in JSON: 0 to 1. The others are letters out of sixteen, by chance.
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
    """The values of :func:`write_values`."""
    data = path.read_bytes()
    return [data[at : at + size] for at in range(0, len(data), size)]


def warm_up_value(size: int) -> bytes:
    return WARM_UP.to_bytes(NUMBER_BYTES, "big") + bytes(size - NUMBER_BYTES)


@dataclass(frozen=True)
class Verdict:
    """What a run did to its records."""

    lost: int
    doubled: int
    #: Records that none has sent, or of another size.
    strange: int

    @property
    def reason(self) -> str | None:
        """Why the run does not count, or ``None`` if every record came once."""
        found = [
            f"{count:,} {what}"
            for count, what in (
                (self.lost, "lost"),
                (self.doubled, "doubled"),
                (self.strange, "never sent"),
            )
            if count
        ]
        return ", ".join(found) or None


class Sequences:
    """Gathers the numbers of values of one size."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._planes = [bytearray() for _ in range(NUMBER_BYTES)]
        self._strange = 0

    def add(self, values: Sequence[bytes]) -> None:
        """Take a batch of values."""
        size = self._size
        joined = b"".join(values)
        if len(joined) != len(values) * size:
            good = [value for value in values if len(value) == size]
            self._strange += len(values) - len(good)
            joined = b"".join(good)
        for at, plane in enumerate(self._planes):
            plane += joined[at::size]

    def add_columns(self, columns: RecordColumns) -> int:
        """Take the column ``value`` of ``RecordColumns``; how many rows it has. Needs pyarrow and numpy."""
        import numpy as np
        import pyarrow as pa

        values = pa.record_batch(columns).column("value")
        count, size = len(values), self._size
        if not count:
            return 0
        _, offsets, data = values.buffers()
        assert offsets is not None, "a binary column has offsets"
        assert data is not None, "a binary column has data"
        # One compare instead of one a row: equal sizes show in the offsets' distance.
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
        """All numbers, in the order in which they came."""
        flat = bytearray(NUMBER_BYTES * len(self._planes[0]))
        for at, plane in enumerate(self._planes):
            flat[at::NUMBER_BYTES] = plane
        numbers = array("I")
        numbers.frombytes(flat)
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers

    def verdict(self, records: int, distinct: int) -> Verdict:
        """Compare with what was sent: number ``i % distinct`` for each ``i`` of ``records``."""
        counts = array("I", bytes(4 * distinct))
        strange = self._strange
        for number in self.numbers():
            if number < distinct:
                counts[number] += 1
            elif number != WARM_UP:
                strange += 1
        rounds, rest = divmod(records, distinct)
        lost = doubled = 0
        for expected, part in ((rounds + 1, counts[:rest]), (rounds, counts[rest:])):
            if part.count(expected) != len(part):
                lost += sum(expected - count for count in part if count < expected)
                doubled += sum(count - expected for count in part if count > expected)
        return Verdict(lost, doubled, strange)
