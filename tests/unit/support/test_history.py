"""The history checker accepts every correct history and finds every planted fault."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from model.history import History, Kind, LogRecord, SendId

#: The outcome of a send, and whether its record is in the log.
OUTCOMES = {
    "acknowledged": True,
    "acknowledged without offset": True,
    "possibly, found": True,
    "possibly, not found": False,
    "not persisted": False,
}
SENDS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 2),
        st.sampled_from(sorted(OUTCOMES)),
        # Number of control records before the record.
        st.integers(0, 2),
    ),
    max_size=40,
)


@dataclass
class Run:
    """A correct history, and its log."""

    history: History = field(default_factory=History)
    log: list[LogRecord] = field(default_factory=list)
    #: Records acknowledged with their offset, and in the log.
    acknowledged: list[tuple[SendId, LogRecord]] = field(default_factory=list)
    #: All records in the log, with any outcome.
    written: list[tuple[SendId, LogRecord]] = field(default_factory=list)
    not_persisted: list[tuple[SendId, int, bytes]] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)

    def add(self, producer: str, partition: int, outcome: str, gap: int) -> None:
        sequence = sum(send.producer == producer for send in self.history._outcomes)
        value = f"{producer} {sequence}".encode()
        send = self.history.sent(producer, partition, sequence, value)
        record = LogRecord(partition, self.ends.get(partition, 0) + gap, value)
        if OUTCOMES[outcome]:
            self.ends[partition] = record.offset + 1
            self.log.append(record)
            self.written.append((send, record))
        if outcome == "acknowledged":
            self.history.acknowledged(send, record.offset)
            self.acknowledged.append((send, record))
        elif outcome == "acknowledged without offset":
            self.history.acknowledged(send, None)
        else:
            self.history.failed(send, possibly_persisted=outcome.startswith("possibly"))
        if outcome == "not persisted":
            self.not_persisted.append((send, partition, value))

    def end(self, partition: int) -> int:
        return self.ends.get(partition, 0)


def run_of(sends: list[tuple[str, int, str, int]]) -> Run:
    run = Run()
    for send in sends:
        run.add(*send)
    return run


RUNS = SENDS.map(run_of)


def kinds(run: Run, log: list[LogRecord] | None = None) -> list[Kind]:
    return [finding.kind for finding in run.history.check(run.log if log is None else log)]


@given(RUNS, st.randoms(use_true_random=False))
def test_kept_promises_are_found_nothing_against_however_the_log_is_read(
    run: Run, chance: random.Random
) -> None:
    log = run.log + run.log[: len(run.log) // 2]
    chance.shuffle(log)
    assert run.history.check(log) == []


@given(RUNS, st.data())
def test_lost_record_is_found(run: Run, data: st.DataObject) -> None:
    assume(run.acknowledged)
    send, record = data.draw(st.sampled_from(run.acknowledged))
    findings = run.history.check([each for each in run.log if each != record])
    assert [(each.kind, each.send, each.partition, each.offset) for each in findings] == [
        (Kind.LOST, send, record.partition, record.offset)
    ]


@given(RUNS, st.data())
def test_doubled_record_is_found_unless_it_may_be(run: Run, data: st.DataObject) -> None:
    assume(run.written)
    send, record = data.draw(st.sampled_from(run.written))
    doubled = LogRecord(record.partition, run.end(record.partition), record.value)
    log = [*run.log, doubled]
    findings = run.history.check(log)
    assert [(each.kind, each.send, each.offset) for each in findings] == [
        (Kind.DUPLICATE, send, doubled.offset)
    ]
    assert run.history.check(log, may_be_doubled=lambda each: each == send) == []


@given(RUNS, st.data())
def test_swapped_records_are_found(run: Run, data: st.DataObject) -> None:
    pairs = [
        (first, second)
        for first in run.written
        for second in run.written
        if first[0] < second[0]
        and first[0].producer == second[0].producer
        and first[1].partition == second[1].partition
    ]
    assume(pairs)
    (early, early_record), (late, late_record) = data.draw(st.sampled_from(pairs))
    swapped = {
        early_record: LogRecord(early_record.partition, late_record.offset, early_record.value),
        late_record: LogRecord(late_record.partition, early_record.offset, late_record.value),
    }
    findings = run.history.check([swapped.get(each, each) for each in run.log])
    reordered = {each.send for each in findings if each.kind is Kind.REORDERED}
    assert early in reordered
    assert late not in reordered
    acknowledged = {send for send, _ in run.acknowledged}
    moved = {each.send for each in findings if each.kind is Kind.OTHER_OFFSET}
    assert moved == acknowledged & {early, late}
    assert {each.kind for each in findings} <= {Kind.REORDERED, Kind.OTHER_OFFSET}


@given(RUNS, st.data())
def test_record_at_another_offset_than_acknowledged_is_found(run: Run, data: st.DataObject) -> None:
    lasts = [each for each in run.acknowledged if each[1].offset == run.end(each[1].partition) - 1]
    assume(lasts)
    send, record = data.draw(st.sampled_from(lasts))
    moved = LogRecord(record.partition, record.offset + data.draw(st.integers(1, 9)), record.value)
    findings = run.history.check([moved if each == record else each for each in run.log])
    assert [(each.kind, each.send, each.offset) for each in findings] == [
        (Kind.OTHER_OFFSET, send, record.offset)
    ]


@given(RUNS, st.data())
def test_two_values_at_one_offset_are_found(run: Run, data: st.DataObject) -> None:
    assume(run.log)
    record = data.draw(st.sampled_from(run.log))
    other = LogRecord(record.partition, record.offset, record.value + b"?")
    assert kinds(run, [*run.log, other]) == [Kind.TWO_VALUES]


@given(RUNS, st.integers(0, 2))
def test_record_that_nobody_sent_is_found(run: Run, partition: int) -> None:
    phantom = LogRecord(partition, run.end(partition), b"never sent")
    (finding,) = run.history.check([*run.log, phantom])
    assert (finding.kind, finding.send, finding.offset) == (Kind.PHANTOM, None, phantom.offset)


@given(RUNS, st.data())
def test_record_in_another_partition_than_it_was_sent_to_is_found(run: Run, data: st.DataObject) -> None:
    assume(run.written)
    send, record = data.draw(st.sampled_from(run.written))
    there = (record.partition + 1) % 3
    stray = LogRecord(there, run.end(there), record.value)
    (finding,) = run.history.check([*run.log, stray])
    assert (finding.kind, finding.send, finding.partition) == (Kind.PHANTOM, send, there)


@given(RUNS, st.data())
def test_record_that_was_called_not_persisted_is_found_in_the_log(run: Run, data: st.DataObject) -> None:
    assume(run.not_persisted)
    send, partition, value = data.draw(st.sampled_from(run.not_persisted))
    findings = run.history.check([*run.log, LogRecord(partition, run.end(partition), value)])
    assert Kind.NOT_PERSISTED_FOUND in {each.kind for each in findings if each.send == send}
    # The record is at the end of the log, so it also follows records that its producer sent later.
    assert {each.kind for each in findings} <= {Kind.NOT_PERSISTED_FOUND, Kind.REORDERED}


@given(RUNS)
def test_send_without_an_outcome_is_found(run: Run) -> None:
    send = run.history.sent("z", 0, 0, b"waits")
    (finding,) = run.history.check(run.log)
    assert (finding.kind, finding.send) == (Kind.UNRESOLVED, send)


@given(RUNS, st.data())
def test_send_with_two_outcomes_is_found(run: Run, data: st.DataObject) -> None:
    assume(run.acknowledged)
    send, record = data.draw(st.sampled_from(run.acknowledged))
    if data.draw(st.booleans()):
        run.history.acknowledged(send, record.offset)
    else:
        run.history.failed(send, possibly_persisted=True)
    (finding,) = run.history.check(run.log)
    assert (finding.kind, finding.send) == (Kind.TWO_OUTCOMES, send)


def test_finding_is_a_sentence_with_its_place() -> None:
    history = History()
    send = history.sent("p", 3, 17, b"v")
    history.acknowledged(send, 40)
    (finding,) = history.check([])
    assert str(finding) == "partition 3: p#17 was acknowledged at offset 40 and is not in the log"


def test_value_that_is_sent_twice_is_refused() -> None:
    history = History()
    history.sent("p", 0, 0, b"v")
    with pytest.raises(AssertionError, match="twice"):
        history.sent("p", 0, 1, b"v")
    with pytest.raises(AssertionError, match="twice"):
        history.sent("p", 0, 0, b"w")


def test_partition_ends_behind_the_last_offset_that_was_told() -> None:
    history = History()
    for number, acknowledged in enumerate((7, 9, 8, None)):
        history.acknowledged(history.sent("p", 3, number, b"%d" % number), acknowledged)
    history.failed(history.sent("p", 4, 4, b"failed"), possibly_persisted=True)
    assert history.ends() == {3: 10}
