"""Values in Avro's binary encoding in, typed Arrow columns out.

A value is bare, and its schema the one that is given; or it is framed as Confluent's serializers do it, and
names its schema by an id that a registry resolves. Does not know: Spark, modes.
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

#: What is wrong, by the numbers of ``_avro.pxd`` and ``_avro_reader.pyx``.
FAULTS = {
    1: "the value ends early",
    2: "a length is negative",
    3: "a number is too long",
    4: "a union has no such branch",
    5: "an enum has no such symbol",
    6: "a string is not UTF-8",
    7: "a boolean is neither 0 nor 1",
    8: "values lie too deep in each other",
    9: "an array has too many items of no bytes",
    10: "a decimal has more digits than its column",
    11: "a time is out of range",
    100: "the value has no frame (a zero byte and the schema's id), as schema.registry.url asks for",
}
UNKNOWN_SCHEMA = 101


@dataclass(frozen=True)
class AvroOptions:
    """How values in Avro are read. Picklable.

    Parameters
    ----------
    schema:
        Of bare values the schema that wrote them; of framed ones the reader's, for aliases and defaults.
    registry:
        Where ids of schemas are resolved; ``None``: values are bare.
    side:
        ``key`` or ``value``, for messages.
    """

    schema: str | None = None
    registry: RegistryOptions | None = None
    side: Literal["key", "value"] = "value"


def avro_options(given: Mapping[str, str], side: Literal["key", "value"] = "value") -> AvroOptions:
    """The options in ``given``, whose names are in lower case; others are left alone.

    Raises
    ------
    KafkaConfigurationError
        Neither a schema nor a registry is given, or an option is malformed.
    """
    registry = registry_options(given)
    schema = given.get("schema")
    if registry is None and schema is None:
        raise KafkaConfigurationError(
            f"{side}.format avro needs the schema of the values: option {side}.schema with its JSON, or "
            f"schema.registry.url where each value names its schema"
        )
    return AvroOptions(schema, registry, side)


def given_schema(options: AvroOptions) -> AvroType | None:
    """The schema of the option, parsed.

    Raises
    ------
    KafkaConfigurationError
        It is none.
    """
    if options.schema is None:
        return None
    try:
        return parse_schema(options.schema)
    except AvroSchemaError as error:
        raise KafkaConfigurationError(f"{options.side}.schema: {error}") from error


def avro_decoder(schema: pa.Schema, options: AvroOptions, batch_bytes: int = BATCH_BYTES) -> Decoder:
    """A decoder to the fields of ``schema``.

    Parameters
    ----------
    schema:
        The fields that are wanted, by name; every one nullable.
    options:
        Where the values' own schema comes from. No registry is asked before a value names a schema.
    batch_bytes:
        Most memory of the columns of one call.

    Raises
    ------
    KafkaConfigurationError
        A field that cannot be read from what the given schema has.
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
            raise KafkaConfigurationError(f"Avro has nothing for a column: {error}") from error
        if options.registry is not None:
            self._registry = shared_registry(options.registry)
            if self._given is not None:
                compile_program(self._given, schema, strict=True)
            return
        assert self._given is not None, "checked by avro_options"
        self._learn(0, self._given, strict=True)

    def _learn(self, schema_id: int, writer: AvroType, strict: bool = False) -> None:
        reader = None if strict else self._given
        self._reader.learn(schema_id, compile_program(writer, self._schema, reader, strict))
        self._fields[schema_id] = [field.name for field in fields_of(writer).fields]

    def _ask(self, schema_id: int) -> None:
        """Rows name a schema that is new here."""
        assert self._registry is not None, "only framed rows name a schema"
        writer, reason = self._registry.schema(schema_id)
        if writer is not None:
            try:
                self._learn(schema_id, writer)
            except KafkaConfigurationError as error:
                reason = f"schema {schema_id}: {error}"
            else:
                return
        self._not_read[schema_id] = reason
        self._reader.learn(schema_id, None)

    def decode(self, values: pa.BinaryArray) -> Decoded:
        count = len(values)
        if count == 0:
            return Decoded([pa.nulls(0, field.type) for field in self._schema])
        validity, offsets, data = values.buffers()
        reader = self._reader
        try:
            columns, bad = reader.read(validity, offsets, data, values.offset, count, self._ask)
        except ColumnTooLargeError as error:
            if count > 1:
                raise
            # It will never fit, and would end the query each time.
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
