"""Interface of the decoders, and functions that they share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

from kafkacore.errors import KafkaError

if TYPE_CHECKING:
    import pyarrow as pa

#: An Arrow array of any type.
ArrowArray: TypeAlias = "pa.Array[Any]"
#: An Arrow field of any type.
ArrowField: TypeAlias = "pa.Field[Any]"
#: Maximum number of characters of a malformed value to quote in a message. Values can be too long for a log.
QUOTED_CHARACTERS = 100
#: Default for the maximum memory of the columns of one call (1 GiB). If a batch exceeds this limit, the
#: caller must split the batch. A single value that exceeds the limit counts as malformed.
BATCH_BYTES = 1 << 30

NO_REASONS: Mapping[int, str] = MappingProxyType({})


class Decoded(NamedTuple):
    """Result of decoding a batch of values.

    Parameters
    ----------
    columns:
        One array for each field of the wanted schema, in the same order and of exactly the field's type. Each
        array has as many rows as the input.
    malformed:
        For each row, whether the value is malformed entirely or in part. The array has no nulls. ``None``
        means that no row is malformed.
    reasons:
        Row number → reason why the value is malformed. There is a reason at least for the first malformed
        row.
    absent:
        For each row, whether the value is missing, as opposed to valid or malformed. The array has no nulls.
        ``None`` means that only the null rows are absent.
    """

    columns: list[ArrowArray]
    malformed: pa.BooleanArray | None = None
    reasons: Mapping[int, str] = NO_REASONS
    absent: pa.BooleanArray | None = None


class Decoder(Protocol):
    """Decoder of the values of one column. A decoder may keep state between calls and is not thread-safe."""

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """Decode each value.

        A null value, which is a tombstone, becomes null in every column and does not count as malformed. A
        value that is malformed in part keeps its valid fields.

        Raises
        ------
        ColumnTooLargeError
            The columns would exceed the memory limit of the decoder, or one column would exceed 2 GiB, the
            limit of 32-bit offsets. Decode fewer values at once.
        """


class ColumnTooLargeError(KafkaError):
    """The decoded values do not fit one batch of Arrow arrays. Decode fewer values at once."""


def booleans_of(bits: bytes, count: int) -> pa.BooleanArray:
    """Return an array of ``count`` booleans without nulls from a bitmap."""
    import pyarrow as pa

    made: ArrowArray = pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(bits)])
    return cast("pa.BooleanArray", made)


def nulls(count: int, kind: pa.DataType) -> ArrowArray:
    """Return an array of ``count`` nulls of a type."""
    import pyarrow as pa

    made: ArrowArray = pa.nulls(count, cast(Any, kind))
    return made


def one_too_large(schema: pa.Schema, error: ColumnTooLargeError) -> Decoded:
    """Return the result for one value that is too large: it is malformed, and all columns are null."""
    import pyarrow as pa

    malformed = pa.array([True])
    return Decoded([pa.nulls(1, field.type) for field in schema], malformed, {0: str(error)})


def quoted(text: object, characters: int = QUOTED_CHARACTERS) -> str:
    """Return ``text`` shortened to at most ``characters`` characters, for use in a reason."""
    whole = str(text)
    return whole if len(whole) <= characters else f"{whole[:characters]}…"
