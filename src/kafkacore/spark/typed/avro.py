"""The columns of values in Avro for which the user has given none: from the option, or the registry.

Does not know: encoded values.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkacore.decode.avro import avro_options, given_schema
from kafkacore.decode.avro_ddl import ddl_of
from kafkacore.decode.registry import SchemaRegistry
from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.options.values import json_of, listed
from kafkacore.spark.typed.options import SideOptions


def avro_ddl(side: SideOptions, options: Mapping[str, str]) -> str:
    """The fields of one side: those of its schema option, else of the latest schema of its subject.

    Raises
    ------
    KafkaConfigurationError
        There is no schema, or none that columns can have.
    SchemaRegistryError
        The registry does not answer.
    """
    side_options = avro_options(side.resolved(), side.side)
    schema = given_schema(side_options)
    if schema is None:
        assert side_options.registry is not None, "avro_options asks for one of the two"
        schema = SchemaRegistry(side_options.registry).latest(subject_of(side, options))
    return ddl_of(schema)


def subject_of(side: SideOptions, options: Mapping[str, str]) -> str:
    """What the registry calls the schema: the option, else ``<topic>-value`` (TopicNameStrategy) of the first
    topic.

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
            f"the topics are not known by name: set {side.side}.subject to what the schema registry calls "
            f"the schema, or give the columns by .schema(...)"
        )
    return f"{topics[0]}-{side.side}"
