"""Result of a benchmark: figures per round, and their medians and spreads.

The format is schema 1, which is described in ``bench/README.md``.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from kafkacore.bench.machine import Machine
from kafkacore.bench.task import Answer, ClientSettings, StageFigures

SCHEMA = 1
MEGA = 1e6

FigureName = Literal[
    "records_per_s",
    "mb_per_s",
    "cpu_s_per_million",
    "peak_rss_mib",
    "broker_cpu_s_per_million",
    "producer_cpu_s_per_million",
    "consumer_cpu_s_per_million",
    "jvm_cpu_s_per_million",
    "python_cpu_s_per_million",
    "worker_peak_mib",
    "ms_per_batch",
    "cpu_ms_per_batch",
]
#: Figure → whether a higher value is better. A result has the median and the spread of each figure.
FIGURES: dict[FigureName, bool] = {
    "records_per_s": True,
    "mb_per_s": True,
    "cpu_s_per_million": False,
    "peak_rss_mib": False,
    "broker_cpu_s_per_million": False,
    # Only for round trips: the two processes' parts of cpu_s_per_million.
    "producer_cpu_s_per_million": False,
    "consumer_cpu_s_per_million": False,
    # Only for Spark: the JVM's and the Python workers' parts of cpu_s_per_million.
    "jvm_cpu_s_per_million": False,
    "python_cpu_s_per_million": False,
    "worker_peak_mib": False,
    # Only in the Spark benchmark with two rows per trigger, which does not measure records per second.
    "ms_per_batch": False,
    "cpu_ms_per_batch": False,
}
#: Latencies by percentile: until the reception or, without a receiver, the acknowledgement; and until the
#: acknowledgement of a record that is received as well.
LATENCIES: tuple[Literal["latency_ms", "acknowledged_ms"], ...] = ("latency_ms", "acknowledged_ms")


@dataclass(frozen=True)
class Case:
    """A measurement that is the same for all contestants, which are clients, brokers or Spark sources."""

    #: Mode such as ``produce``, ``arrow-consume``, ``roundtrip``, ``broker-produce`` or ``spark-read``.
    mode: str
    codec: str
    partitions: int
    records: int
    size: int
    rate: float | None = None

    @property
    def title(self) -> str:
        """Title for tables and charts."""
        plural = "" if self.partitions == 1 else "s"
        paced = f", {self.rate:,.0f} per second" if self.rate else ""
        codec = "no compression" if self.codec == "none" else self.codec
        return (
            f"{self.mode}, {codec}, {self.partitions} partition{plural}: "
            f"{self.records:,} records of {self.size} bytes{paced}"
        )


class Figures(TypedDict, total=False):
    """Figures of one round, or their medians over all rounds.

    A failed round has only ``void``. Medians exist for the :data:`FIGURES` that all rounds have, and for the
    latency percentiles.
    """

    records_per_s: float
    mb_per_s: float
    cpu_s_per_million: float
    peak_rss_mib: float
    broker_cpu_s_per_million: float
    producer_cpu_s_per_million: float
    consumer_cpu_s_per_million: float
    jvm_cpu_s_per_million: float
    python_cpu_s_per_million: float
    worker_peak_mib: float
    ms_per_batch: float
    cpu_ms_per_batch: float
    latency_ms: dict[str, float]
    #: Latency until the acknowledgement, for round trips. ``latency_ms`` is that until the reception.
    acknowledged_ms: dict[str, float]
    stages_us: StageFigures
    # The following fields exist only in the figures of a round.
    seconds: float
    cpu_s: float
    start_rss_mib: float
    batches: int
    #: Reason why the round does not count.
    void: str | None


class Entry(TypedDict):
    """Summary of the rounds of one contestant in a case."""

    mode: str
    codec: str
    partitions: int
    records: int
    size: int
    rate: float | None
    peer: str
    settings: ClientSettings
    rounds: list[Figures]
    median: Figures
    #: Minimum and maximum of each figure over the rounds.
    spread: dict[FigureName, list[float]]
    #: Figure, ``latency_<percentile>`` or ``acknowledged_<percentile>`` → factor by which the first client
    #: is better.
    advantage: dict[str, float]
    void: str | None


class Result(TypedDict):
    """Result of a benchmark: its entries, and the environment in which they were measured."""

    schema: int
    command: str
    started_ms: int
    machine: Machine
    versions: dict[str, str]
    broker: str
    options: dict[str, object]
    #: Clients or rows of the Spark benchmark that could not be measured, and the reason.
    missing: dict[str, str]
    results: list[Entry]
    #: Whether any entry is void.
    void: bool


@dataclass
class Standing:
    """A contestant in a case, with the figures of its rounds."""

    name: str
    settings: ClientSettings
    rounds: list[Figures] = field(default_factory=list)


def round_figures(case: Case, used: Answer, broker_cpu_s: float | None) -> Figures:
    """Compute the figures of a round.

    Parameters
    ----------
    case:
        The measurement.
    used:
        Answer of the worker.
    broker_cpu_s:
        CPU seconds of the broker while the worker ran; ``None`` if unknown.
    """
    if "seconds" not in used:
        return {"void": used["void"]}
    records, seconds = used["records"], max(used["seconds"], 1e-9)
    figures: Figures = {
        "seconds": used["seconds"],
        "cpu_s": used["cpu_s"],
        "records_per_s": records / seconds,
        "mb_per_s": records * case.size / MEGA / seconds,
        "cpu_s_per_million": used["cpu_s"] / records * MEGA,
        "start_rss_mib": used["start_rss_mib"],
        "peak_rss_mib": used["peak_rss_mib"],
        "void": used.get("void"),
    }
    if broker_cpu_s is not None:
        figures["broker_cpu_s_per_million"] = broker_cpu_s / records * MEGA
    if used.get("latency_ms"):
        figures["latency_ms"] = used["latency_ms"]
    if "acknowledged_ms" in used:
        figures["acknowledged_ms"] = used["acknowledged_ms"]
        figures["producer_cpu_s_per_million"] = used["producer_cpu_s"] / records * MEGA
        figures["consumer_cpu_s_per_million"] = used["consumer_cpu_s"] / records * MEGA
    if "stages_us" in used:
        figures["stages_us"] = used["stages_us"]
    return figures


def summarize(case: Case, standings: Sequence[Standing]) -> list[Entry]:
    """Return an entry for each contestant.

    Void rounds are left out of the medians and spreads. A contestant with a void round is void.
    """
    medians = [_medians(standing.rounds) for standing in standings]
    found: list[Entry] = []
    for standing, median in zip(standings, medians, strict=True):
        void = [reason for done in standing.rounds if (reason := done.get("void"))]
        entry: Entry = {
            "mode": case.mode,
            "codec": case.codec,
            "partitions": case.partitions,
            "records": case.records,
            "size": case.size,
            "rate": case.rate,
            "peer": standing.name,
            "settings": standing.settings,
            "rounds": standing.rounds,
            "median": median,
            "spread": _spreads(standing.rounds),
            "advantage": _advantage(medians[0], median),
            "void": "; ".join(dict.fromkeys(void)) or None,
        }
        found.append(entry)
    return found


def _good(rounds: Sequence[Figures]) -> list[Figures]:
    return [done for done in rounds if not done.get("void")]


def _medians(rounds: Sequence[Figures]) -> Figures:
    good = _good(rounds)
    found: Figures = {}
    for name in FIGURES:
        if good and all(name in done for done in good):
            found[name] = statistics.median(done[name] for done in good)
    for kind in LATENCIES:
        if good and all(kind in done for done in good):
            found[kind] = {
                name: statistics.median(done[kind][name] for done in good) for name in good[0][kind]
            }
    if good and all("stages_us" in done for done in good):
        found["stages_us"] = {
            path: {
                stage: {
                    name: statistics.median(done["stages_us"][path][stage][name] for done in good)
                    for name in names
                }
                for stage, names in stages.items()
            }
            for path, stages in good[0]["stages_us"].items()
        }
    return found


def _spreads(rounds: Sequence[Figures]) -> dict[FigureName, list[float]]:
    good = _good(rounds)
    return {
        name: [min(done[name] for done in good), max(done[name] for done in good)]
        for name in FIGURES
        if good and all(name in done for done in good)
    }


def _advantage(first: Figures, other: Figures) -> dict[str, float]:
    """Return the factor by which the first contestant is better, for each figure."""
    found: dict[str, float] = {}
    for name, more_is_better in FIGURES.items():
        one, two = first.get(name), other.get(name)
        if one and two:
            found[name] = one / two if more_is_better else two / one
    for kind in LATENCIES:
        for percentile, latency in first.get(kind, {}).items():
            if latency > 0 and other.get(kind):
                found[f"{kind.removesuffix('_ms')}_{percentile}"] = other[kind][percentile] / latency
    return found


def whole_result(
    command: str,
    started_ms: int,
    machine: Machine,
    versions: dict[str, str],
    broker: str,
    options: dict[str, object],
    missing: dict[str, str],
    results: list[Entry],
) -> Result:
    """Return a result of schema 1."""
    return {
        "schema": SCHEMA,
        "command": command,
        "started_ms": started_ms,
        "machine": machine,
        "versions": versions,
        "broker": broker,
        "options": options,
        "missing": missing,
        "results": results,
        "void": any(entry["void"] for entry in results),
    }
