"""Measure whether the CPU time per record of `KafkaProducer.send` stays constant.

    python bench/macro/flatness.py                         # against Apache Kafka
    python bench/macro/flatness.py --embedded --small      # only checks that it still runs

There are three series: 10³ to 10⁷ records; a topic of 1 to 1,000 partitions; and 1 to 10,000 partitions in
the metadata, of which one is written to. Small numbers of records are sent repeatedly, with a flush after
each repetition, so that there is enough to measure. Each figure is given relative to the median of its
series.

The cost of a flush does not depend on the number of records it waits for: it is one request, and the threads
wake each other. It is measured by repetitions of one record, reported separately, and subtracted from the
first series. The first series therefore shows the cost of each further record.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setting import add_broker, broker

from kafkacore.bench.children import Worker
from kafkacore.bench.cluster import BenchCluster
from kafkacore.bench.options import OURS, BenchOptions
from kafkacore.bench.sequence import distinct_count, write_values
from kafkacore.bench.settings import producer_settings
from kafkacore.bench.task import Task
from kafkacore.bench.verify import read_back

SIZE = 100
#: Minimum number of records of one measurement, over all its repetitions.
AT_LEAST = 1_000_000
WARM_UP = 20_000
#: Name of the series with a single point, and its number of flushes.
FLUSH = "flush, with its one record"
FLUSHES = 5_000
#: Number of partitions of each topic that is only in the metadata.
KNOWN_EACH = 1_000


@dataclass(frozen=True)
class Point:
    series: str
    at: int
    records: int
    flushes: int = 1
    partitions: int = 1
    #: Number of further topics in the client's metadata, each with :data:`KNOWN_EACH` partitions.
    known_topics: int = 0


def points(most: int, small: bool) -> Iterator[Point]:
    """Return the points to measure, with up to ``most`` records in the first series."""
    each = 2_000 if small else AT_LEAST
    yield Point(FLUSH, 1, 1, flushes=20 if small else FLUSHES)
    count = 1_000
    while count <= most:
        yield Point("records", count, count, flushes=max(1, each // count))
        count *= 10
    for partitions in (1, 10) if small else (1, 10, 100, 1_000):
        yield Point("partitions written", partitions, each, partitions=partitions)
    for topics in (0,) if small else (0, 1, 10):
        yield Point("partitions known", 1 + topics * KNOWN_EACH, each, known_topics=topics)


def measure(point: Point, cluster: BenchCluster, folder: Path, others: list[str]) -> float:
    """Return the CPU time of the client in microseconds per record."""
    distinct = distinct_count(point.records, SIZE)
    values = folder / f"values-{distinct}"
    if not values.exists():
        write_values(values, distinct, SIZE, 0.5)
    while len(others) < point.known_topics:
        others.append(cluster.create_topic(KNOWN_EACH))
    topic = cluster.create_topic(point.partitions)
    records = point.records * point.flushes
    task = Task(
        role="produce",
        peer=OURS,
        topic=topic,
        partitions=point.partitions,
        records=records,
        size=SIZE,
        settings=producer_settings(OURS, BenchOptions(), cluster.bootstrap, "none"),
        values_file=str(values),
        other_topics=tuple(others[: point.known_topics]),
        warm_up_records=WARM_UP,
        flushes=point.flushes,
    )
    with Worker([sys.executable, "-m", "kafkacore.bench.worker", task.to_json()], 600) as worker:
        used = worker.answer()
    verdict = read_back(cluster.bootstrap, topic, point.partitions, SIZE, records, distinct, WARM_UP)
    if verdict.reason:
        raise SystemExit(f"void: {point}: {verdict.reason}")
    cluster.delete_topic(topic)
    return float(used["cpu_s"] / records * 1e6)


def without_flush(point: Point, cost_us: float, flush_us: float) -> float:
    """Return the cost of each record after the first one, whose cost is part of the flush's."""
    if point.series == FLUSH:
        return cost_us
    return (cost_us * point.records - flush_us) / (point.records - 1)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_broker(parser)
    parser.add_argument("--most", type=int, default=10_000_000, help="number of records of the longest run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, metavar="FILE.json")
    arguments = parser.parse_args()
    plan = list(points(1_000 if arguments.small else arguments.most, arguments.small))
    rounds = 1 if arguments.small else arguments.rounds
    costs: dict[Point, list[float]] = {point: [] for point in plan}
    others: list[str] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        broker(arguments) as where,
        BenchCluster(where.bootstrap, print) as cluster,
    ):
        for _ in range(rounds):
            for point in plan:
                costs[point].append(measure(point, cluster, Path(folder), others))
    found = []
    flush_us = statistics.median(costs[plan[0]])
    for series in dict.fromkeys(point.series for point in plan):
        medians = {p: statistics.median(c) for p, c in costs.items() if p.series == series}
        found += show(series, {p.at: without_flush(p, cost, flush_us) for p, cost in medians.items()})
    if arguments.output:
        arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def show(series: str, costs: dict[int, float]) -> list[dict[str, Any]]:
    """Print the series and return it with each cost's deviation from the median in per cent."""
    middle = statistics.median(costs.values())
    print(f"{series}: CPU µs per record")
    found = []
    for at, cost in costs.items():
        off = (cost / middle - 1) * 100
        print(f"  {at:>12,}  {cost:7.3f}  {off:+6.1f} %")
        found.append({"series": series, "at": at, "cpu_us": cost, "off_percent": off})
    return found


if __name__ == "__main__":
    sys.exit(main())
