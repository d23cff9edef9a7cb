"""The checker of group histories finds each violation of a group's guarantees, and reports no others."""

from __future__ import annotations

from typing import Any

import pytest
from model.group_history import Event, GroupHistory


class Story:
    """A sequence of events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, member: str, kind: str, **what: Any) -> Story:
        self.events.append(Event(len(self.events), member, kind, what))
        return self

    def assigned(self, member: str, *partitions: int, generation: int | None = None) -> Story:
        return self.add(member, "assigned", partitions=partitions, owned=partitions, generation=generation)

    def gone(self, member: str, kind: str, *partitions: int) -> Story:
        return self.add(member, kind, partitions=partitions, owned=())

    def processed(self, member: str, partition: int, first: int, last: int) -> Story:
        return self.add(member, "records", partition=partition, first=first, last=last)

    def committed(self, member: str, partition: int, offset: int, outcome: str = "committed") -> Story:
        offsets = {str(partition): offset}
        return self.add(member, "committing", offsets=offsets).add(member, outcome, offsets=offsets)

    def wrong(self, **ends: int) -> list[str]:
        return GroupHistory().check(self.events, {int(name[1:]): end for name, end in ends.items()})


def begun() -> Story:
    """Return a story in which member "a" has processed and committed offsets 0 to 4 of partition 0."""
    return Story().assigned("a", 0, generation=1).processed("a", 0, 0, 4).committed("a", 0, 5)


def test_partition_handed_over_is_right() -> None:
    story = begun().gone("a", "revoked", 0).assigned("b", 0, generation=2)
    assert story.processed("b", 0, 5, 9).committed("b", 0, 10).wrong(p0=10) == []


def test_killed_member_makes_repeats_from_its_last_commit() -> None:
    story = begun().processed("a", 0, 5, 7).add("a", "dead").assigned("b", 0)
    history = GroupHistory()
    assert history.check(story.processed("b", 0, 5, 9).committed("b", 0, 10).events, {0: 10}) == []
    assert history.repeated == 3


def test_commit_whose_answer_a_kill_cut_off_counts_or_not() -> None:
    for first in (5, 8):
        story = begun().processed("a", 0, 5, 7).add("a", "committing", offsets={"0": 8}).add("a", "dead")
        story.assigned("b", 0).processed("b", 0, first, 9).committed("b", 0, 10)
        assert story.wrong(p0=10) == []


def test_member_that_hears_later_that_it_lost_a_partition_is_excused() -> None:
    story = begun().assigned("b", 0, generation=2).processed("b", 0, 5, 9)
    story.processed("a", 0, 5, 6).committed("a", 0, 7, "commit_failed").gone("a", "lost", 0)
    assert story.committed("b", 0, 10).wrong(p0=10) == []


def test_commit_before_a_pause_may_be_reported_after_the_next_owners() -> None:
    story = begun().processed("a", 0, 5, 6).add("a", "committing", offsets={"0": 7})
    story.assigned("b", 0).processed("b", 0, 7, 9).committed("b", 0, 10)
    assert story.add("a", "committed", offsets={"0": 7}).gone("a", "lost", 0).wrong(p0=10) == []


def test_static_member_comes_back_in_the_same_generation() -> None:
    story = begun().add("a", "dead").assigned("a again", 0, generation=1)
    assert story.processed("a again", 0, 5, 5).committed("a again", 0, 6).wrong(p0=6) == []


@pytest.mark.parametrize(
    ("story", "sentence"),
    [
        (begun().assigned("b", 0), "b was assigned 0, which a has since"),
        (begun().assigned("b", 0).add("a", "closed"), "b was assigned 0, which a has since"),
        (begun().assigned("b", 0).gone("a", "revoked", 0), "b was assigned 0, which a has since"),
        (begun().assigned("b", 0, generation=1), "b and a both own 0 in generation 1"),
        (begun().processed("a", 0, 6, 6), "a processed 0@6 after 4"),
        (begun().processed("a", 0, 4, 4), "a processed 0@4 after 4"),
        (begun().processed("b", 0, 5, 5), "b processed 0@5, which it does not have"),
        (begun().add("a", "dead").assigned("b", 0).processed("b", 0, 6, 6), "b skipped 0@5 to 5"),
        (begun().add("a", "dead").assigned("b", 0).processed("b", 0, 4, 4), "before the commit of 5"),
        (
            begun().processed("a", 0, 5, 7).add("a", "dead").assigned("b", 0).processed("b", 0, 6, 6),
            "b began 0 at 6, where nothing was committed",
        ),
        (begun().committed("a", 0, 6), "a commits 0@6, and has processed up to 5"),
        (begun().committed("b", 0, 5), "b commits 0@5, and has processed up to None"),
        (begun().assigned("b", 0).committed("a", 0, 5), "a committed 0@5, which b has"),
        (begun().committed("a", 0, 3), "a committed 0@3 after 5"),
        (begun().processed("a", 0, 5, 5), "partition 0 was committed at 5 of 6"),
        (begun().assigned("a", 3), "partition 3 does not exist"),
    ],
)
def test_broken_word_is_seen(story: Story, sentence: str) -> None:
    wrong = story.wrong(p0=6)
    assert any(sentence in one for one in wrong), wrong


def test_records_that_nobody_processed_are_missed() -> None:
    assert begun().wrong(p0=6, p1=1) == [
        "partition 0 was processed up to 5, it has 6 records",
        "partition 0 was committed at 5 of 6",
        "partition 1 was processed up to 0, it has 1 records",
        "partition 1 was committed at 0 of 1",
    ]
