"""The embedded broker is killed by SIGKILL during commits: acknowledged commits survive.

Four groups commit without a pause, each for three partitions in one request. After every kill each group
finds its last acknowledged commit, or a later one that it sent, complete.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from eventually import eventually
from model.dose import dose, new_seed, note
from model.offset_committer import OffsetCommitter, rest
from model.raw_line import Line

from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.testing import EmbeddedBroker

GROUPS, PARTITIONS = 4, 3


@pytest.mark.timeout(dose(120, 3_600))
def test_acknowledged_commit_is_there_after_every_kill(tmp_path: Path) -> None:
    seed = new_seed()
    rng = random.Random(seed)
    kills = dose(8, 200)
    # Small segments, so that the offsets topic rolls new ones during the kills. A commit may wait for the
    # disk of a busy machine longer than Kafka's 5 s.
    settings = {"offsets_topic_segment_bytes": 100_000, "offsets_commit_timeout_ms": 60_000}
    with EmbeddedBroker(tmp_path, **settings) as broker:
        with Line(broker.bootstrap_servers) as asked:
            topic = CreateTopicsRequest.CreatableTopic(
                name="t", num_partitions=PARTITIONS, replication_factor=1
            )
            asked.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
        committers = [
            OffsetCommitter(broker.bootstrap_servers, f"group-{number}", "t", PARTITIONS)
            for number in range(GROUPS)
        ]
        for committer in committers:
            committer.start()
        try:
            for _ in range(kills):
                rest(rng, 300)
                broker.kill()
                broker.start()
            rest(rng, 300)
            # On a slow machine the broker may be killed before any commit completes.
            eventually(
                lambda: all(committer.acknowledged >= kills for committer in committers),
                step=lambda: rest(rng, 300),
            )
        finally:
            for committer in committers:
                committer.stop()
        broker.restart()
        with Line(broker.bootstrap_servers) as asked:
            for committer in committers:
                committer.check(asked)
    findings = [finding for committer in committers for finding in committer.findings]
    acknowledged = sum(committer.acknowledged for committer in committers)
    note("commits while the embedded broker is killed", seed, kills=kills, acknowledged=acknowledged,
         findings=len(findings))  # fmt: skip
    assert findings == []
