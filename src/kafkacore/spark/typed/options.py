"""The options for the formats of keys and values.

Names are compared in lower case, as in Spark. ``value.x`` and ``key.x`` take precedence over ``x``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafkacore.decode.formats import (
    BINARY,
    CORRUPT_RECORD,
    FORMATS,
    MODES,
    STRUCTURED,
    Mode,
    Side,
    chosen_format,
    chosen_mode,
    options_of_side,
)
from kafkacore.decode.json_option_names import JSON_OPTION_NAMES
from kafkacore.errors import KafkaConfigurationError
from kafkacore.settings import SettingType, table
from kafkacore.spark.options.option import spark_option
from kafkacore.spark.options.values import boolean, known_options
from kafkacore.spark.secrets import resolved

#: Type in Spark of each format of a single value.
SCALAR_TYPES = {
    "string": "string",
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "double": "double",
    "float": "float",
    "boolean": "boolean",
    "uuid": "string",
}
#: Formats that users may expect but that are not supported, each with the alternative.
NOT_SUPPORTED = {
    "protobuf": "read the value as binary and use from_protobuf of pyspark.sql.protobuf.functions on it",
    "csv": "read the value as string and use from_csv on it",
    "xml": "read the value as string and use from_xml on it",
}
_B, _S = SettingType.BOOLEAN, SettingType.STRING
# fmt: off
#: Options of the schema registry and of JSON. Their names may have the prefix ``key.`` or ``value.``.
SIDE_OPTIONS: Final = table(
    spark_option("schema.registry.url", _S,
                 documentation="Avro: comma-separated URLs of the schema registry. If set, values must be "
                               "in the format of Confluent's serializers, which contains the schema's ID."),
    spark_option("schema.registry.auth", SettingType.PASSWORD,
                 documentation="Avro: user and password for the schema registry, `user:password`. A "
                               "reference such as `${env:REGISTRY_AUTH}` keeps them out of Spark's plans."),
    spark_option("schema.registry.ssl.cafile", _S,
                 documentation="Avro: PEM file with the certificates to trust for the schema registry. The "
                               "file must exist on the driver and on each worker."),
    spark_option("schema.registry.proxy.url", SettingType.PASSWORD, shown_default="`kafka.proxy.url`",
                 documentation="Avro: proxy through which to reach the schema registry, such as "
                               "`socks5h://proxy.example.com:1080`. An empty value means no proxy."),
    spark_option("timeZone", _S, "UTC",
                 documentation="JSON: time zone of timestamps that do not contain one. Unlike `from_json`, "
                               "a Python source cannot read the time zone of the session."),
    *(spark_option(name, _S,
                   documentation=f"JSON: pattern of {kind} values. If it is not set, Spark's default "
                                 "formats are accepted.")
      for name, kind in (("dateFormat", "DATE"), ("timestampFormat", "TIMESTAMP"),
                         ("timestampNTZFormat", "TIMESTAMP_NTZ"))),
    spark_option("allowNonNumericNumbers", _B, True,
                 documentation="JSON: whether `NaN` and infinities are accepted as numbers, as in Spark's "
                               "JSON reader."),
    spark_option("allowSingleQuotes", _B, True,
                 documentation="JSON: whether single quotes are accepted in place of double quotes, as in "
                               "Spark's JSON reader."),
    spark_option("enableDateTimeParsingFallback", _B, shown_default="`true` without a pattern",
                 documentation="JSON: whether dates and timestamps that do not match the pattern are parsed "
                               "like in Spark 2, as in Spark's JSON reader."),
)
#: Format options of keys and values, which all sources accept.
FORMAT_OPTIONS: Final = table(
    *(spark_option(f"{side}.format", _S, BINARY, choices=FORMATS,
                   documentation=f"Format of the {side}: {', '.join(f'`{name}`' for name in FORMATS)}.")
      for side in ("value", "key")),
    spark_option("mode", _S, MODES[0], choices=MODES,
                 documentation="Treatment of a record whose key or value cannot be decoded. `PERMISSIVE` "
                               "sets the malformed columns to null. `DROPMALFORMED` skips the record. "
                               "`FAILFAST` fails the query with an error that names the topic, partition, "
                               "offset and reason."),
    spark_option("columnNameOfCorruptRecord", _S, CORRUPT_RECORD,
                 documentation="Column for the raw value of a malformed record, or for its raw key if the "
                               "value is valid. The column is filled only with mode PERMISSIVE, and only "
                               "if the schema contains it: as STRING, or as BINARY for the exact bytes."),
    spark_option("value.flatten", _B, True,
                 documentation="Whether the fields of a JSON or Avro value are the columns. With `false`, "
                               "columns have Kafka's names, and `value` is a STRUCT."),
    spark_option("includeHeaders", _B, False,
                 documentation="Whether the default schema has the column `headers`."),
    *(spark_option(f"{side}.schema", _S,
                   documentation=f"Avro: the schema of the {side} in JSON. JSON: the fields of the {side} in "
                                 "DDL or in Spark's JSON, for reads without `.schema(...)`.")
      for side in ("value", "key")),
    *(spark_option(f"{side}.subject", _S, shown_default=f"`<topic>-{side}`",
                   documentation="Avro: subject in the schema registry. Its latest schema defines the "
                                 "columns of a read without `.schema(...)`. By default, the subject of the "
                                 "first topic is used.")
      for side in ("value", "key")),
    *SIDE_OPTIONS.values(),
)
# fmt: on
#: Spark's other JSON options are accepted too, but each only with the one value that is supported.
SIDE_OPTION_NAMES: Final = tuple(dict.fromkeys((*SIDE_OPTIONS, *JSON_OPTION_NAMES)))
FORMAT_OPTION_NAMES: Final = (
    *FORMAT_OPTIONS,
    *(name for name in JSON_OPTION_NAMES if name not in FORMAT_OPTIONS),
    *(f"{side}.{name}" for side in ("key", "value") for name in SIDE_OPTION_NAMES),
)


@dataclass(frozen=True)
class SideOptions:
    """Format of the key or of the value.

    Parameters
    ----------
    side:
        ``key`` or ``value``.
    format:
        One of :data:`FORMATS`.
    given:
        Options of the format, by lower-case name without ``value.`` or ``key.``. They may contain secrets,
        so they are not part of the representation.
    """

    side: Side
    format: str
    given: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def schema_text(self) -> str | None:
        """Text of the option ``value.schema`` or ``key.schema``."""
        return self.given.get("schema")

    def resolved(self) -> dict[str, str]:
        """Return :attr:`given` with references to secrets resolved in the options of the schema registry.

        Raises
        ------
        KafkaConfigurationError
            A referenced secret does not exist.
        """
        of_registry = "schema.registry."
        return {n: resolved(t, n) if n.startswith(of_registry) else t for n, t in self.given.items()}


@dataclass(frozen=True)
class FormatOptions:
    """Formats of key and value, and the treatment of records that cannot be decoded."""

    key: SideOptions
    value: SideOptions
    mode: Mode = "PERMISSIVE"
    corrupt_record: str = CORRUPT_RECORD
    flatten: bool = True
    include_headers: bool = False

    @property
    def flat(self) -> bool:
        """Whether the fields of the value are the columns, and Kafka's columns have a leading underscore."""
        return self.flatten and self.value.format in STRUCTURED

    @property
    def plain(self) -> bool:
        """Whether neither key nor value is decoded."""
        return self.key.format == self.value.format == BINARY


