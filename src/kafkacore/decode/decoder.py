"""What every decoder takes and gives: a column of bytes in, columns of values and the rows that failed out.

Does not know: any format.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

from kafkacore.errors import KafkaError

if TYPE_CHECKING:
    import pyarrow as pa

#: An Arrow array of any type.
ArrowArray: TypeAlias = "pa.Array[Any]"
#: A field of any type.
ArrowField: TypeAlias = "pa.Field[Any]"
#: Longest piece of a value that a reason may quote, in characters: a log is no place for the whole of it.
QUOTED_CHARACTERS = 100
#: Most memory of the columns of one call: more is split, or malformed where it is one record. 1 GiB.
BATCH_BYTES = 1 << 30

NO_REASONS: Mapping[int, str] = MappingProxyType({})


class Decoded(NamedTuple):
    """The columns of one batch of values.

    Parameters
    ----------
    columns:
        One array for each field of the wanted schema, in its order, of exactly its type, as long as the
        input.
    malformed:
        Booleans without nulls: the rows that could not be decoded, as a whole or in part. ``None``: none.
    reasons:
        Row → one sentence, for the first malformed row at least.
    absent:
        Booleans without nulls: the rows in which there is no value, neither a good nor a malformed one.
        ``None``: those that are null.
    """

    columns: list[ArrowArray]
    malformed: pa.BooleanArray | None = None
    reasons: Mapping[int, str] = NO_REASONS
    absent: pa.BooleanArray | None = None


class Decoder(Protocol):
    """Decodes the values of one column. One thread at a time; may keep what it has learnt between calls."""

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """Decode each value.

        A null gives null in every column and is not malformed: it is the deletion of a key (a tombstone). A
        value that is wrong in part keeps its good fields, and is malformed. Columns that would exceed
        :data:`BATCH_BYTES`, or one the 2 GiB of 32-bit offsets, raise :class:`ColumnTooLargeError`: decode
        fewer values at once.
        """


class ColumnTooLargeError(KafkaError):
    """What was decoded does not fit one batch of Arrow arrays; fewer values at once will."""


def booleans_of(bits: bytes, count: int) -> pa.BooleanArray:
    """Return ``count`` booleans without nulls, from a bitmap."""
    import pyarrow as pa

    made: ArrowArray = pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(bits)])
    return cast("pa.BooleanArray", made)


def nulls(count: int, kind: pa.DataType) -> ArrowArray:
    """Return ``count`` nulls of a type that only the caller knows."""
    import pyarrow as pa

    made: ArrowArray = pa.nulls(count, cast(Any, kind))
    return made


def one_too_large(schema: pa.Schema, error: ColumnTooLargeError) -> Decoded:
    """The columns of one value that never fits: it is malformed."""
    import pyarrow as pa

    malformed = pa.array([True])
    return Decoded([pa.nulls(1, field.type) for field in schema], malformed, {0: str(error)})


def quoted(text: object, characters: int = QUOTED_CHARACTERS) -> str:
    """``text`` as a reason may show it: its beginning."""
    whole = str(text)
    return whole if len(whole) <= characters else f"{whole[:characters]}…"
