"""Build the batches of a task whose keys or values are decoded, and treat malformed records by ``mode``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from kafkacore.decode.decoder import ColumnTooLargeError, Decoded, nulls, quoted
from kafkacore.errors import KafkaError
from kafkacore.spark.columns.output import KafkaColumns, Output
from kafkacore.spark.columns.schema import Column
from kafkacore.spark.typed.layout import Layout
from kafkacore.structs import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.decode.decoder import ArrowArray, Decoder


#: Maximum characters of the reason in an error. The part of a value that a decoder quotes is shorter.
REASON_CHARACTERS = 250


class MalformedRecordError(KafkaError):
    """A record cannot be decoded, and ``mode`` is FAILFAST (Spark's ``MALFORMED_RECORD_IN_PARSING``)."""


@dataclass(frozen=True)
class TypedColumns:
    """Plan of a read that decodes keys or values."""

    layout: Layout

    @property
    def kafka_columns(self) -> Mapping[str, Column]:
        named = zip(self.layout.schema.names, self.layout.origins, strict=True)
        return {name: origin.column for name, origin in named if origin.kind == "kafka"}

    def output(self) -> Output:
        return _TypedOutput(self.layout)


class _TypedOutput:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.schema: pa.Schema = layout.schema
        self._decoders: dict[str, Decoder] = {plan.options.side: plan.decoder() for plan in layout.plans}
        self._structs = {plan.options.side for plan in layout.plans if plan.structured}
        own = tuple(dict.fromkeys(o.column for o in layout.origins if o.kind == "kafka"))
        self._kafka = KafkaColumns(own).output() if own else None
        self._kafka_at = {column: at for at, column in enumerate(own)}
        # With FAILFAST, read the offset for the message of the error.
        named = ("offset",) if layout.mode == "FAILFAST" else ()
        kafka = self._kafka.fetched if self._kafka is not None else ()
        self.fetched: tuple[str, ...] = tuple(dict.fromkeys((*kafka, *self._decoders, *named))) or ("offset",)

    def batch(self, found: pa.RecordBatch, topic: str | None, partition: int | None) -> pa.RecordBatch:
        import pyarrow as pa

        raw: dict[str, pa.BinaryArray] = {
            side: cast("pa.BinaryArray", found.column(side)) for side in self._decoders
        }
        decoded = {side: decoder.decode(raw[side]) for side, decoder in self._decoders.items()}
        malformed = _either(decoded)
        if malformed is not None and self._layout.mode == "FAILFAST":
            raise _malformed_error(found, decoded, topic, partition)
        columns: list[ArrowArray] = []
        if self._kafka is not None:
            kafka = self._kafka.batch(found.select(list(self._kafka.fetched)), topic, partition)
        for field, origin in zip(self.schema, self._layout.origins, strict=True):
            if origin.kind == "kafka":
                columns.append(kafka.column(self._kafka_at[origin.column]))
            elif origin.kind == "field":
                columns.append(decoded[origin.column].columns[origin.at])
            elif origin.kind == "corrupt":
                columns.append(_corrupt(found, decoded, field.type))
            elif origin.column in self._structs:
                columns.append(_struct(field.type, decoded[origin.column], found.column(origin.column)))
            else:
                columns.append(decoded[origin.column].columns[0])
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        if malformed is not None and self._layout.mode == "DROPMALFORMED":
            from pyarrow import compute

            return batch.filter(compute.invert(malformed))
        return batch


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
