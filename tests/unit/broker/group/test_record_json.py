"""Records of ``__consumer_offsets`` as JSON. A system test compares them with those of Kafka's own tool."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from model.golden_group_records import golden_group_records
from model.offsets_topic_records import broken_records, log_of, offsets_topic_records

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group import record_json
from kafkacore.broker.group.record_json import camel_case, decoded_record
from kafkacore.broker.log.dump import dump_log_segments
from kafkacore.errors import CorruptRecordError
from kafkacore.protocol._fieldcode import snake_case
from kafkacore.protocol.schema import DATA
from kafkacore.record import RecordBatchBuilder, read_batches

GOLDEN = golden_group_records()
DECLARED = [message for module in ("group_records", "consumer_protocol") for message in DATA[module]]


def decoded(record: CoordinatorRecord) -> dict[str, Any]:
    ((one,),) = read_batches(log_of([record]))
    return decoded_record(one)


def test_record_has_kafkas_names_in_kafkas_order() -> None:
    found = decoded(GOLDEN["partitions"])
    assert found == {
        "key": {"type": "8", "data": {"groupId": "grüppe", "memberId": "member-1"}},
        "payload": {
            "version": "0",
            "data": {
                "memberEpoch": 9,
                "previousMemberEpoch": 8,
                "state": 1,
                "assignedPartitions": [
                    {
                        "topicId": "EBESExQVFhcYGRobHB0eHw",
                        "partitions": [0, 2],
                        "assignmentEpochs": [7, 9],
                    },
                    {"topicId": "AAECAwQFBgcICQoLDA0ODw", "partitions": [1], "assignmentEpochs": [8]},
                ],
                "partitionsPendingRevocation": [
                    {"topicId": "AAECAwQFBgcICQoLDA0ODw", "partitions": [4], "assignmentEpochs": [3]}
                ],
            },
        },
    }
    assert list(found["payload"]["data"]) == [
        "memberEpoch", "previousMemberEpoch", "state", "assignedPartitions", "partitionsPendingRevocation",
    ]  # fmt: skip


def test_tagged_field_with_its_default_is_absent() -> None:
    assert decoded(GOLDEN["group"])["payload"]["data"] == {"epoch": 7, "metadataHash": -123456789012}
    assert decoded(GOLDEN["group-without-hash"])["payload"]["data"] == {"epoch": 1}
    name = "classicMemberMetadata"
    assert decoded(GOLDEN["subscription"])["payload"]["data"][name] is None
    default = "subscription-of-a-classic-member-without-protocols"
    assert name not in decoded(GOLDEN[default])["payload"]["data"]
    assert decoded(GOLDEN["subscription-of-a-classic-member"])["payload"]["data"][name] == {
        "sessionTimeoutMs": 45_000,
        "supportedProtocols": [
            {"name": "range", "metadata": b64encode(b"\x00\x01\xff").decode()},
            {"name": "sticky", "metadata": ""},
        ],
    }


def test_member_of_a_classic_group_has_its_subscription_decoded() -> None:
    values = [
        decoded(record)["payload"]["data"]
        for record in offsets_topic_records()
        if record.key[:2] == b"\x00\x02" and record.value is not None
    ]
    members = values[0]["members"]
    assert [one["subscription"]["topics"] for one in members[:4]] == [["t", "ü"]] * 4
    assert ["rackId" in one["subscription"] for one in members[:4]] == [False, False, False, True]
    assert members[0]["assignment"]["assignedPartitions"][1] == {"topic": "ü", "partitions": [2]}
    # The bytes are not a subscription, and the last group is not of consumers.
    assert members[4]["subscription"] == b64encode(b"\x00\x01sub").decode()
    assert isinstance(values[-1]["members"][0]["subscription"], str)


def test_tombstone_has_kafkas_mark() -> None:
    assert decoded(GOLDEN["regex-tombstone"]) == {
        "key": {"type": "16", "data": {"groupId": "grüppe", "regularExpression": "topic.*"}},
        "payload": "<DELETE>",
    }


def test_record_that_cannot_be_decoded_is_skipped() -> None:
    unknown, *malformed = (decoded(record) for record in broken_records())
    assert unknown == {"key": "Unknown record type 100 at offset 0, skipping."}
    assert [list(one) for one in malformed] == [["key"], ["key"]]
    assert all(one["key"].startswith("Error at offset 0, skipping. ") for one in malformed)


def test_record_without_a_key_is_corrupt() -> None:
    builder = RecordBatchBuilder(1 << 10)
    builder.append(0, None, b"value")
    ((one,),) = read_batches(bytes(builder.close()))
    with pytest.raises(CorruptRecordError, match="no key"):
        decoded_record(one)


def test_dump_of_a_log_has_the_decoded_records(tmp_path: Path) -> None:
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(log_of([GOLDEN["group"], GOLDEN["group-tombstone"]]))
    _, first, second = dump_log_segments(file, records=True, decoder=decoded_record)
    assert first.endswith(
        ' key: {"type":"3","data":{"groupId":"grüppe"}}'
        ' payload: {"version":"0","data":{"epoch":7,"metadataHash":-123456789012}}'
    )
    assert second.endswith(' key: {"type":"3","data":{"groupId":"grüppe"}} payload: <DELETE>')


def test_conversion_of_names_is_the_reverse_of_the_generators() -> None:
    for message in DECLARED:
        for field in [
            *message.fields,
            *(one for struct in message.structs.values() for one in struct.fields),
        ]:
            assert camel_case(snake_case(field.name)) == field.name[0].lower() + field.name[1:]


def test_tables_of_versions_and_tagged_fields_are_complete() -> None:
    versions, tagged = {}, set()
    for message in DECLARED:
        structs = {name: struct.fields for name, struct in message.structs.items()}
        for name, fields in {message.name: message.fields, **structs}.items():
            for field in fields:
                has = [version for version in message.versions if version in field.versions]
                if field.tag is not None:
                    tagged.add((name, snake_case(field.name)))
                # A structure that is absent itself needs no entry for its fields.
                if has != list(message.versions) and (name, message.name) != (
                    "TopicPartition",
                    "ConsumerProtocolSubscription",
                ):
                    versions[name, snake_case(field.name)] = (has[0], has[-1])
    assert {(kind.__name__, name): has for (kind, name), has in record_json._VERSIONS.items()} == versions
    assert {(kind.__name__, name) for kind, name in record_json._DEFAULTS} == tagged
