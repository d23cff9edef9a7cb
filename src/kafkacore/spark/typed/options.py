"""What the options say of keys and values: texts in, one checked picklable object out.

Names are in lower case here, as Spark compares them. ``value.x`` and ``key.x`` win over ``x``. Does not
know: Spark's schema, what a decoder does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from kafkacore.decode.json_option_names import JSON_OPTION_NAMES
from kafkacore.errors import KafkaConfigurationError
from kafkacore.settings import SettingType, table
from kafkacore.spark.options.option import spark_option
from kafkacore.spark.options.values import boolean, known_options
from kafkacore.spark.secrets import resolved

Side = Literal["key", "value"]
Mode = Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"]

BINARY = "binary"
#: Formats of one value each, and its type in Spark.
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
#: Formats of values that have fields.
STRUCTURED = ("json", "avro")
FORMATS = (BINARY, *SCALAR_TYPES, *STRUCTURED)
MODES: tuple[Mode, ...] = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
CORRUPT_RECORD = "_corrupt_record"
#: What people write for a format that we cannot decode, and what to do instead.
NOT_SUPPORTED = {
    "protobuf": "read the value as binary and use from_protobuf of pyspark.sql.protobuf.functions on it",
    "csv": "read the value as string and use from_csv on it",
    "xml": "read the value as string and use from_xml on it",
}
_B, _S = SettingType.BOOLEAN, SettingType.STRING
# fmt: off
#: Options that ``key.`` or ``value.`` may stand before; of a schema registry, and of JSON.
SIDE_OPTIONS: Final = table(
    spark_option("schema.registry.url", _S,
                 documentation="Avro: values are framed as Confluent's serializers do it, and name their "
                               "schema. Several addresses with commas."),
    spark_option("schema.registry.auth", SettingType.PASSWORD,
                 documentation="`user:password`; better a reference, `${env:REGISTRY_AUTH}`."),
    spark_option("schema.registry.ssl.cafile", _S,
                 documentation="PEM file of the certificates to trust, on each machine."),
    spark_option("timeZone", _S, "UTC",
                 documentation="JSON: time zone of times without one. `from_json` takes the session's, "
                               "which a Python source cannot see."),
    *(spark_option(name, _S,
                   documentation=f"JSON: the pattern of a {kind}; the forms that Spark takes if not given.")
      for name, kind in (("dateFormat", "DATE"), ("timestampFormat", "TIMESTAMP"),
                         ("timestampNTZFormat", "TIMESTAMP_NTZ"))),
    spark_option("allowNonNumericNumbers", _B, True,
                 documentation="JSON: as in Spark's JSON reader."),
    spark_option("allowSingleQuotes", _B, True,
                 documentation="JSON: as in Spark's JSON reader."),
    spark_option("enableDateTimeParsingFallback", _B, shown_default="`true` without a pattern",
                 documentation="JSON: as in Spark's JSON reader."),
)
#: Options of keys and values, which every source that gives records takes.
FORMAT_OPTIONS: Final = table(
    *(spark_option(f"{side}.format", _S, BINARY, choices=FORMATS,
                   documentation=f"Format of the {side}; the next table has them.")
      for side in ("value", "key")),
    spark_option("mode", _S, MODES[0], choices=MODES,
                 documentation="Treatment of a record whose key or value cannot be decoded. `PERMISSIVE` "
                               "makes null the part that is wrong, `DROPMALFORMED` leaves the record out, "
                               "`FAILFAST` ends the query with an error that has topic, partition, offset "
                               "and reason."),
    spark_option("columnNameOfCorruptRecord", _S, CORRUPT_RECORD,
                 documentation="The column of the raw value of a malformed record (or its raw key, if the "
                               "value is sound), if the schema names it: STRING, or BINARY for the exact "
                               "bytes. Only with PERMISSIVE."),
    spark_option("value.flatten", _B, True,
                 documentation="`false`: columns have Kafka's own names, and `value` is a STRUCT."),
    spark_option("includeHeaders", _B, False,
                 documentation="Whether there is a column `headers`."),
    *(spark_option(f"{side}.schema", _S,
                   documentation=f"Avro: the schema of the {side} in JSON. JSON: its fields in DDL, for "
                                 "reads without `.schema(...)`.")
      for side in ("value", "key")),
    *(spark_option(f"{side}.subject", _S, shown_default=f"`<topic>-{side}`",
                   documentation="Avro: the subject whose latest schema gives the columns of a read "
                                 "without `.schema(...)`; of several topics the first.")
      for side in ("value", "key")),
    *SIDE_OPTIONS.values(),
)
# fmt: on
#: Spark's other options of JSON are known, and have one value each.
SIDE_OPTION_NAMES: Final = tuple(dict.fromkeys((*SIDE_OPTIONS, *JSON_OPTION_NAMES)))
FORMAT_OPTION_NAMES: Final = (
    *FORMAT_OPTIONS,
    *(name for name in JSON_OPTION_NAMES if name not in FORMAT_OPTIONS),
    *(f"{side}.{name}" for side in ("key", "value") for name in SIDE_OPTION_NAMES),
)


@dataclass(frozen=True)
class SideOptions:
    """What the key or the value of a record is.

    Parameters
    ----------
    side:
        Which of the two.
    format:
        One of :data:`FORMATS`.
    given:
        Every option that a format may look at, names in lower case and without ``value.`` or ``key.``. May
        hold secrets: it is never shown.
    """

    side: Side
    format: str
    given: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def schema_text(self) -> str | None:
        """``value.schema``: the format's own schema, as text."""
        return self.given.get("schema")

    def resolved(self) -> dict[str, str]:
        """:attr:`given` with the references of secrets resolved: only where a registry is asked.

        Raises
        ------
        KafkaConfigurationError
            A reference names what is not here.
        """
        of_registry = "schema.registry."
        return {n: resolved(t, n) if n.startswith(of_registry) else t for n, t in self.given.items()}


