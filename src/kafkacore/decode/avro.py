"""Decode values in Avro's binary encoding to typed Arrow columns.

A bare value is read with the schema given in the options. A value framed by Confluent's serializers starts
with the id of its schema, which is looked up in a schema registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from kafkacore.decode._avro_reader import AvroReader
from kafkacore.decode.avro_program import compile_program, fields_of
from kafkacore.decode.avro_schema import AvroSchemaError, AvroType, parse_schema
from kafkacore.decode.decoder import (
    BATCH_BYTES,
    ColumnTooLargeError,
    Decoded,
    Decoder,
    booleans_of,
    one_too_large,
    quoted,
)
from kafkacore.decode.registry import RegistryOptions, SchemaRegistry, registry_options, shared_registry
from kafkacore.errors import KafkaConfigurationError

#: Fault number, as in ``_avro.pxd`` and ``_avro_reader.pyx`` → description of the fault.
FAULTS = {
    1: "the data is truncated",
    2: "a length is negative",
    3: "a number has too many bytes or exceeds the range of its column",
    4: "a union has no branch with the encoded number",
    5: "an enum has no symbol with the encoded number",
    6: "a string is not UTF-8",
    7: "a boolean is neither 0 nor 1",
    8: "values are nested too deeply",
    9: "an array has too many items of zero bytes",
    10: "a decimal has more digits than the precision of its column",
    11: "a time is out of range",
    100: "the data does not start with a zero byte and a schema id, which schema.registry.url requires",
}
UNKNOWN_SCHEMA = 101


@dataclass(frozen=True)
class AvroOptions:
    """Options of the Avro decoder. They can be pickled.

    Parameters
    ----------
    schema:
        For bare values, the writer's schema in JSON. For framed values, the reader's schema, which supplies
        aliases and defaults.
    registry:
        Schema registry that resolves schema ids. ``None`` means that values are bare.
    side:
        ``key`` or ``value``. It is used in messages.
    """

    schema: str | None = None
    registry: RegistryOptions | None = None
    side: Literal["key", "value"] = "value"


def avro_options(given: Mapping[str, str], side: Literal["key", "value"] = "value") -> AvroOptions:
    """Return the Avro options in ``given``.

    Parameters
    ----------
    given:
        Options by lower-case name. Other options are ignored.
    side:
        ``key`` or ``value``. It is used in messages.

    Raises
    ------
    KafkaConfigurationError
        Neither a schema nor a registry is given, or an option is malformed.
    """
    registry = registry_options(given)
    schema = given.get("schema")
    if registry is None and schema is None:
        raise KafkaConfigurationError(
            f"{side}.format=avro needs a schema: set {side}.schema to the Avro schema in JSON, or set "
            f"schema.registry.url if each {side} starts with a schema id"
        )
    return AvroOptions(schema, registry, side)


def given_schema(options: AvroOptions) -> AvroType | None:
    """Parse the schema in the options. Return ``None`` if the options have no schema.

    Raises
    ------
    KafkaConfigurationError
        The text is not a valid Avro schema.
    """
    if options.schema is None:
        return None
    try:
        return parse_schema(options.schema)
    except AvroSchemaError as error:
        raise KafkaConfigurationError(f"{options.side}.schema: {error}") from error


def avro_decoder(schema: pa.Schema, options: AvroOptions, batch_bytes: int = BATCH_BYTES) -> Decoder:
    """Return a decoder that reads the fields of ``schema`` from Avro values.

    Parameters
    ----------
    schema:
        The columns to read, matched to Avro fields by name. All columns must be nullable.
    options:
        Source of the writer's schema. The decoder contacts the registry only when it decodes a value with a
        schema id.
    batch_bytes:
        Maximum memory in bytes of the columns of one call.

    Raises
    ------
    KafkaConfigurationError
        A column cannot be read from the given Avro schema.
    """
    return _AvroDecoder(schema, options, batch_bytes)


class _AvroDecoder:
    def __init__(self, schema: pa.Schema, options: AvroOptions, batch_bytes: int) -> None:
        self._schema = schema
        self._given = given_schema(options)
        self._registry: SchemaRegistry | None = None
        self._not_read: dict[int, str] = {}
        self._fields: dict[int, list[str]] = {}
        try:
            self._reader = AvroReader(schema, options.registry is not None, batch_bytes)
        except TypeError as error:
            raise KafkaConfigurationError(f"a column cannot be read from Avro: {error}") from error
        if options.registry is not None:
            self._registry = shared_registry(options.registry)
            if self._given is not None:
                compile_program(self._given, schema, strict=True)
            return
        assert self._given is not None, "checked by avro_options"
        self._add_program(0, self._given, strict=True)

    def _add_program(self, schema_id: int, writer: AvroType, strict: bool = False) -> None:
        reader = None if strict else self._given
        self._reader.add_program(schema_id, compile_program(writer, self._schema, reader, strict))
        self._fields[schema_id] = [field.name for field in fields_of(writer).fields]

    def _resolve(self, schema_id: int) -> None:
        """Look up the schema for an id that the reader found, and add its program to the reader."""
        assert self._registry is not None, "only framed values have a schema id"
        writer, reason = self._registry.schema(schema_id)
        if writer is not None:
            try:
                self._add_program(schema_id, writer)
            except KafkaConfigurationError as error:
                reason = f"schema {schema_id}: {error}"
            else:
                return
        self._not_read[schema_id] = reason
        self._reader.add_program(schema_id, None)

    def decode(self, values: pa.BinaryArray) -> Decoded:
        count = len(values)
        if count == 0:
            return Decoded([pa.nulls(0, field.type) for field in self._schema])
        validity, offsets, data = values.buffers()
        reader = self._reader
        try:
            columns, bad = reader.read(validity, offsets, data, values.offset, count, self._resolve)
        except ColumnTooLargeError as error:
            if count > 1:
                raise
            # This one value exceeds the maximum size of a column, so another attempt cannot succeed. Return
            # the value as malformed, because an exception would stop the query at this value each time.
            return one_too_large(self._schema, error)
        if bad is None:
            return Decoded(columns)
        malformed = booleans_of(bad, count)
        return Decoded(columns, malformed, {reader.first_bad: self._reason()})

    def _reason(self) -> str:
        reader = self._reader
        if reader.fault == UNKNOWN_SCHEMA:
            return self._not_read[reader.fault_schema]
        reason = FAULTS[reader.fault]
        fields = self._fields.get(reader.fault_schema, [])
        if 0 <= reader.fault_field < len(fields):
            return f"field {quoted(fields[reader.fault_field])}: {reason}"
        return reason
