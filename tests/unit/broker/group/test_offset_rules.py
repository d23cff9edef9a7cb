"""Offsets of a group on a virtual clock: commits, deletion, expiry and removal with their topic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model.offsets_harness import NODE, OffsetsHarness, noted
from model.topic_changes import delete_topic, grow_topic

from kafkacore.broker.group import records
from kafkacore.broker.group.interfaces import OffsetExpiry
from kafkacore.errors import (
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    IllegalGenerationError,
    NonEmptyGroupError,
    OffsetMetadataTooLargeError,
)
from kafkacore.protocol.generated.group_records import GroupMetadataValue, OffsetCommitValue

MINUTE_MS = 60_000
RETENTION_MS = 7 * 24 * 60 * MINUTE_MS


@pytest.fixture
def harness(tmp_path: Path) -> OffsetsHarness:
    return OffsetsHarness(tmp_path)


def after_sweep(harness: OffsetsHarness) -> Any:
    """Remove the expired offsets and return the remaining ones."""
    harness.sweeper.sweep()
    harness.turns()
    return harness.committed()


# ---- Commit ------------------------------------------------------------------------------------------------
def test_later_commit_replaces_an_earlier_one(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), ("t", 1, 6))
    harness.commit(("t", 0, 4))
    assert harness.committed() == {("t", 0): 4, ("t", 1): 6}


def test_commit_without_a_group_makes_a_simple_one(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5))
    assert harness.groups.known == {"g": None}


def test_commit_that_the_group_refuses_is_not_written(harness: OffsetsHarness) -> None:
    harness.groups.refusal = IllegalGenerationError()
    assert harness.commit(("t", 0, 5), ("t", 1, 5)) == [[IllegalGenerationError.errno] * 2]
    assert harness.log_of().batches == []


@pytest.mark.parametrize(
    ("note", "is_kept"),
    [("x" * 8, True), ("x" * 9, False), ("ü" * 8, True), ("𝄞" * 4, True), ("𝄞" * 4 + "x", False)],
)
def test_note_is_measured_in_utf_16_units_as_by_java(tmp_path: Path, note: str, is_kept: bool) -> None:
    harness = OffsetsHarness(tmp_path, offset_metadata_max_bytes=8)
    answers = harness.commit(("t", 0, 5), metadata=note)
    assert (answers == []) == is_kept
    assert harness.committed() == ({("t", 0): 5} if is_kept else {})
    assert answers == [[0 if is_kept else OffsetMetadataTooLargeError.errno]]


def test_empty_name_is_a_group_for_offsets(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), group_id="")
    assert harness.committed("") == {("t", 0): 5}


# ---- Delete ------------------------------------------------------------------------------------------------
def deleted(harness: OffsetsHarness, *partitions: tuple[str, int]) -> list[Any]:
    answers: list[Any] = []
    harness.offsets.delete("g", NODE, partitions, lambda code, codes: answers.append((code, list(codes))))
    harness.sync()
    return answers


def test_deleted_offset_is_gone_after_a_restart_too(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), ("t", 1, 6))
    assert deleted(harness, ("t", 0), ("t", 3)) == [(0, [0, 0])]
    assert harness.committed() == harness.restarted().committed() == {("t", 1): 6}


def test_offsets_of_a_topic_that_is_consumed_stay(harness: OffsetsHarness) -> None:
    harness.topics.create("u", 1, {})
    harness.commit(("t", 0, 5), ("u", 0, 6))
    harness.groups.subscribed = {"t"}
    assert deleted(harness, ("t", 0), ("u", 0)) == [(0, [GroupSubscribedToTopicError.errno, 0])]
    assert harness.committed() == {("t", 0): 5}


def test_offsets_of_no_group_or_a_refusing_one_are_not_deleted(harness: OffsetsHarness) -> None:
    assert deleted(harness, ("t", 0)) == [(GroupIdNotFoundError.errno, [])]
    harness.commit(("t", 0, 5))
    harness.groups.refusal = NonEmptyGroupError()
    assert deleted(harness, ("t", 0)) == [(NonEmptyGroupError.errno, [])]
    assert harness.committed() == {("t", 0): 5}


def test_removal_of_a_group_has_all_of_its_offsets(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), ("t", 1, 6))
    batch = [*harness.offsets.removal("g"), records.group_metadata_tombstone("g")]
    harness.log.append("g", batch, noted()[1])
    assert harness.committed() == {}
    assert harness.restarted().groups.known == {}


# ---- Expiry ------------------------------------------------------------------------------------------------
def test_standalone_offset_expires_by_its_own_commit(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5))
    harness.clock.advance(MINUTE_MS)
    harness.commit(("t", 1, 6))
    harness.clock.advance(RETENTION_MS - MINUTE_MS - 1)
    assert after_sweep(harness) == {("t", 0): 5, ("t", 1): 6}
    harness.clock.advance(1)
    assert after_sweep(harness) == {("t", 1): 6}
    assert harness.restarted().committed() == {("t", 1): 6}


def test_offsets_of_an_empty_group_expire_from_when_it_became_empty(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), ("t", 1, 6))
    harness.clock.advance(RETENTION_MS)
    harness.groups.expiry = OffsetExpiry(harness.clock.wall_ms() - RETENTION_MS + 1)
    assert after_sweep(harness) == {("t", 0): 5, ("t", 1): 6}
    harness.clock.advance(1)
    assert after_sweep(harness) == {}
    assert not harness.groups.exists("g")


def test_what_members_consume_never_expires_and_the_rest_by_its_commit(harness: OffsetsHarness) -> None:
    harness.topics.create("u", 1, {})
    harness.commit(("t", 0, 5), ("u", 0, 6))
    harness.groups.subscribed, harness.groups.are_empty = {"t"}, False
    harness.clock.advance(2 * RETENTION_MS)
    assert after_sweep(harness) == {("t", 0): 5}
    assert harness.groups.exists("g")


def test_nothing_expires_of_a_group_in_between(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5))
    harness.groups.expiry, harness.groups.are_empty = None, False
    harness.clock.advance(2 * RETENTION_MS)
    assert after_sweep(harness) == {("t", 0): 5}


def test_retention_of_a_commits_own_is_honoured_across_a_restart(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), version=4, retention_ms=1000)
    harness.commit(("t", 1, 6))
    other = harness.restarted()
    harness.clock.advance(999)
    assert after_sweep(other) == {("t", 0): 5, ("t", 1): 6}
    harness.clock.advance(1)
    assert after_sweep(other) == {("t", 1): 6}


def test_expire_timestamp_of_an_old_record_is_honoured(harness: OffsetsHarness) -> None:
    now_ms = harness.clock.wall_ms()
    value = OffsetCommitValue(offset=5, commit_timestamp=now_ms, expire_timestamp=now_ms + 10)
    harness.log.append("g", [records.offset_commit("g", "t", 0, value)], noted()[1])
    harness.clock.advance(10)
    assert after_sweep(harness.restarted()) == {}


def test_group_without_offsets_and_members_goes_with_a_tombstone(harness: OffsetsHarness) -> None:
    harness.log.append("g", [records.group_metadata("g", GroupMetadataValue())], noted()[1])
    assert harness.groups.exists("g")
    assert after_sweep(harness) == {}
    assert not harness.groups.exists("g")
    assert harness.restarted().groups.known == {}


def test_groups_are_looked_at_from_time_to_time(tmp_path: Path) -> None:
    harness = OffsetsHarness(tmp_path, offsets_retention_minutes=1, offsets_retention_check_interval_ms=1000)
    harness.sweeper.start()
    for number in range(3):
        harness.commit(("t", number, 5))
        harness.clock.advance(MINUTE_MS - 1)
        harness.turn()
        harness.turns()
        assert harness.committed() == {("t", number): 5}
        harness.clock.advance(1000)
        harness.turn()
        harness.turns()
        assert harness.committed() == {}


def test_many_groups_are_removed_over_many_turns_in_batches_of_bounded_size(tmp_path: Path) -> None:
    harness = OffsetsHarness(tmp_path, offsets_topic_num_partitions=1)
    grow_topic(harness.topics, "t", 1200)
    for number in range(120):
        harness.commit(*[("t", partition, 1) for partition in range(25)], group_id=f"g{number}")
    harness.clock.advance(RETENTION_MS)
    before = len(harness.log_of().batches)
    harness.sweeper.sweep()
    turns = 0
    while harness.replica_manager.has_events:
        harness.turn()
        turns += 1
    assert turns >= 3
    assert harness.groups.known == {}
    assert all(last - first < 1000 for first, last, _ in harness.log_of().batches[before:])
    assert len(harness.restarted().state.offsets_of(0) or ()) == 0


# ---- Topics ------------------------------------------------------------------------------------------------
def test_offsets_go_with_their_topic(harness: OffsetsHarness) -> None:
    harness.topics.create("u", 2, {})
    harness.commit(("t", 0, 5), ("u", 0, 6), ("u", 1, 7))
    harness.commit(("u", 0, 6), group_id="other")
    delete_topic(harness.topics, "u")
    harness.turns()
    assert harness.committed() == {("t", 0): 5}
    assert harness.committed("other") == {}
    assert harness.restarted().committed() == {("t", 0): 5}


def test_what_is_committed_to_a_new_topic_of_the_name_stays(harness: OffsetsHarness) -> None:
    harness.topics.create("u", 2, {})
    harness.commit(("u", 0, 6), ("u", 1, 7))
    delete_topic(harness.topics, "u")
    harness.topics.create("u", 2, {})
    harness.commit(("u", 0, 1))
    harness.turns()
    assert harness.committed() == {("u", 0): 1}


def test_crash_between_a_topics_end_and_its_offsets_is_made_up_for(harness: OffsetsHarness) -> None:
    harness.topics.create("u", 1, {})
    harness.topics.create("v", 1, {})
    harness.commit(("t", 0, 5), ("u", 0, 6), ("v", 0, 7))
    harness.topics.on_removed.clear()
    delete_topic(harness.topics, "u")
    delete_topic(harness.topics, "v")
    harness.topics.create("v", 1, {})
    other = harness.restarted()
    assert other.committed() == {("t", 0): 5}
    # The removal is also in the log.
    assert harness.restarted().committed() == {("t", 0): 5}


def test_old_record_that_does_not_say_its_topics_id_stays_with_a_topic_of_the_name(
    harness: OffsetsHarness,
) -> None:
    value = OffsetCommitValue(offset=5, commit_timestamp=harness.clock.wall_ms())
    harness.log.append("g", [records.offset_commit("g", "t", 0, value)], noted()[1])
    assert harness.restarted().committed() == {("t", 0): 5}
    delete_topic(harness.topics, "t")
    harness.turns()
    assert harness.committed() == {}
