"""The format of a key or a value, from the arguments of a read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafkacore.decode.formats import (
    REGISTRY_OPTION_NAMES,
    STRUCTURED,
    Side,
    chosen_format,
    options_of_side,
)
from kafkacore.decode.json_option_names import JSON_OPTION_NAMES
from kafkacore.errors import KafkaConfigurationError
from kafkacore.text import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

#: Options that apply to the key or to the value and therefore need a prefix.
_OF_ONE_SIDE = ("schema", "subject")
_OF_BOTH_SIDES = (*REGISTRY_OPTION_NAMES, *JSON_OPTION_NAMES)
#: Names in ``format_options``.
FORMAT_OPTION_NAMES = (
    *_OF_BOTH_SIDES,
    *(f"{side}.{name}" for side in ("key", "value") for name in (*_OF_BOTH_SIDES, *_OF_ONE_SIDE)),
)


@dataclass(frozen=True)
class SideFormat:
    """Format of the key or of the value.

    Parameters
    ----------
    side:
        ``key`` or ``value``.
    format:
        One of :data:`kafkacore.decode.formats.FORMATS`.
    fields:
        Fields of a structured format. Empty for other formats.
    options:
        Options of the format, by lower-case name without prefix. They may contain a password.
    """

    side: Side
    format: str
    fields: pa.Schema
    options: Mapping[str, str] = field(repr=False)

    @property
    def structured(self) -> bool:
        return self.format in STRUCTURED

    @property
    def type(self) -> pa.DataType:
        """Type of a column of the whole key or value."""
        import pyarrow as pa

        if self.structured:
            return pa.struct(list(self.fields))
        if self.format == "binary":
            return pa.binary()
        from kafkacore.decode.scalars import scalar_type

        return scalar_type(self.format)


def checked_options(given: Mapping[str, object]) -> dict[str, str]:
    """Return ``format_options`` as text by lower-case name.

    Raises
    ------
    KafkaConfigurationError
        An option does not exist.
    """
    known = {name.lower(): name for name in FORMAT_OPTION_NAMES}
    for name in given:
        if name.lower() not in known:
            hint = did_you_mean(name, FORMAT_OPTION_NAMES, "its names are those of Spark's format options")
            raise KafkaConfigurationError(f"format_options has the unknown option {name!r}: {hint}")
    return {name.lower(): str(value) for name, value in given.items()}


def side_format(
    side: Side, chosen: str, schema: pa.Schema | str | None, options: Mapping[str, str]
) -> SideFormat:
    """Check the arguments for the key or the value, and find out its fields.

    Parameters
    ----------
    side:
        ``key`` or ``value``.
    chosen:
        Name of the format.
    schema:
        Fields of JSON or Avro, or the text of an Avro schema.
    options:
        Result of :func:`checked_options`.

    Raises
    ------
    KafkaConfigurationError
        The format does not exist, or the schema does not fit it.
    SchemaRegistryError
        The schema registry did not respond.
    """
    import pyarrow as pa

    kind = chosen_format(f"{side}_format", chosen)
    argument = "schema" if side == "value" else "key_schema"
    of_side = options_of_side(side, options)
    if schema is not None and kind not in STRUCTURED:
        raise KafkaConfigurationError(
            f"{argument} applies only to the formats {' and '.join(STRUCTURED)}, but {side}_format is "
            f"{kind}: remove {argument}"
        )
    if kind == "avro" and isinstance(schema, str):
        of_side["schema"] = schema
    if kind not in STRUCTURED:
        fields = pa.schema([])
    elif isinstance(schema, pa.Schema):
        fields = schema
    elif kind == "avro":
        fields = _avro_fields(side, argument, of_side)
    else:
        raise KafkaConfigurationError(
            f"{side}_format {kind} needs the fields: {argument}=pyarrow.schema({{'id': pyarrow.int64()}})"
        )
    _refuse_not_null(pa.struct(list(fields)), argument)
    return SideFormat(side, kind, fields, of_side)


def _avro_fields(side: Side, argument: str, options: Mapping[str, str]) -> pa.Schema:
    """Return the fields of the Avro schema in the options, or else of the latest schema of the subject."""
    from kafkacore.decode.avro import avro_options, given_schema
    from kafkacore.decode.avro_columns import columns_of
    from kafkacore.decode.registry import SchemaRegistry

    if "schema" not in options and "schema.registry.url" not in options:
        raise KafkaConfigurationError(
            f"{side}_format avro needs a schema: set {argument} to the Avro schema in JSON, or, if each "
            f"{side} starts with a schema id, set format_options={{'schema.registry.url': '...'}}"
        )
    parsed = avro_options(options, side)
    schema = given_schema(parsed)
    if schema is None:
        if "subject" not in options:
            raise KafkaConfigurationError(
                f"{side}_format avro needs the fields: set {argument}, or set {side}.subject in "
                f"format_options to the subject of the schema in the schema registry"
            )
        assert parsed.registry is not None, "avro_options requires a schema or a registry"
        schema = SchemaRegistry(parsed.registry).latest(options["subject"])
    return columns_of(schema)


def _refuse_not_null(kind: Any, argument: str) -> None:
    """Refuse fields that are not nullable, because a record may lack any field."""
    import pyarrow as pa

    # Keys of maps are never null.
    is_map = pa.types.is_map(kind)
    for part in [kind.item_field] if is_map else [kind.field(at) for at in range(kind.num_fields)]:
        if not part.nullable:
            raise KafkaConfigurationError(
                f"field {part.name} of {argument} cannot be NOT NULL, because a record may lack it: make it "
                "nullable"
            )
        _refuse_not_null(part.type, argument)
