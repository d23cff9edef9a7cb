"""Plans that move committed offsets: every target, the ends of the log, and files."""

import pytest

from kafkacore.cli.admin.offset_plan import Target, csv_lines, plan, plan_from_file, read_offsets
from kafkacore.cli.common import CommandError
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition

PARTITIONS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]


@pytest.fixture
def admin(admin):
    admin.add_topic("orders", (2, 10), (0, 20))
    admin.times[PARTITIONS[0]] = {1_000: 3, 2_000: 8}
    admin.add_group("billing", {("orders", 0): 5})
    return admin


@pytest.mark.parametrize(
    ("target", "value", "expected"),
    [
        (Target.EARLIEST, 0, [2, 0]),
        (Target.LATEST, 0, [10, 20]),
        (Target.CURRENT, 0, [5, 20]),
        (Target.OFFSET, 7, [7, 7]),
        (Target.OFFSET, 15, [10, 15]),
        (Target.OFFSET, 0, [2, 0]),
        (Target.TIME, 1_500, [8, 20]),
        (Target.TIME, 9_000, [10, 20]),
    ],
)
def test_offset_moves_to_the_target_within_the_log(admin, target, value, expected):
    moves = plan(admin, "billing", PARTITIONS, target, value)
    assert [move.new_offset for move in moves] == expected
    assert [move.current_offset for move in moves] == [5, None]


@pytest.mark.parametrize(("by", "expected"), [(-2, 3), (-9, 2), (3, 8), (90, 10)])
def test_shift_counts_from_the_committed_offset(admin, by, expected):
    (move,) = plan(admin, "billing", PARTITIONS[:1], Target.SHIFT, by)
    assert (move.new_offset, move.wanted_offset) == (expected, 5 + by)


def test_partition_without_a_committed_offset_cannot_be_shifted(admin):
    with pytest.raises(CommandError, match="cannot shift orders-1: group 'billing' has no committed offset"):
        plan(admin, "billing", PARTITIONS, Target.SHIFT, 1)


def test_exported_plan_is_read_back(admin, tmp_path):
    file = tmp_path / "offsets.csv"
    lines = csv_lines(plan(admin, "billing", PARTITIONS, Target.LATEST))
    assert lines == ["orders,0,10", "orders,1,20"]
    file.write_text("\n".join(lines) + "\n")
    offsets = read_offsets(file, "billing")
    assert offsets == dict(zip(PARTITIONS, (10, 20), strict=True))
    assert [move.new_offset for move in plan_from_file(admin, "billing", offsets)] == [10, 20]


def test_file_of_several_groups_has_lines_of_the_others_skipped(tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_text('"billing","orders",0,7\n"other","orders",0,9\n\n')
    assert read_offsets(file, "billing") == {PARTITIONS[0]: 7}
    with pytest.raises(KafkaConfigurationError, match="has no offsets for group 'third'"):
        read_offsets(file, "third")


@pytest.mark.parametrize(
    "line", ["orders,0", "orders,x,1", "orders,0,-1", "orders,0,99999999999999999999", "a,b,c,d,e"]
)
def test_line_that_is_no_offset_is_named(tmp_path, line):
    file = tmp_path / "offsets.csv"
    file.write_text(f"orders,0,1\n{line}\n")
    with pytest.raises(KafkaConfigurationError, match="line 2 is not topic,partition,offset"):
        read_offsets(file, "billing")


def test_file_that_is_no_text_is_refused(tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KafkaConfigurationError, match="is not a CSV file"):
        read_offsets(file, "billing")
