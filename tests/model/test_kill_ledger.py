"""The judge of long runs, told logs with every broken promise."""

from __future__ import annotations

import pytest
from model.kill_ledger import KillLedger, value_of

COUNT = 6


def told() -> tuple[KillLedger, list[tuple[int, int, bytes]]]:
    """Two producers write in turns to partition 0; what was acknowledged, and the log that kept the word."""
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
    ledger, log = told()
    ledger.saw(0, 3, log[3][2])
    assert ledger.check(log, {0: len(log)}) == []


def numbered(values: list[bytes]) -> list[tuple[int, int, bytes]]:
    return [(0, offset, value) for offset, value in enumerate(values)]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("lost at the end", "is lost"),
        ("lost between", "comes before"),
        ("doubled", "is there again"),
        ("swapped", "comes before"),
        ("foreign", "nobody sent"),
        ("gap", "comes after"),
        ("two values", "another value for a consumer"),
        ("not read to the end", "was read up to"),
        ("acknowledged twice", "was acknowledged at"),
        ("without an outcome", "has no outcome"),
    ],
)
def test_broken_word_is_found(what: str, said: str) -> None:
    ledger, log = told()
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
    assert any(said in finding for finding in findings), findings


def test_without_idempotence_only_what_was_in_flight_at_a_kill_may_be_doubled() -> None:
    for number, allowed in ((2, True), (3, False)):
        ledger, log = told()
        values = [value for _, _, value in log]
        values.insert(2 * number + 1, value_of(0, 0, number))
        doubled = 2 * number + 1
        for line, offsets in ledger.told.items():
            for index, offset in enumerate(offsets):
                offsets[index] = offset + (offset >= doubled)
            assert line in ((0, 0), (1, 0))
        log = numbered(values)
        assert (ledger.check(log, {0: len(log)}, idempotent=False) == []) is allowed
