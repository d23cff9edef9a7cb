"""A client that continuously commits offsets while the broker is killed, and its results."""

from __future__ import annotations

import random
import threading

from eventually import eventually
from model.raw_line import Line

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest

#: Error codes of a coordinator that is restarting.
COMES_BACK = (14, 15, 16)


class OffsetCommitter(threading.Thread):
    """Commits 1, 2, 3, … as the offset of a topic's partitions, all of them in one request."""

    def __init__(self, servers: str, group: str, topic: str, partitions: int) -> None:
        super().__init__(name=f"committer-{group}")
        self._servers = servers
        self.group = group
        self._topic = topic
        self._partitions = partitions
        self._stopping = threading.Event()
        #: Last offset that the broker acknowledged.
        self.acknowledged = 0
        #: Last offset that was sent, and therefore may be committed.
        self.sent = 0
        self.findings: list[str] = []

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                with Line(self._servers) as broker:
                    self._commit_on(broker)
            except (OSError, AssertionError):
                # The broker was killed; the next connection may find it again.
                SYSTEM_CLOCK.sleep_ms(5)

    def _commit_on(self, broker: Line) -> None:
        self.check(broker)
        while not self._stopping.is_set():
            self.sent += 1
            partitions = [
                OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=self.sent,
                    committed_metadata="x" * (self.sent % 50),
                )
                for number in range(self._partitions)
            ]
            topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=self._topic, partitions=partitions)
            answer = broker.ask(OffsetCommitRequest(group_id=self.group, topics=[topic]), 9)
            codes = {one.error_code for one in answer.topics[0].partitions}
            if codes == {0}:
                self.acknowledged = self.sent
            elif not codes <= set(COMES_BACK):
                self.findings.append(f"{self.group}: commit of {self.sent} returned {codes}")

    def check(self, broker: Line) -> None:
        """Check that all partitions have the same committed offset, acknowledged or sent later."""
        found = self.fetched(broker)
        if len(set(found)) != 1:
            self.findings.append(f"{self.group}: a commit was stored for some partitions only: {found}")
        elif not max(self.acknowledged, -1) <= max(found[0], 0) <= self.sent:
            self.findings.append(
                f"{self.group}: {found[0]} is committed, {self.acknowledged} acknowledged, {self.sent} sent"
            )

    def fetched(self, broker: Line) -> list[int]:
        wanted = OffsetFetchRequest.OffsetFetchRequestTopics(
            name=self._topic, partition_indexes=list(range(self._partitions))
        )
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=self.group, topics=[wanted])

        def fetch() -> list[int]:
            (answer,) = broker.ask(OffsetFetchRequest(groups=[group], require_stable=True), 9).groups
            if answer.error_code == 0:
                return [one.committed_offset for one in answer.topics[0].partitions]
            if answer.error_code not in COMES_BACK:
                self.findings.append(f"{self.group}: a fetch returned error {answer.error_code}")
            broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group]), 4)
            return []

        return eventually(fetch, "no coordinator")


def rest(rng: random.Random, longest_ms: float) -> None:
    SYSTEM_CLOCK.sleep_ms(rng.uniform(0, longest_ms))
