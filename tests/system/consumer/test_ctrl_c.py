"""A Ctrl-C in any line of a member's life: the program that goes on afterwards reads on and misses nothing.

A real one: it comes while the line runs, and the handler where Python lets it. Of what a call was about to
return nothing is said: a record may be lost with it, as with any function that is interrupted.
"""

import importlib.util
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import BUDGET_S
from model.dose import dose, new_seed, note
from model.fetch_log import FetchLog, simple_batch

import kafkacore
from kafkacore.consumer.group.generation import MemberState
from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.structs import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
END = {A0: 10, A1: 5}
PACKAGE = str(Path(kafkacore.__file__).parent)
#: Of the lines that run, one of so many is interrupted.
STEP = dose(97, 1)
#: As long as a program may take to be well again, in polls of 100 ms.
POLLS = 40
INTERRUPTER = Path(__file__).parents[2] / "support" / "model" / "ctrl_c_at.pyx"


@pytest.fixture(scope="module")
def ctrl_c(tmp_path_factory):
    """The module ``model/ctrl_c_at.pyx``, compiled."""
    folder = tmp_path_factory.mktemp("ctrl_c")
    source = Path(shutil.copy(INTERRUPTER, folder))
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "-i", "-3", "-q", str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=2 * BUDGET_S)
    (built,) = folder.glob("ctrl_c_at*.so")
    spec = importlib.util.spec_from_file_location("ctrl_c_at", built)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield module
    signal.signal(signal.SIGINT, before)


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


def live(consumer, ctrl_c, line):
    """Join, read, rebalance, read on, with a Ctrl-C at that line; how many lines there were."""
    ctrl_c.start(PACKAGE, line)
    try:
        for number in range(7):
            consumer.poll(100)
            if number == 3:
                consumer.enforce_rebalance()
    finally:
        lines = ctrl_c.stop()
    return lines


def is_well(consumer):
    """A member that has read everything."""
    engine = consumer._engine
    positions = {tp: engine.subscriptions.position(tp) for tp in engine.subscriptions.assigned_partitions()}
    at_end = {tp: position.offset for tp, position in positions.items() if position} == END
    return engine.membership.state is MemberState.STABLE and at_end


def recovers(consumer):
    for _ in range(POLLS):
        if is_well(consumer):
            return True
        consumer.poll(100)
    return is_well(consumer)


@pytest.mark.timeout(dose(120, 1_800))
def test_a_program_that_goes_on_after_a_ctrl_c_reads_on(make, ctrl_c):
    # The first one imports, too.
    lines = [live(make(), ctrl_c, -1) for _ in range(2)][-1]
    seed = new_seed()
    stuck, interrupted = [], 0
    for line in range(1 + seed % STEP, lines, STEP):
        consumer = make()
        try:
            live(consumer, ctrl_c, line)
        except KeyboardInterrupt:
            interrupted += 1
            if not recovers(consumer):
                stuck.append(ctrl_c.where())
    assert interrupted > lines / STEP / 2
    note("Ctrl-C in a member's life", seed, lines=lines, interrupted=interrupted, stuck=len(stuck))
    assert not stuck
