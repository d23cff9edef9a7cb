"""Compare every declared message with Kafka's definition.

The definitions come from Kafka's jars of the clients, the coordinators and the metadata.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from model.kafka_definitions import kafka_definitions, valid_versions, versions_in
from peers.jars import (
    kafka_clients_jar,
    kafka_group_coordinator_jar,
    kafka_metadata_jar,
    kafka_transaction_coordinator_jar,
    spark_kafka_jars,
)

from kafkacore.broker.group.records import (
    CONSUMER_RECORDS,
    GROUP_METADATA,
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
)
from kafkacore.broker.metadata.kafkas_epochs import PARTITION_CLASSES
from kafkacore.broker.metadata.records import CLASSES
from kafkacore.broker.transaction.records import KEY_VERSION
from kafkacore.protocol import API_REGISTRY, ApiKey
from kafkacore.protocol.schema import APIS, DATA
from kafkacore.protocol.schema.declaration import Field, Message, Versions

pytestmark = pytest.mark.integration

#: Modules of messages that are not defined in the clients' jar.
OFFSETS_TOPIC = "group_records"
METADATA_LOGS = ("metadata_records", "partition_records")
TRANSACTIONS_TOPIC = "transaction_records"
#: Modules of versions that Kafka 4 has removed. The embedded broker serves them for old clients.
#: They are compared with the last jar that defines them.
REMOVED_VERSIONS = ("old_fetch", "old_list_offsets")
OLD = {message.name.removeprefix("Old"): message for name in REMOVED_VERSIONS for message in DATA[name]}
DECLARED = {
    **{message.name: message for api in APIS for message in api.messages},
    **{
        message.name: message
        for name, data in DATA.items()
        if name not in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, *METADATA_LOGS, *REMOVED_VERSIONS)
        for message in data
    },
}
RECORDS = {message.name: message for message in DATA[OFFSETS_TOPIC]}
ZEROES = {"string": "", "bytes": "", "bool": "false"}


@pytest.fixture(scope="module")
def definitions() -> dict[str, dict[str, Any]]:
    return kafka_definitions(kafka_clients_jar())


def fact(default: object, type_name: str) -> str:
    """Return the default as text, also if Kafka's definitions leave it out."""
    text = str(default).lower() if isinstance(default, bool) else default
    if text is None or (type_name == "string" and text == ""):
        return ZEROES.get(type_name, "0")
    return str(text)


def kafka_facts(field: dict[str, Any], valid: range) -> dict[str, Any]:
    # A field that is always tagged may leave its versions out.
    has = versions_in(field.get("versions", field.get("taggedVersions")), valid)
    return {
        "name": field["name"],
        "type": field["type"],
        "versions": has,
        "nullable": [v for v in versions_in(field.get("nullableVersions"), valid) if v in has],
        "default": fact(field.get("default"), field["type"]),
        "tag": field.get("tag"),
        "tagged versions": versions_in(field.get("taggedVersions"), valid),
        "ignorable": bool(field.get("ignorable", False)),
        "key": bool(field.get("mapKey", False)),
        "zero-copy": bool(field.get("zeroCopy", False)),
        "flexible": field.get("flexibleVersions"),
    }


def declared_facts(field: Field, valid: range) -> dict[str, Any]:
    type_name = ("[]" if field.is_array else "") + field.type
    has = [version for version in valid if version in field.versions]
    return {
        "name": field.name,
        "type": type_name,
        "versions": has,
        "nullable": [version for version in has if version in field.nullable],
        "default": fact(field.default, type_name),
        "tag": field.tag,
        "tagged versions": has if field.tag is not None else [],
        "ignorable": field.ignorable,
        "key": field.key,
        "zero-copy": field.zero_copy,
        "flexible": "none" if field.inflexible else None,
    }