@dataclass(frozen=True)
class FormatOptions:
    """Both sides, and what becomes of records that cannot be decoded."""

    key: SideOptions
    value: SideOptions
    mode: Mode = "PERMISSIVE"
    corrupt_record: str = CORRUPT_RECORD
    flatten: bool = True
    include_headers: bool = False

    @property
    def flat(self) -> bool:
        """The value's fields are the columns, and Kafka's own have a leading underscore."""
        return self.flatten and self.value.format in STRUCTURED

    @property
    def plain(self) -> bool:
        """Nothing is decoded."""
        return self.key.format == self.value.format == BINARY


def parse_format_options(options: Mapping[str, str]) -> FormatOptions:
    """Check the options of keys and values; names in any case.

    Raises
    ------
    KafkaConfigurationError
        A format or a mode that there is not.
    """
    given = {name.lower(): str(text) for name, text in options.items()}
    mode = given.get("mode", MODES[0]).upper()
    if mode not in MODES:
        raise KafkaConfigurationError(f"mode must be one of {', '.join(MODES)}, not {given['mode']!r}")
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
            f"value.flatten is for values that have fields ({', '.join(STRUCTURED)}), and value.format is "
            f"{parsed.value.format}: remove it"
        )
    return parsed


def _side(side: Side, given: Mapping[str, str]) -> SideOptions:
    option = f"{side}.format"
    chosen = given.get(option, BINARY).strip().lower()
    if chosen in NOT_SUPPORTED:
        raise KafkaConfigurationError(f"{option} {chosen} is not supported: {NOT_SUPPORTED[chosen]}")
    if chosen not in FORMATS:
        raise KafkaConfigurationError(f"{option} must be one of {', '.join(FORMATS)}, not {given[option]!r}")
    other = "key." if side == "value" else "value."
    shared = {n: t for n, t in given.items() if not n.startswith(("kafka.", "key.", "value."))}
    own = {n.removeprefix(f"{side}."): t for n, t in given.items() if n.startswith(f"{side}.")}
    assert not any(name.startswith(other) for name in shared)
    # A schema belongs to one side only.
    shared.pop("schema", None)
    return SideOptions(side, chosen, {**shared, **own})