def parse_format_options(options: Mapping[str, str]) -> FormatOptions:
    """Check the options of keys and values. Names are not case-sensitive.

    Raises
    ------
    KafkaConfigurationError
        A format or a mode does not exist, or an option has an invalid value.
    """
    given = {name.lower(): str(text) for name, text in options.items()}
    mode = chosen_mode(given.get("mode", MODES[0]))
    flatten, include_headers = FORMAT_OPTIONS["value.flatten"], FORMAT_OPTIONS["includeHeaders"]
    known = known_options(given, (flatten.name, include_headers.name))
    parsed = FormatOptions(
        key=_side("key", given),
        value=_side("value", given),
        mode=mode,
        corrupt_record=given.get("columnnameofcorruptrecord", CORRUPT_RECORD),
        flatten=boolean(known, flatten),
        include_headers=boolean(known, include_headers),
    )
    if "value.flatten" in given and parsed.flatten and parsed.value.format not in STRUCTURED:
        raise KafkaConfigurationError(
            f"value.flatten applies only to values with fields ({', '.join(STRUCTURED)}), but value.format "
            f"is {parsed.value.format}: remove value.flatten"
        )
    return parsed


def _side(side: Side, given: Mapping[str, str]) -> SideOptions:
    option = f"{side}.format"
    named = given.get(option, BINARY)
    instead = NOT_SUPPORTED.get(named.strip().lower())
    if instead is not None:
        raise KafkaConfigurationError(f"{option} {named.strip().lower()} is not supported: {instead}")
    of_side = dict(given)
    for name in ("kafka.socks5.proxy", "kafka.proxy.url"):
        if name in given:
            of_side.setdefault("schema.registry.proxy.url", given[name])
    return SideOptions(side, chosen_format(option, named), options_of_side(side, of_side))