def kafka_structs(definition: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the fields of the message and of each structure, by name."""
    found = {definition["name"]: definition.get("fields", [])}

    def walk(fields: list[dict[str, Any]]) -> None:
        for field in fields:
            if "fields" in field:
                found[field["type"].removeprefix("[]")] = field["fields"]
                walk(field["fields"])

    walk(definition.get("fields", []))
    for struct in definition.get("commonStructs", []):
        found[struct["name"]] = struct["fields"]
        walk(struct["fields"])
    return found


def differences(message: Message, definition: dict[str, Any], valid: range | None = None) -> Iterator[str]:
    """Yield the differences in the ``valid`` versions, by default in all versions of the definition."""
    is_whole = valid is None
    valid = valid_versions(definition) if valid is None else valid
    if list(message.versions) != list(valid):
        yield f"{message.name}: versions {list(message.versions)}, Kafka has {list(valid)}"
    flexible = [version for version in valid if version in message.flexible]
    if flexible != versions_in(definition["flexibleVersions"], valid):
        yield f"{message.name}: flexible in {flexible}, Kafka: {definition['flexibleVersions']}"
    theirs = kafka_structs(definition)
    ours = {definition["name"]: message.fields, **{name: s.fields for name, s in message.structs.items()}}
    if is_whole and ours.keys() != theirs.keys():
        yield f"{message.name}: structures {sorted(ours)}, Kafka has {sorted(theirs)}"
    for name in ours.keys() & theirs.keys():
        got = [declared_facts(field, valid) for field in ours[name]]
        wanted = [
            kafka_facts(field, valid)
            for field in theirs[name]
            if is_whole or versions_in(field["versions"], valid)
        ]
        if got != wanted:
            yield f"{message.name}.{name}: {got}\nKafka has: {wanted}"


def test_every_definition_of_the_jar_is_declared(definitions: dict[str, dict[str, Any]]) -> None:
    removed = {name for name, definition in definitions.items() if definition["validVersions"] == "none"}
    assert DECLARED.keys() == definitions.keys() - removed
    assert len(DECLARED) > 150
    without_versions = {
        api.name + kind for api in APIS if not api.versions for kind in ("Request", "Response")
    }
    assert without_versions == removed


def test_every_field_is_declared_as_kafka_defines_it(definitions: dict[str, dict[str, Any]]) -> None:
    found = [text for name, message in DECLARED.items() for text in differences(message, definitions[name])]
    assert found == []


def test_every_version_that_kafka_has_removed_is_declared_as_it_was() -> None:
    (jar,) = spark_kafka_jars().glob("kafka-clients-3.*.jar")
    was, now = kafka_definitions(jar), kafka_definitions(kafka_clients_jar())
    assert sorted(OLD) == [
        "FetchRequest",
        "FetchResponse",
        "ListOffsetsRequest",
        "ListOffsetsResponse",
    ]
    for name, message in OLD.items():
        removed = range(valid_versions(now[name]).start)
        assert list(removed) == list(message.versions)
        assert list(differences(message, was[name], removed)) == []


def test_every_record_of_the_offsets_topic_is_declared_as_kafka_defines_it() -> None:
    definitions = kafka_definitions(kafka_group_coordinator_jar())
    found = [text for name, message in RECORDS.items() for text in differences(message, definitions[name])]
    assert found == []
    kinds = {name: definitions[name]["apiKey"] for name in RECORDS}
    consumer_kinds = {
        message.NAME: kind for key, (kind, value) in CONSUMER_RECORDS.items() for message in (key, value)
    }
    assert sorted(set(consumer_kinds.values())) == [3, 4, 5, 6, 7, 8, 16]
    assert kinds == {
        **consumer_kinds,
        "LegacyOffsetCommitKey": LEGACY_OFFSET_COMMIT,
        "LegacyOffsetCommitValue": LEGACY_OFFSET_COMMIT,
        "OffsetCommitKey": OFFSET_COMMIT,
        "OffsetCommitValue": OFFSET_COMMIT,
        "GroupMetadataKey": GROUP_METADATA,
        "GroupMetadataValue": GROUP_METADATA,
    }


def test_every_record_of_the_transactions_topic_is_declared_as_kafka_defines_it() -> None:
    definitions = kafka_definitions(kafka_transaction_coordinator_jar())
    declared = {message.name: message for message in DATA[TRANSACTIONS_TOPIC]}
    assert sorted(declared) == ["TransactionLogKey", "TransactionLogValue"]
    found = [text for name, message in declared.items() for text in differences(message, definitions[name])]
    assert found == []
    assert {definitions[name]["apiKey"] for name in declared} == {KEY_VERSION}


def test_every_record_of_the_metadata_log_is_declared_as_kafka_defines_it() -> None:
    definitions = kafka_definitions(kafka_metadata_jar(), "common/metadata/")
    declared = {message.name: message for module in METADATA_LOGS for message in DATA[module]}
    found = [text for name, message in declared.items() for text in differences(message, definitions[name])]
    assert found == []
    kinds = {number: record_class.__name__ for number, record_class in (CLASSES | PARTITION_CLASSES).items()}
    assert kinds == {definitions[name]["apiKey"]: name for name in declared}


def test_every_api_has_the_key_that_kafka_gives_it(definitions: dict[str, dict[str, Any]]) -> None:
    for api in APIS:
        for kind in ("Request", "Response"):
            assert definitions[api.name + kind]["apiKey"] == api.key, api.name


def test_unstable_versions_are_marked_as_in_kafka(definitions: dict[str, dict[str, Any]]) -> None:
    unstable = {name for name, definition in definitions.items() if definition.get("latestVersionUnstable")}
    assert {f"{api.name}Request" for api in APIS if api.latest_version_unstable} == unstable


def test_generated_classes_have_the_versions_of_the_definitions(
    definitions: dict[str, dict[str, Any]],
) -> None:
    for api_key in API_REGISTRY:
        for message_class in API_REGISTRY[api_key]:
            definition = definitions[message_class.NAME]
            valid = valid_versions(definition)
            flexible = versions_in(definition["flexibleVersions"], valid)
            assert ApiKey(definition["apiKey"]) is api_key
            assert (valid.start, valid.stop - 1) == (message_class.MIN_VERSION, message_class.MAX_VERSION)
            assert (flexible[0] if flexible else None) == message_class.FLEXIBLE_FROM


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Other"},
        {"type": "int8"},
        {"is_array": True},
        {"versions": Versions(4, 5)},
        {"nullable": Versions(9, 12)},
        {"default": "7"},
        {"tag": 3},
        {"ignorable": True},
        {"key": True},
        {"zero_copy": True},
        {"inflexible": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_comparison_notices_a_changed_field(
    definitions: dict[str, dict[str, Any]], change: dict[str, Any]
) -> None:
    message = DECLARED["ProduceRequest"]
    acks = message.fields[1]
    changed = (message.fields[0], dataclasses.replace(acks, **change), *message.fields[2:])
    assert list(differences(message, definitions[message.name])) == []
    assert list(differences(dataclasses.replace(message, fields=changed), definitions[message.name]))
