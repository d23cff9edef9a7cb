"""Check that resident memory stays flat, and below the fetch settings plus 64 MiB, while consuming.

    python bench/macro/memory.py                           # 10 GB from Apache Kafka, by poll()
    python bench/macro/memory.py --arrow --gigabytes 2     # by poll_arrow()
    python bench/macro/memory.py --embedded --small        # only checks that it still runs

A child process reads a topic of up to 1 GB repeatedly and samples its own memory after every 200 MB. It
checks that each pass returns every record once, at offsets without a gap.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from setting import add_broker, broker

from kafkacore.bench.children import Worker
from kafkacore.bench.cluster import BenchCluster
from kafkacore.bench.meter import MIB, Meter
from kafkacore.bench.options import OURS, BenchOptions
from kafkacore.bench.sequence import distinct_count, write_values
from kafkacore.bench.settings import producer_settings
from kafkacore.bench.task import Task
from kafkacore.consumer import KafkaConsumer
from kafkacore.process_statistics import resident_bytes
from kafkacore.structs import TopicPartition

SIZE = 1_000
PARTITIONS = 4
TOPIC_BYTES = 10**9
LOOK_BYTES = 200 * 10**6
ALLOWED_OVER_FETCH_MIB = 64
FETCH = {"fetch_max_bytes": 50 << 20, "max_partition_fetch_bytes": 4 << 20}


def consume(bootstrap: str, topic: str, total: int, by_arrow: bool) -> dict[str, Any]:
    """Read ``total`` bytes of values, repeating the topic as often as needed. Runs in the child process."""
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    looks: list[float] = []
    read, next_look = 0, LOOK_BYTES
    with KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", max_poll_records=10_000, **FETCH
    ) as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        each_pass = sum(ends.values())
        meter = Meter()
        while read < total:
            consumer.seek_to_beginning()
            count = 0
            while count < each_pass:
                got = rows(consumer, by_arrow)
                count += got
                read += got * SIZE
                if read >= next_look:
                    looks.append(resident_bytes() / MIB)
                    next_look += LOOK_BYTES
            if count != each_pass or any(consumer.position(one) != ends[one] for one in partitions):
                raise SystemExit(f"invalid run: a pass returned {count:,} of {each_pass:,} records")
    return meter.stop() | {"bytes": read, "looks_mib": looks}


def rows(consumer: KafkaConsumer, by_arrow: bool) -> int:
    """Return the number of records that one poll returned, after reading each value."""
    if by_arrow:
        return sum(columns.num_rows for columns in consumer.poll_arrow(1_000).values())
    found = consumer.poll(1_000)
    return sum(len(record.value) for records in found.values() for record in records) // SIZE


def fill(cluster: BenchCluster, folder: Path, total: int) -> str:
    """Create a topic with ``total`` bytes of values."""
    topic = cluster.create_topic(PARTITIONS)
    count = total // SIZE
    distinct = distinct_count(count, SIZE)
    write_values(folder / "values", distinct, SIZE, 0.5)
    settings = producer_settings(OURS, BenchOptions(), cluster.bootstrap, "none")
    values = str(folder / "values")
    task = Task(
        "produce", OURS, topic, PARTITIONS, count, SIZE, settings, values_file=values, warm_up_records=0
    )
    with Worker([sys.executable, "-m", "kafkacore.bench.worker", task.to_json()], 600) as worker:
        worker.answer()
    return topic


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_broker(parser)
    parser.add_argument("--gigabytes", type=float, default=10.0, help="gigabytes to read (default: 10)")
    parser.add_argument("--arrow", action="store_true", help="read with poll_arrow instead of poll")
    parser.add_argument("--output", type=Path, metavar="FILE.json")
    parser.add_argument("--child", metavar="TOPIC", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    total = 2 * 10**6 if arguments.small else int(arguments.gigabytes * 1e9)
    if arguments.child:
        print(json.dumps(consume(arguments.bootstrap, arguments.child, total, arguments.arrow)))
        return 0
    with (
        tempfile.TemporaryDirectory() as folder,
        broker(arguments) as where,
        BenchCluster(where.bootstrap, print) as cluster,
    ):
        topic = fill(cluster, Path(folder), min(total // 2, TOPIC_BYTES))
        command = [sys.executable, __file__, "--child", topic, "--bootstrap", cluster.bootstrap]
        command += ["--gigabytes", str(total / 1e9), *(["--arrow"] if arguments.arrow else [])]
        with Worker(command, 3_600) as worker:
            used = worker.answer()
    return show(used, arguments)


def show(used: dict[str, Any], arguments: argparse.Namespace) -> int:
    """Print the result, and return 1 if the memory grew by more than allowed."""
    grown = used["peak_rss_mib"] - used["start_rss_mib"]
    allowed = FETCH["fetch_max_bytes"] / MIB + ALLOWED_OVER_FETCH_MIB
    looks = used["looks_mib"] or [used["peak_rss_mib"]]
    how = "poll_arrow()" if arguments.arrow else "poll()"
    print(f"{used['bytes'] / 1e9:.1f} GB by {how}: memory grew by {grown:.0f} MiB, {allowed:.0f} allowed")
    print(
        f"resident after each {LOOK_BYTES / 1e6:.0f} MB: {min(looks):.0f} to {max(looks):.0f} MiB, "
        f"at the end {looks[-1]:.0f}"
    )
    if arguments.output:
        arguments.output.write_text(json.dumps(used | {"grown_mib": grown, "allowed_mib": allowed}) + "\n")
    return 0 if grown <= allowed else 1


if __name__ == "__main__":
    sys.exit(main())
