"""Ctrl-C at any executed line of a group member: the program can continue, and reads all records.

The signal is real: it is raised while the line runs, and Python calls the handler when it can. Records that
the interrupted call was about to return may be lost, as with any function that is interrupted.
"""

from pathlib import Path

import pytest
from model.dose import dose, new_seed, note
from model.fetch_log import FetchLog, simple_batch

import kafkacore
from kafkacore.consumer.group.generation import MemberState
from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.structs import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
END = {A0: 10, A1: 5}
PACKAGE = str(Path(kafkacore.__file__).parent)
#: One of this many executed lines is interrupted.
STEP = dose(97, 1)
#: Number of polls, of 100 ms each, within which a program must recover.
POLLS = 40


class Quiet(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        """Do nothing."""

    def on_partitions_assigned(self, assigned):
        """Do nothing."""


@pytest.fixture
def make(make_consumer):
    def make():
        logs = {A0: FetchLog(simple_batch(0, 10)), A1: FetchLog(simple_batch(0, 5))}
        consumer = make_consumer(logs, group_id="g", auto_commit_interval_ms=200, max_poll_records=4)
        consumer.subscribe(["a"], listener=Quiet())
        return consumer

    return make


def run_member(consumer, ctrl_c, line):
    """Join, read and rebalance, with a Ctrl-C at that line, and return the number of executed lines."""
    ctrl_c.start(PACKAGE, line)
    try:
        for number in range(7):
            consumer.poll(100)
            if number == 3:
                consumer.enforce_rebalance()
    finally:
        lines = ctrl_c.stop()
    return lines


def has_recovered(consumer):
    """Return whether the member is stable and has read everything."""
    engine = consumer._engine
    positions = {tp: engine.subscriptions.position(tp) for tp in engine.subscriptions.assigned_partitions()}
    at_end = {tp: position.offset for tp, position in positions.items() if position} == END
    return engine.membership.state is MemberState.STABLE and at_end


def recovers(consumer):
    for _ in range(POLLS):
        if has_recovered(consumer):
            return True
        consumer.poll(100)
    return has_recovered(consumer)


@pytest.mark.timeout(dose(120, 1_800))
def test_a_program_that_goes_on_after_a_ctrl_c_reads_on(make, ctrl_c):
    # The first run also imports modules, so count the lines of the second one.
    lines = [run_member(make(), ctrl_c, -1) for _ in range(2)][-1]
    seed = new_seed()
    stuck, interrupted = [], 0
    for line in range(1 + seed % STEP, lines, STEP):
        consumer = make()
        try:
            run_member(consumer, ctrl_c, line)
        except KeyboardInterrupt:
            interrupted += 1
            if not recovers(consumer):
                stuck.append(ctrl_c.where())
    assert interrupted > lines / STEP / 2
    note("Ctrl-C in a member's life", seed, lines=lines, interrupted=interrupted, stuck=len(stuck))
    assert not stuck
