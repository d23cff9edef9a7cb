"""Replicas on brokers and racks, by the examples in the documentation of Kafka's ``StripedReplicaPlacer``."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kafkacore.cli.admin.replica_placement import StripedReplicaPlacer
from kafkacore.testing import VirtualClock

RACKS = {0: "a", 1: "a", 2: "a", 3: "b", 4: "b", 5: "b", 6: "c", 7: "c", 8: "c"}


class NotRandom(random.Random):
    """Always chooses the first broker and rack, and reverses what it shuffles."""

    def randrange(self, *bounds):
        return 0

    def shuffle(self, values):
        values.reverse()


def unshuffled():
    clock = VirtualClock()
    clock.random = NotRandom()
    return clock


def test_racks_are_striped():
    placer = StripedReplicaPlacer(RACKS, unshuffled())
    assert [placer.place(3) for _ in range(3)] == [[0, 3, 6], [4, 7, 1], [8, 2, 5]]


def test_rack_without_a_replica_keeps_its_next_broker():
    placer = StripedReplicaPlacer(RACKS, unshuffled())
    assert [placer.place(1) for _ in range(6)] == [[0], [4], [7], [1], [5], [8]]


def test_brokers_are_shuffled_after_each_round():
    placer = StripedReplicaPlacer(dict.fromkeys((4, 5, 6)), unshuffled())
    assert [placer.place(2) for _ in range(3)] == [[4, 5], [5, 6], [6, 4]]
    assert [placer.place(2) for _ in range(3)] == [[6, 5], [5, 4], [4, 6]]


def test_single_broker_has_the_only_replica():
    placer = StripedReplicaPlacer({7: None}, unshuffled())
    assert [placer.place(1) for _ in range(3)] == [[7]] * 3


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.data(), st.integers(0, 2**32))
def test_replicas_are_on_different_racks(names, data, seed):
    racks = dict(enumerate(names))
    factor = data.draw(st.integers(1, len(racks)))
    placer = StripedReplicaPlacer(racks, VirtualClock(seed=seed))
    placed = [placer.place(factor) for _ in range(2 * len(racks))]
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert len({racks[each] for each in replicas}) == min(factor, len(set(names)))


@given(st.integers(1, 3), st.integers(1, 4), st.data(), st.integers(0, 2**32))
def test_leaders_are_even_on_racks_of_one_size(rack_count, size, data, seed):
    racks = {number: "abc"[number % rack_count] for number in range(rack_count * size)}
    placer = StripedReplicaPlacer(racks, VirtualClock(seed=seed))
    factor = data.draw(st.integers(1, len(racks)))
    placed = [placer.place(factor) for _ in range(3 * len(racks))]
    by_rack = Counter(racks[replicas[0]] for replicas in placed)
    assert set(by_rack.values()) == {3 * size}
    if rack_count == 1:
        assert Counter(replicas[0] for replicas in placed) == dict.fromkeys(racks, 3)
