"""The partition of __consumer_offsets that stores a group."""

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


@pytest.mark.parametrize("size", [1, 255, 256, 257, 511, 512, 513, 32_767])
def test_hash_code_of_a_long_text_is_javas(size: int) -> None:
    text = ("ab€\U0001f600" * size)[:size]
    code = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    assert java_hash_code(text) & 0xFFFFFFFF == code


def test_hash_code_without_a_positive_counterpart_is_partition_0() -> None:
    assert partition_for("polygenelubricants", 7) == 0


def test_there_is_no_partition_of_none() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        partition_for("g", 0)
