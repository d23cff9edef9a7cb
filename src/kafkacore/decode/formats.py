"""Names of the formats and modes, and the decoder of each format. Importable without pyarrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from kafkacore.errors import KafkaConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.decode.decoder import Decoder

Side = Literal["key", "value"]
Mode = Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"]

BINARY = "binary"
#: Formats of a single value.
SCALARS = ("string", "long", "integer", "short", "double", "float", "boolean", "uuid")
#: Formats of values with fields.
STRUCTURED = ("json", "avro")
FORMATS = (BINARY, *SCALARS, *STRUCTURED)
MODES: tuple[Mode, ...] = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
#: Default name of the column for the bytes that cannot be decoded.
CORRUPT_RECORD = "_corrupt_record"
#: Options of the schema registry, which Avro values may need.
REGISTRY_OPTION_NAMES = (
    "schema.registry.url",
    "schema.registry.auth",
    "schema.registry.ssl.cafile",
    "schema.registry.proxy.url",
)


def chosen_mode(text: str) -> Mode:
    """Return the mode with this name, in upper or lower case.

    Raises
    ------
    KafkaConfigurationError
        The mode does not exist.
    """
    mode = text.upper()
    if mode not in MODES:
        raise KafkaConfigurationError(f"mode must be one of {', '.join(MODES)}, not {text!r}")
    return mode


def chosen_format(option: str, text: str) -> str:
    """Return the format with this name, in upper or lower case.

    Parameters
    ----------
    option:
        Name of the option, for messages.
    text:
        Name of the format.

    Raises
    ------
    KafkaConfigurationError
        The format does not exist or is not supported.
    """
    chosen = text.strip().lower()
    if chosen not in FORMATS:
        raise KafkaConfigurationError(f"{option} must be one of {', '.join(FORMATS)}, not {text!r}")
    return chosen


def options_of_side(side: Side, given: Mapping[str, str]) -> dict[str, str]:
    """Return the options that apply to the key or to the value, without the prefix ``key.`` or ``value.``.

    ``value.x`` and ``key.x`` take precedence over ``x``. The option ``schema`` without a prefix is ignored,
    because a schema applies to either the key or the value.

    Parameters
    ----------
    side:
        ``key`` or ``value``.
    given:
        Options by lower-case name.
    """
    shared = {n: t for n, t in given.items() if not n.startswith(("kafka.", "key.", "value."))}
    shared.pop("schema", None)
    own = {n.removeprefix(f"{side}."): t for n, t in given.items() if n.startswith(f"{side}.")}
    return {**shared, **own}


def new_decoder(format: str, fields: pa.Schema, options: Mapping[str, str], side: Side) -> Decoder:  # noqa: A002 - Spark's word
    """Return a decoder of one of :data:`FORMATS`, except ``binary``.

    Parameters
    ----------
    format:
        The format.
    fields:
        Fields to read from JSON or Avro. Scalar formats ignore it.
    options:
        Result of :func:`options_of_side`.
    side:
        ``key`` or ``value``. It is used in messages.

    Raises
    ------
    KafkaConfigurationError
        A field has a type that the format does not support, or an option is invalid.
    """
    if format == "json":
        from kafkacore.decode.json import json_decoder, json_options

        return json_decoder(fields, json_options(options))
    if format == "avro":
        from kafkacore.decode.avro import avro_decoder, avro_options

        return avro_decoder(fields, avro_options(options, side))
    from kafkacore.decode.scalars import scalar_decoder

    return scalar_decoder(format)
