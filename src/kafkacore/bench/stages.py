"""Compute how long records spend in each stage of a producer and a consumer, from the stamps of a trace.

Both processes trace themselves (``kafkacore.wire._trace``), and their clock is the same. Stamps do not name
records. But a topic with one partition keeps the order of records, batches and requests, so that counting is
enough: the third batch is in the third produce request and contains the records after those of the second.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from kafkacore.bench.pacing import percentiles
from kafkacore.bench.task import StageFigures
from kafkacore.errors import KafkaError
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.wire._trace import STAGES

#: Stages that are common to both paths, by the event that ends them. The first begins when a record is due.
_SENDING = ("send() called", "batch sealed", "request written")
ACKNOWLEDGED = (*_SENDING, "producer's wait ended", "response read", "future completed")
RECEIVED = (
    *_SENDING,
    "consumer's fetch at the broker",
    "consumer's wait ended",
    "response read",
    "next fetch written",
    "records returned",
)
_API_KEY_SHIFT = 48
_CORRELATION_ID = 0xFFFF_FFFF
#: Stamps for each record in one process, and spare ones for connecting and for waits without a result.
_STAMPS_PER_RECORD = 8
_SPARE_STAMPS = 100_000


class StagesError(KafkaError):
    """The stamps do not fit the records, for example because a batch was retried."""


class TraceStage(IntEnum):
    """Stage that a client has reached, as in ``wire/_trace.pxd``."""

    SEND_CALLED = STAGES["SEND_CALLED"]
    BATCH_SEALED = STAGES["BATCH_SEALED"]
    REQUEST_WRITTEN = STAGES["REQUEST_WRITTEN"]
    WAIT_ENDED = STAGES["WAIT_ENDED"]
    RESPONSE_READ = STAGES["RESPONSE_READ"]
    BATCH_COMPLETED = STAGES["BATCH_COMPLETED"]


class Stamp(NamedTuple):
    """A stage that was reached, with the time in ns and the number that ``wire._trace`` describes."""

    stage: int
    at_ns: int
    number: int


class _Answered(NamedTuple):
    """Times of a request: written, the wait for the response ended, and the response was read."""

    written_ns: int
    wait_ended_ns: int
    read_ns: int


def capacity(records: int) -> int:
    """Return the number of stamps that a process needs for this number of records."""
    return records * _STAMPS_PER_RECORD + _SPARE_STAMPS


def write_stamps(file: Path, stamps: Iterable[tuple[int, int, int]]) -> None:
    """Write stamps to a file."""
    with file.open("wb") as opened:
        array("q", [value for stamp in stamps for value in stamp]).tofile(opened)


def read_stamps(file: Path) -> list[Stamp]:
    """Read the stamps of :func:`write_stamps`."""
    values = array("q", file.read_bytes())
    return list(map(Stamp, values[::3], values[1::3], values[2::3]))


def _answered(stamps: Sequence[Stamp], api_key: int) -> Iterator[_Answered]:
    """Yield the answered requests of an API in the order of their responses."""
    written: dict[int, int] = {}
    wait_ended_ns = 0
    for stage, at_ns, number in stamps:
        if stage == TraceStage.REQUEST_WRITTEN:
            if number >> _API_KEY_SHIFT == api_key:
                written[number & _CORRELATION_ID] = at_ns
        elif stage == TraceStage.WAIT_ENDED:
            wait_ended_ns = at_ns
        elif stage == TraceStage.RESPONSE_READ and number in written:
            yield _Answered(written.pop(number), wait_ended_ns, at_ns)


def _times(stamps: Sequence[Stamp], stage: TraceStage) -> list[int]:
    return [stamp.at_ns for stamp in stamps if stamp.stage == stage]


def sent_records(stamps: Sequence[Stamp]) -> list[tuple[int, ...]]:
    """Return the times of each record at the ends of the stages :data:`ACKNOWLEDGED`, in ns.

    Raises
    ------
    StagesError
        Records, batches and requests do not fit together.
    """
    sent = _times(stamps, TraceStage.SEND_CALLED)
    sealed = [stamp for stamp in stamps if stamp.stage == TraceStage.BATCH_SEALED]
    answered = list(_answered(stamps, ProduceRequest.API_KEY))
    completed = _times(stamps, TraceStage.BATCH_COMPLETED)
    count = sum(stamp.number for stamp in sealed)
    if count != len(sent) or not len(sealed) == len(answered) == len(completed):
        raise StagesError(
            f"{len(sent)} records were sent, but {count} are in {len(sealed)} batches, {len(answered)} "
            f"answered requests and {len(completed)} results: stages are unknown if a batch is retried"
        )
    found: list[tuple[int, ...]] = []
    at = 0
    for batch, request, completed_ns in zip(sealed, answered, completed, strict=True):
        for sent_ns in sent[at : at + batch.number]:
            found.append((sent_ns, batch.at_ns, *request, completed_ns))
        at += batch.number
    return found


def received_records(stamps: Sequence[Stamp], returned: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the times of each record at the ends of the stages of a consumer, in ns.

    Parameters
    ----------
    stamps:
        Stamps of the consumer.
    returned:
        Time at which each record was returned, in ns.

    Raises
    ------
    StagesError
        A record was returned before a response was read.
    """
    answered = list(_answered(stamps, FetchRequest.API_KEY))
    read = [request.read_ns for request in answered]
    written = [
        stamp.at_ns
        for stamp in stamps
        if stamp.stage == TraceStage.REQUEST_WRITTEN
        and stamp.number >> _API_KEY_SHIFT == FetchRequest.API_KEY
    ]
    found: list[tuple[int, ...]] = []
    for returned_ns in returned:
        # A response is returned before the next one is read.
        at = bisect_right(read, returned_ns) - 1
        if at < 0:
            raise StagesError("a record was returned before the response to any fetch was read")
        request = answered[at]
        after = bisect_right(written, request.read_ns)
        # Without a next fetch before the records were returned, this stage takes no time.
        next_ns = min(written[after], returned_ns) if after < len(written) else returned_ns
        found.append((*request, next_ns, returned_ns))
    return found


