"""Arguments of ``send_offsets_to_transaction``: our forms, kafka-python's, and invalid ones."""

from __future__ import annotations

from typing import Any

import kafka
import kafka.structs
import pytest

from kafkacore.producer.transaction_arguments import checked_group, checked_offsets
from kafkacore.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition


def test_a_group_is_taken_by_its_name() -> None:
    assert checked_group("readers") == ConsumerGroupMetadata("readers", -1, "", None)


def test_kafka_pythons_group_metadata_is_taken_by_its_attributes() -> None:
    theirs = kafka.structs.ConsumerGroupMetadata("readers", 3, "member", "instance")
    assert checked_group(theirs) == ConsumerGroupMetadata("readers", 3, "member", "instance")


@pytest.mark.parametrize("group", [None, 7, b"readers", object()])
def test_what_is_no_group_is_refused(group: Any) -> None:
    with pytest.raises(TypeError, match="group_metadata"):
        checked_group(group)


def test_a_group_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="name of a group"):
        checked_group("")


def test_a_generation_without_its_member_is_refused() -> None:
    with pytest.raises(ValueError, match="generation 3 must have a member id"):
        checked_group(ConsumerGroupMetadata("readers", 3))


def test_kafka_pythons_offsets_are_taken() -> None:
    theirs = {kafka.TopicPartition("t", 1): kafka.structs.OffsetAndMetadata(5, "note", 2)}
    assert checked_offsets(theirs) == {TopicPartition("t", 1): OffsetAndMetadata(5, "note", 2)}


def test_nulls_of_metadata_and_epoch_are_what_is_not_there() -> None:
    theirs = {TopicPartition("t", 1): kafka.structs.OffsetAndMetadata(5, None, None)}
    assert checked_offsets(theirs) == {TopicPartition("t", 1): OffsetAndMetadata(5, "", -1)}


@pytest.mark.parametrize(
    ("offsets", "error"),
    [
        (None, TypeError),
        ([(TopicPartition("t", 0), OffsetAndMetadata(1))], TypeError),
        ({"t": OffsetAndMetadata(1)}, TypeError),
        ({TopicPartition("t", 0): 5}, TypeError),
        ({TopicPartition("t", 0): OffsetAndMetadata(True)}, TypeError),
        ({TopicPartition("t", 0): OffsetAndMetadata(-1)}, ValueError),
    ],
)
def test_what_is_no_offset_is_refused(offsets: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="offset"):
        checked_offsets(offsets)
