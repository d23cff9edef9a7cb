"""The checker of long runs, with logs that break each guarantee."""

from __future__ import annotations

import pytest
from model.kill_ledger import KillLedger, value_of

COUNT = 6


def ledger_and_log() -> tuple[KillLedger, list[tuple[int, int, bytes]]]:
    """Return a ledger and a correct log: two producers alternate in writing to partition 0."""
    ledger = KillLedger()
    log = []
    for offset in range(2 * COUNT):
        producer = offset % 2
        number = ledger.sent(producer, 0)
        if offset == 4:
            ledger.killed()
        ledger.acknowledge(producer, 0, number, offset)
        log.append((0, offset, value_of(producer, 0, number)))
    return ledger, log


def test_kept_word_is_no_finding() -> None:
    ledger, log = ledger_and_log()
    ledger.saw(0, 3, log[3][2])
    assert ledger.check(log, {0: len(log)}) == []


def numbered(values: list[bytes]) -> list[tuple[int, int, bytes]]:
    return [(0, offset, value) for offset, value in enumerate(values)]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("lost at the end", "are lost"),
        ("lost between", "are lost, acknowledged at 5 to 5"),
        ("doubled", "is there again"),
        ("swapped", "comes after"),
        ("foreign", "no producer sent"),
        ("gap", "comes after"),
        ("two values", "another value for a consumer"),
        ("not read to the end", "was read up to"),
        ("acknowledged twice", "has the outcomes 4 and 77"),
        ("without an outcome", "have no outcome"),
    ],
)
def test_broken_word_is_found(what: str, said: str) -> None:
    ledger, log = ledger_and_log()
    values = [value for _, _, value in log]
    end = None
    if what == "lost at the end":
        values = values[:-1]
    elif what == "lost between":
        del values[5]
    elif what == "doubled":
        values.append(values[7])
    elif what == "swapped":
        values[4], values[6] = values[6], values[4]
    elif what == "foreign":
        values[5] = b"foreign"
    elif what == "two values":
        ledger.saw(0, 5, b"other")
    elif what == "acknowledged twice":
        ledger.acknowledge(0, 0, 2, 77)
    elif what == "without an outcome":
        ledger.sent(0, 0)
        values.append(value_of(0, 0, COUNT))
    elif what == "not read to the end":
        end = len(values) + 1
    log = numbered(values)
    if what == "gap":
        log = [(partition, offset + (offset > 5), value) for partition, offset, value in log]
    findings = ledger.check(log, {0: len(log) if end is None else end})
    assert any(said in finding.text for finding in findings), findings


def test_without_idempotence_only_what_was_in_flight_at_a_kill_may_be_doubled() -> None:
    for number, allowed in ((2, True), (3, False)):
        ledger, log = ledger_and_log()
        values = [value for _, _, value in log]
        values.insert(2 * number + 1, value_of(0, 0, number))
        doubled = 2 * number + 1
        for line, offsets in ledger.outcomes.items():
            for index, offset in enumerate(offsets):
                offsets[index] = offset + (offset >= doubled)
            assert line in ((0, 0), (1, 0))
        log = numbered(values)
        assert (ledger.check(log, {0: len(log)}, idempotent=False) == []) is allowed


def log_without(ledger: KillLedger, partition: int, missing: set[int]) -> list[tuple[int, int, bytes]]:
    count = len(ledger.outcomes[0, partition])
    kept = [value_of(0, partition, number) for number in range(count) if number not in missing]
    return [(partition, offset, value) for offset, value in enumerate(kept)]


def test_send_that_its_producer_gave_up_may_be_in_the_log_or_not() -> None:
    for missing in ({2, 3}, {2}, set[int]()):
        ledger = KillLedger()
        offset = 0
        for number in range(5):
            assert ledger.sent(0, 0) == number
            if number in (2, 3):
                ledger.give_up(0, 0, number)
            else:
                ledger.acknowledge(0, 0, number, offset)
            offset += number not in missing
        log = log_without(ledger, 0, missing)
        assert ledger.check(log, {0: len(log)}) == []
        assert ledger.given_up == 2


def test_send_that_was_given_up_is_doubled_or_late_all_the_same() -> None:
    for order, said in (([0, 1, 1, 2], "is there again"), ([0, 2, 1], "comes after #2")):
        ledger = KillLedger()
        for number in range(3):
            ledger.sent(0, 0)
            if number == 1:
                ledger.give_up(0, 0, number)
            else:
                ledger.acknowledge(0, 0, number, order.index(number))
        log = numbered([value_of(0, 0, number) for number in order])
        (finding,) = ledger.check(log, {0: len(log)})
        assert said in finding.text


def test_finding_tells_the_client_and_the_kill_before_it() -> None:
    ledger = KillLedger({0: "ours"})
    for number in range(6):
        ledger.sent(0, 0)
        ledger.acknowledge(0, 0, number, number)
        if number in (1, 3):
            ledger.killed()
    findings = ledger.check(log_without(ledger, 0, {2, 3, 5}), {0: 3})
    assert [str(finding) for finding in findings if "lost" in finding.text] == [
        "after 1 kills, ours: 0#2 to #3 are lost, acknowledged at 2 to 3",
        "after 2 kills, ours: 0#5 to #5 are lost, acknowledged at 5 to 5",
    ]


def test_failed_send_is_a_finding_with_what_the_client_said() -> None:
    ledger = KillLedger({0: "theirs"})
    ledger.sent(0, 0)
    ledger.fail(0, 0, 0, "_TRANSPORT")
    assert [str(one) for one in ledger.check([], {0: 0})] == ["after 0 kills, theirs: 0#0 failed: _TRANSPORT"]
