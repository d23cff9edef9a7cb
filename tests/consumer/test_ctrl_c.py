"""A Ctrl-C in any line of a member's life: the program that goes on afterwards reads on and misses nothing.

A sample of the lines, by a trace: a signal's handler runs between any two of them. Of what a call was about
to return nothing is said: a record may be lost with it, as with any function that is interrupted.
"""

import sys
from pathlib import Path

import pytest
from model.fetch_log import FetchLog, simple_batch

import kafkacore.consumer
from kafkacore.consumer.group.generation import MemberState
from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.structs import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
PACKAGE = str(Path(kafkacore.consumer.__file__).parent)
#: Functions through which an answer goes, or a decision of the group: interrupted in each of their lines.
WORK = {
    "_on_joined",
    "_on_synced",
    "_sync",
    "lead",
    "assign",
    "joined",
    "begin_heartbeats",
    "_on_found",
    "_on_fetch_answer",
    "_on_commit_answer",
    "_on_response",
    "_tell",
    "_completed",
    "fire",
    "compose",
    "_finish",
}


class Quiet(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        """Nothing to do."""

    def on_partitions_assigned(self, assigned):
        """Nothing to do."""


@pytest.fixture
def make(make_consumer):
    def make():
        logs = {A0: FetchLog(simple_batch(0, 10)), A1: FetchLog(simple_batch(0, 5))}
        consumer = make_consumer(logs, group_id="g", auto_commit_interval_ms=200, max_poll_records=4)
        consumer.subscribe(["a"], listener=Quiet())
        return consumer

    return make


def poll(consumer, seen):
    for tp, records in consumer.poll(100).items():
        seen.update((tp, record.offset) for record in records)


def live(consumer, seen):
    """Join, read, rebalance, read on."""
    for number in range(7):
        poll(consumer, seen)
        if number == 3:
            consumer.enforce_rebalance()


def is_well(consumer, seen):
    membership = consumer._engine.membership
    return membership.state is MemberState.STABLE and len(seen) == 15


class CtrlC:
    """Interrupts the line of a function when it comes to it first; without one it lists the lines."""

    def __init__(self, line=None):
        self.line = line
        self.lines = {}

    def __call__(self, frame, event, arg):
        code = frame.f_code
        return self._in_function if code.co_name in WORK and code.co_filename.startswith(PACKAGE) else None

    def _in_function(self, frame, event, arg):
        if event == "line":
            line = (frame.f_code.co_filename, frame.f_lineno)
            self.lines[line] = frame.f_code.co_name
            if line == self.line:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._in_function

    def run(self, *args):
        before = sys.gettrace()
        sys.settrace(self)
        try:
            live(*args)
        finally:
            sys.settrace(before)


def test_a_program_that_goes_on_after_a_ctrl_c_reads_on(make):
    lines = CtrlC()
    lines.run(make(), set())
    assert set(lines.lines.values()) >= {"_on_joined", "_on_synced", "assign", "_on_response", "_tell"}
    stuck = []
    for line, name in lines.lines.items():
        consumer, seen = make(), set()
        with pytest.raises(KeyboardInterrupt):
            CtrlC(line).run(consumer, seen)
        for _ in range(30):
            if is_well(consumer, seen):
                break
            poll(consumer, seen)
        else:
            stuck.append((line, name))
    assert not stuck