def figures(
    due: Sequence[float], sent: Sequence[tuple[int, ...]], received: Sequence[tuple[int, ...]]
) -> StageFigures:
    """Return the figures of both paths.

    Parameters
    ----------
    due:
        Time at which each record was due, in ns.
    sent, received:
        Times of the same records, from :func:`sent_records` and :func:`received_records`.
    """
    # Until its request was written, a record takes the same way on both paths.
    sending = len(_SENDING)
    through = [(*first[:sending], *second) for first, second in zip(sent, received, strict=True)]
    return {
        "acknowledged": _summary(ACKNOWLEDGED, due, sent),
        "received": _summary(RECEIVED, due, through),
    }


def _summary(
    names: Sequence[str], due: Sequence[float], times: Sequence[tuple[int, ...]]
) -> dict[str, dict[str, float]]:
    """Return the figures of each stage, and those of ``total``."""
    taken: list[list[float]] = []
    for due_ns, ends in zip(due, times, strict=True):
        # A stamp follows its event. So another thread or process may stamp a later event first, and a fetch
        # may wait at the broker before the record arrives. Such a stage takes no time.
        ordered = accumulate((due_ns, *ends), max)
        taken.append([(end - begin) / 1000 for begin, end in pairwise(ordered)])
    taken.sort(key=sum)
    count = len(taken)
    middle = taken[count * 9 // 20 : max(count * 11 // 20, count * 9 // 20 + 1)]
    slowest = taken[-max(count // 100, 1) :]
    found = {}
    for name, of in [*((name, at) for at, name in enumerate(names)), ("total", None)]:
        values, typical, late = (
            [sum(one) if of is None else one[of] for one in part] for part in (taken, middle, slowest)
        )
        ranked = percentiles(values)
        found[name] = {
            "p50": ranked["p50"],
            "p99": ranked["p99"],
            "typical": sum(typical) / len(typical),
            "slowest": sum(late) / len(late),
        }
    return found
