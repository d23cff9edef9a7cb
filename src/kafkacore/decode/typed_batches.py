"""Build batches whose keys or values are decoded, and treat malformed records by ``mode``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from kafkacore.decode.decoder import ColumnTooLargeError, Decoded, nulls, quoted
from kafkacore.decode.formats import BINARY, STRUCTURED, Mode, Side
from kafkacore.decode.kafka_columns import COLUMN_OF, Column, KafkaColumnArrays
from kafkacore.errors import MalformedRecordError
from kafkacore.structs import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.decode.decoder import ArrowArray, ArrowField, Decoder


#: Maximum characters of the reason in an error. The part of a value that a decoder quotes is shorter.
REASON_CHARACTERS = 250


class Origin(NamedTuple):
    """Origin of a column.

    Parameters
    ----------
    kind:
        ``kafka``: a column of Kafka, unchanged. ``field``: one field of the decoded key or value. ``whole``:
        the whole decoded key or value. ``corrupt``: the bytes that could not be decoded.
    column:
        Kafka's column, or ``key`` or ``value``.
    at:
        Index of a field among the decoded fields.
    """

    kind: Literal["kafka", "field", "whole", "corrupt"]
    column: Column
    at: int = 0


def fields_to_decode(
    schema: pa.Schema, origins: Sequence[Origin], formats: Mapping[Side, str], mode: Mode
) -> dict[Side, pa.Schema]:
    """Return the fields to decode of the key and the value, without a side that needs no decoder.

    Parameters
    ----------
    schema, origins:
        The columns and their origins, as in :class:`TypedBatches`.
    formats:
        Formats of the key and the value.
    mode:
        Treatment of records that cannot be decoded.
    """
    import pyarrow as pa

    # To find out whether a record is malformed, key and value must be decoded even if no column needs them.
    finds_malformed = mode != "PERMISSIVE" or any(origin.kind == "corrupt" for origin in origins)
    found: dict[Side, pa.Schema] = {}
    for side, chosen in formats.items():
        if chosen == BINARY:
            continue
        wanted = finds_malformed
        fields: list[ArrowField] = []
        for field, origin in zip(schema, origins, strict=True):
            if origin.column != side or origin.kind not in ("field", "whole"):
                continue
            wanted = True
            if origin.kind == "field":
                fields.append(field)
            else:
                fields = list(field.type) if chosen in STRUCTURED else [field]
        if wanted:
            found[side] = pa.schema(fields)
    return found


class TypedBatches:
    """Builder of the batches of one read, for one thread at a time.

    Parameters
    ----------
    schema:
        Schema of every batch.
    origins:
        Origin of each column.
    decoders:
        Decoders of the key and the value, as far as these are decoded.
    structs:
        Which of the key and the value have fields.
    mode:
        Treatment of records that cannot be decoded.

    Attributes
    ----------
    fetched:
        Names of the columns of :mod:`kafkacore.record` that :meth:`batch` needs; never empty.
    """

    def __init__(
        self,
        schema: pa.Schema,
        origins: Sequence[Origin],
        decoders: Mapping[Side, Decoder],
        structs: Collection[Side],
        mode: Mode,
    ) -> None:
        self.schema = schema
        self._origins = tuple(origins)
        self._decoders = dict(decoders)
        self._structs = frozenset(structs)
        self._mode = mode
        self._kafka = KafkaColumnArrays()
        kafka = (COLUMN_OF[o.column] for o in origins if o.kind == "kafka" and o.column in COLUMN_OF)
        # With FAILFAST, read the offset for the message of the error.
        named = ("offset",) if mode == "FAILFAST" else ()
        self.fetched: tuple[str, ...] = tuple(dict.fromkeys((*kafka, *self._decoders, *named))) or ("offset",)

    def batch(self, found: pa.RecordBatch, topic: str | None, partition: int | None) -> pa.RecordBatch:
        """Return the batch for records of one partition.

        Parameters
        ----------
        found:
            Records in order of offsets, with the columns :attr:`fetched`.
        topic, partition:
            Topic and partition of the records; ``None`` if unknown.

        Raises
        ------
        MalformedRecordError
            A record cannot be decoded, and the mode is FAILFAST.
        ColumnTooLargeError
            A decoded column would be too large. Pass fewer records, as :func:`in_parts` does.
        """
        import pyarrow as pa

        raw: dict[str, pa.BinaryArray] = {
            side: cast("pa.BinaryArray", found.column(side)) for side in self._decoders
        }
        decoded: dict[str, Decoded] = {
            side: decoder.decode(raw[side]) for side, decoder in self._decoders.items()
        }
        malformed = _either(decoded)
        if malformed is not None and self._mode == "FAILFAST":
            raise _malformed_error(found, decoded, topic, partition)
        columns: list[ArrowArray] = []
        for field, origin in zip(self.schema, self._origins, strict=True):
            if origin.kind == "kafka":
                columns.append(self._kafka.array(origin.column, found, topic, partition))
            elif origin.kind == "field":
                columns.append(decoded[origin.column].columns[origin.at])
            elif origin.kind == "corrupt":
                columns.append(_corrupt(found, decoded, field.type))
            elif origin.column in self._structs:
                columns.append(_struct(field.type, decoded[origin.column], found.column(origin.column)))
            else:
                columns.append(decoded[origin.column].columns[0])
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        if malformed is not None and self._mode == "DROPMALFORMED":
            from pyarrow import compute

            return batch.filter(compute.invert(malformed))
        return batch


def in_parts(
    build: Callable[[pa.RecordBatch], pa.RecordBatch], found: pa.RecordBatch
) -> Iterator[pa.RecordBatch]:
    """Yield the batch for ``found``, or several smaller batches if a decoded column would be too large.

    Raises
    ------
    ColumnTooLargeError
        A single decoded record is too large for a column.
    """
    try:
        made = build(found)
    except ColumnTooLargeError:
        if found.num_rows <= 1:
            raise
        half = found.num_rows // 2
        yield from in_parts(build, found.slice(0, half))
        yield from in_parts(build, found.slice(half))
    else:
        yield made


def _either(decoded: dict[str, Decoded]) -> pa.BooleanArray | None:
    """Return a mask of the rows whose key or value is malformed; ``None`` if there are none."""
    found = [of.malformed for of in decoded.values() if of.malformed is not None and of.malformed.true_count]
    if len(found) < 2:
        return found[0] if found else None
    from pyarrow import compute

    return compute.or_(*found)


def _malformed_error(
    found: pa.RecordBatch, decoded: dict[str, Decoded], topic: str | None, partition: int | None
) -> MalformedRecordError:
    """Return the error for the first malformed record. The message does not contain the whole value."""
    first: tuple[int, str, str] | None = None
    for side, of_side in decoded.items():
        if of_side.malformed is None or of_side.malformed.true_count == 0:
            continue
        row = of_side.malformed.index(True).as_py()
        reason = of_side.reasons.get(row, "it cannot be decoded")
        if first is None or row < first[0]:
            first = row, side, reason
    assert first is not None, "the batch must contain a malformed record"
    row, side, reason = first
    offset = found.column("offset")[row].as_py()
    place = f"the {side} of {printable(topic)}-{partition}" if topic is not None else f"the {side}"
    return MalformedRecordError(
        f"MALFORMED_RECORD_IN_PARSING: {place} at offset {offset} is malformed: "
        f"{quoted(reason, REASON_CHARACTERS)}. Set mode to PERMISSIVE to read its columns as null, or to "
        f"DROPMALFORMED to skip the record"
    )


def _corrupt(found: pa.RecordBatch, decoded: dict[str, Decoded], wanted: pa.DataType) -> ArrowArray:
    """Return the bytes of malformed records: the value, or the key if the value is valid."""
    import pyarrow as pa

    count = found.num_rows
    bad: ArrowArray | None = None
    for side in ("value", "key"):
        malformed = decoded[side].malformed if side in decoded else None
        if malformed is not None and malformed.true_count > 0:
            from pyarrow import compute

            raw = compute.if_else(malformed, found.column(side), pa.scalar(None, pa.binary()))
            bad = raw if bad is None else compute.coalesce(bad, raw)
    if bad is None:
        return nulls(count, wanted)
    return bad if wanted.equals(pa.binary()) else _as_text(bad)


def _as_text(bad: ArrowArray) -> ArrowArray:
    import pyarrow as pa

    try:
        return bad.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [raw if raw is None else raw.decode("utf-8", "replace") for raw in bad.to_pylist()]
        made = pa.array(texts, pa.string())
        if isinstance(made, pa.ChunkedArray):
            raise ColumnTooLargeError("the text of the malformed records exceeds 2 GiB") from None
        return made


def _struct(kind: pa.StructType, decoded: Decoded, raw: ArrowArray) -> ArrowArray:
    """Return the struct column of a key or value.

    As with Spark's ``from_json``, the struct is null if the input is null, and all its fields are null if the
    input is malformed.
    """
    import pyarrow as pa

    mask = decoded.absent
    if mask is None and raw.null_count:
        mask = raw.is_null()
    return pa.StructArray.from_arrays(decoded.columns, fields=list(kind), mask=mask)
