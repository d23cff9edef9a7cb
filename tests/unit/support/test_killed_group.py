"""The checker of a group under kills, with commits that are reverted, invented, or past the log's end."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, cast

import pytest
from model.killed_group import KilledGroup

import kafkacore
from kafkacore.structs import TopicPartition


class ScriptedConsumer:
    """A consumer that returns given offsets and accepts every commit."""

    def __init__(self, committed: int | None = 0, end: int = 100) -> None:
        self.found = committed
        self.end = end

    def commit(self, offsets: dict[TopicPartition, Any]) -> None:
        assert offsets

    def committed(self, partitions: Iterable[TopicPartition], timeout_ms: float) -> dict[TopicPartition, Any]:
        return dict.fromkeys(partitions, self.found)

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self.end)


def consumer(committed: int | None = 0, end: int = 100) -> kafkacore.KafkaConsumer:
    return cast("kafkacore.KafkaConsumer", ScriptedConsumer(committed, end))


def group_that_committed(*offsets: int) -> KilledGroup:
    group = KilledGroup("unused", "topic", 1, lambda partition, offset, value: None, threading.Lock())
    for offset in offsets:
        group.commit("member", consumer(), {0: offset})
    return group


def test_kept_commits_are_no_finding() -> None:
    group = group_that_committed(5, 10)
    group.check(consumer(10))
    assert group.findings == []


@pytest.mark.parametrize(
    ("committed", "end", "said"),
    [
        (5, 100, "5 is committed; 10 was before"),
        (11, 100, "11 is committed; 10 was before, 10 was sent"),
        (None, 100, "None is committed"),
        (10, 9, "the log ends at 9"),
    ],
    ids=["taken back", "made up", "gone", "past the end"],
)
def test_broken_commit_is_found(committed: int | None, end: int, said: str) -> None:
    group = group_that_committed(5, 10)
    group.check(consumer(committed, end))
    assert len(group.findings) == 1
    assert said in group.findings[0].text


def test_commit_without_an_answer_that_was_seen_is_not_taken_back() -> None:
    group = group_that_committed(5)
    group._attempted[0] = 10
    group.check(consumer(10))
    group.check(consumer(5))
    assert len(group.findings) == 1


def test_skipped_records_are_found() -> None:
    group = group_that_committed()
    with group.lock:
        group.report("member", "assigned", partitions=[0])
        group.report("member", "records", partition=0, first=1, last=9)
    assert any("skipped" in finding.text for finding in group.judge({0: 10}))
