"""The embedded broker is killed by SIGKILL at random moments under three producers and a group of two.

Acknowledged records are in the log once, in order and at the acknowledged offset. No offset ever has two
values. After every start the committed offsets are the acknowledged ones, and never past the log end. The
group skips no record and repeats only records after its last commit, although members come and go.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from model.dose import dose, new_seed, note, note_findings
from model.kill_run import MEMBERS, PARTITIONS, KillRun

from kafkacore.testing import EmbeddedBroker

#: Small, so that the log rolls new segments during the kills.
SEGMENT_BYTES = 1 << 20
OFFSETS_SEGMENT_BYTES = 100_000


def run_and_check(folder: Path, kills: int, *, idempotent: bool) -> KillRun:
    seed = new_seed()
    what = f"embedded broker killed under three producers{'' if idempotent else ', not idempotent'}"
    config = {
        "num_partitions": PARTITIONS,
        "log_segment_bytes": SEGMENT_BYTES,
        "log_retention_ms": -1,
        "offsets_topic_segment_bytes": OFFSETS_SEGMENT_BYTES,
        "group_initial_rebalance_delay_ms": 0,
    }
    with EmbeddedBroker(folder / "data", **config) as broker:
        run = KillRun(broker, idempotent, rest_s=dose(0.01, 0.02))
        run.run(random.Random(seed), kills)
        ends, log = run.log()
        findings = run.ledger.check(log, ends, idempotent=idempotent)
        findings += run.group.judge(ends)
    ready = sorted(run.ready_ms)
    note(
        what,
        seed,
        kills=run.kills,
        acknowledged=run.ledger.acknowledged,
        in_the_log=sum(ends.values()),
        given_up_by_librdkafka=run.ledger.given_up,
        **run.group.figures(),
        findings=len(findings),
        ready=f"{ready[len(ready) // 2]:.0f} ms median, {ready[-1]:.0f} at most",
        longest_wait=run.longest_waits(),
    )
    assert note_findings(what, seed, findings, folder) == ""
    assert run.group.processed - run.group.repeated == sum(ends.values())
    # The broker can be killed again before a member has checked its offsets after the first kill.
    assert run.group.checks >= kills / 3
    assert run.group.commits >= kills
    assert run.group.stays > MEMBERS
    assert run.ledger.acknowledged >= 100 * kills
    return run


@pytest.mark.timeout(dose(240, 7_200))
def test_acknowledged_records_survive_every_kill_once_and_in_order(tmp_path: Path) -> None:
    run = run_and_check(tmp_path, dose(12, 1_000), idempotent=True)
    assert run.kills == dose(12, 1_000)


@pytest.mark.timeout(dose(120, 1_800))
def test_without_idempotence_only_what_was_in_flight_at_a_kill_is_doubled(tmp_path: Path) -> None:
    run_and_check(tmp_path, dose(5, 200), idempotent=False)
