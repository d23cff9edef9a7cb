"""Place the replicas of a topic on brokers and racks, as Kafka's ``StripedReplicaPlacer`` does."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from kafkacore.clock import Clock


class _Rack:
    """The brokers of a rack. The placer chooses them in turn for the replicas of a partition."""

    def __init__(self, brokers: list[int], offset: int) -> None:
        self._brokers = brokers
        self._offset = offset
        self._taken = 0
        self._partition = 0

    def take(self, partition: int) -> int | None:
        """Return the next broker, or ``None`` if the partition has a replica on every broker of the rack."""
        if partition != self._partition:
            self._partition = partition
            self._offset = (self._offset + 1) % len(self._brokers)
            self._taken = 0
        if self._taken == len(self._brokers):
            return None
        self._taken += 1
        return self._brokers[(self._offset + self._taken - 1) % len(self._brokers)]

    def shuffle(self, clock: Clock) -> None:
        clock.random.shuffle(self._brokers)


class StripedReplicaPlacer:
    """Places the partitions of one topic.

    The replicas of a partition are on different racks if there are enough racks. Leaders are spread evenly
    over the racks, and over the brokers of a rack. After each round of leaders, Kafka's placer restarts its
    count of partitions, and may then skip a broker. This placer does not.

    Parameters
    ----------
    racks:
        Broker → rack. All brokers without a rack form one rack.
    clock:
        Source of random numbers. The first rack and the first brokers of each topic are random.
    """

    def __init__(self, racks: Mapping[int, str | None], clock: Clock) -> None:
        by_rack: dict[str, list[int]] = {}
        for broker, rack in sorted(racks.items()):
            by_rack.setdefault(rack or "", []).append(broker)
        self._racks = [
            _Rack(brokers, clock.random.randrange(len(brokers))) for _, brokers in sorted(by_rack.items())
        ]
        self._offset = clock.random.randrange(len(self._racks))
        self._broker_count = len(racks)
        self._clock = clock
        self._placed = 0

    def place(self, replication_factor: int) -> list[int]:
        """Return the brokers of the next partition. The first broker is the preferred leader.

        Parameters
        ----------
        replication_factor:
            Number of replicas, at most the number of brokers.
        """
        if self._placed and self._placed % self._broker_count == 0:
            # Shuffle, so that the next partitions are placed on other sets of brokers.
            self._clock.random.shuffle(self._racks)
            for rack in self._racks:
                rack.shuffle(self._clock)
        replicas: list[int] = []
        for rack in cycle(self._racks[self._offset :] + self._racks[: self._offset]):
            if len(replicas) == replication_factor:
                break
            if (broker := rack.take(self._placed)) is not None:
                replicas.append(broker)
        self._offset = (self._offset + 1) % len(self._racks)
        self._placed += 1
        return replicas
