"""Which partition of __consumer_offsets a group lives on."""

from __future__ import annotations

import pytest

from kafkacore.coordinator import partition_for
from kafkacore.coordinator.group_partition import java_hash_code


def test_consume_group_lives_on_partition_34() -> None:
    assert partition_for("consume_group") == 34


@pytest.mark.parametrize(
    ("text", "code"), [("", 0), ("a", 97), ("polygenelubricants", -(2**31)), ("\U0001f600", 1772899)]
)
def test_hash_code_is_javas(text: str, code: int) -> None:
    assert java_hash_code(text) == code


def test_hash_code_without_a_positive_counterpart_is_partition_0() -> None:
    assert partition_for("polygenelubricants", 7) == 0


def test_there_is_no_partition_of_none() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        partition_for("g", 0)
