"""Derive the columns of Avro values from an option or the schema registry, for reads without a schema."""

from __future__ import annotations

from collections.abc import Mapping

from kafkacore.decode.avro import avro_options, given_schema
from kafkacore.decode.avro_ddl import ddl_of
from kafkacore.decode.registry import SchemaRegistry
from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.options.values import json_of, listed
from kafkacore.spark.typed.options import SideOptions


def avro_ddl(side: SideOptions, options: Mapping[str, str]) -> str:
    """Return the fields of the key or the value in Spark's DDL.

    The fields are those of the schema option. Without the option, the latest schema of the subject in the
    registry defines the fields.

    Raises
    ------
    KafkaConfigurationError
        The schema is invalid or cannot be converted to columns.
    SchemaRegistryError
        The registry did not respond or has no such schema.
    """
    side_options = avro_options(side.resolved(), side.side)
    schema = given_schema(side_options)
    if schema is None:
        assert side_options.registry is not None, "avro_options requires a schema or a registry"
        schema = SchemaRegistry(side_options.registry).latest(subject_of(side, options))
    return ddl_of(schema)


def subject_of(side: SideOptions, options: Mapping[str, str]) -> str:
    """Return the subject of the schema in the registry.

    An option sets the subject. The default is ``<topic>-value`` (TopicNameStrategy) with the first topic.

    Raises
    ------
    KafkaConfigurationError
        The options do not name a topic.
    """
    if "subject" in side.given:
        return side.given["subject"]
    given = {name.lower(): text for name, text in options.items()}
    topics = [*listed(given.get("subscribe", ""))]
    if "assign" in given:
        topics += list(json_of(given["assign"], "assign", '{"topicA":[0,1]}'))
    if not topics:
        raise KafkaConfigurationError(
            f"the options do not name a topic: set {side.side}.subject to the subject of the schema in the "
            f"schema registry, or set the columns with .schema(...)"
        )
    return f"{topics[0]}-{side.side}"
