"""Compare the embedded broker with Apache Kafka: throughput, latency, start-up time and memory.

    python bench/macro/broker.py                       # about twenty minutes; needs Java
    python bench/macro/broker.py --rounds 1 --rows rate,latency
    python bench/macro/broker.py --small --results out --pages ''   # only checks that it still runs

The results are tables of docs/measured. Both brokers run throughout, the embedded one with `flush=os` and
Apache Kafka with its default settings. The clients are Kafka's `ProducerPerformance` and
`ConsumerPerformance`, run against each broker in turn. CPU time is that of the broker's process alone. The
result is written to a separate file, `bench/results/<date>-<short sha>-broker.json`.
"""

from __future__ import annotations

import contextlib
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from setting import PROJECT

from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.process_statistics import process_cpu_seconds
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest
from kafkacore.testing import EmbeddedBroker

sys.path[:0] = [str(PROJECT / "bench"), str(PROJECT / "tests" / "support")]

import report  # noqa: E402 - in the folder above
from measurement import Measurement, parser_of  # noqa: E402
from model.raw_line import Line  # noqa: E402
from peers.apache_kafka import started_in_scratch_folder  # noqa: E402
from peers.jars import SHORT_LIVED, java_command  # noqa: E402
from peers.jars import run as run_program  # noqa: E402

OURS, THEIRS = "embedded broker", "Apache Kafka 4.3.1"
ROWS = ("rate", "latency", "resources")
SMALLEST_BATCH = 16 * 1024
#: Apache Kafka's controller writes at most 10,000 records for one request: one for the topic, and one for
#: each partition.
MOST_PARTITIONS_AT_ONCE = 5_000


@dataclass(frozen=True)
class Sizes:
    """Sizes and repetitions of the measurements."""

    #: Number of records per run, by record size in bytes.
    records: dict[int, int] = field(default_factory=lambda: {100: 3_000_000, 1024: 600_000})
    batches: tuple[int, ...] = (SMALLEST_BATCH, 256 * 1024)
    partitions: tuple[int, ...] = (1, 12)
    #: Records produced before anything is measured, and records produced to see how much memory they retain.
    million: int = 1_000_000
    latency_s: float = 8.0
    #: Seconds of warm-up before latencies are measured. A cold JVM is too slow for the rate and builds up a
    #: backlog.
    warmup_s: float = 4.0
    idle_connections: int = 2_000
    most_partitions: int = 10_000
    kills: int = 3
    #: Records of 1 KiB produced before the broker is killed: 60 MiB after the recovery point.
    records_before_a_kill: int = 60 * 1024
    #: JVM options for a client that must be fast for a minute rather than start quickly.
    jvm: tuple[str, ...] = ("-Xms512m", "-Xmx512m", "-XX:+UseParallelGC")


SMALL = Sizes({100: 2_000}, (SMALLEST_BATCH,), (1,), 2_000, 0.1, 0.1, 200, 100, 1, 200, SHORT_LIVED)


@dataclass(frozen=True)
class Side:
    name: str
    servers: str
    pid: int
    #: Seconds from the start of the process until clients could connect.
    ready_s: float
    sizes: Sizes

    def cpu_s(self) -> float:
        """CPU seconds used by the broker's process, including all its threads."""
        used = process_cpu_seconds(self.pid)
        assert used is not None, "cannot read the statistics of the broker's process"
        return used

    def resident_mib(self) -> float:
        return resident_mib(self.pid)


def in_turn(
    what: str, sides: list[Side], rounds: int, measure: Callable[[Side, int], dict[str, float]]
) -> dict[str, Any]:
    """Measure all sides in each round, and return the figures of all runs and their medians.

    ``measure`` gets the side and the number of the round. ``what`` is shown with the progress.
    """
    runs: dict[str, list[dict[str, float]]] = {side.name: [] for side in sides}
    for number in range(rounds):
        # Change the order, so that no side always follows the same other one.
        for side in sides if number % 2 == 0 else sides[::-1]:
            runs[side.name].append(measure(side, number))
            print(what, side.name, runs[side.name][-1], file=sys.stderr, flush=True)
    medians = {
        name: {figure: median(one[figure] for one in many) for figure in many[0]}
        for name, many in runs.items()
    }
    return {"runs": runs, "median": medians}


def resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


@contextlib.contextmanager
def both(sizes: Sizes) -> Iterator[list[Side]]:
    with contextlib.ExitStack() as stack:
        began = time.perf_counter()
        ours = stack.enter_context(EmbeddedBroker(flush="os", group_initial_rebalance_delay_ms=0))
        ours_s = time.perf_counter() - began
        began = time.perf_counter()
        theirs = stack.enter_context(started_in_scratch_folder(to_measure=sizes is not SMALL))
        theirs_s = time.perf_counter() - began
        yield [
            Side(OURS, ours.bootstrap_servers, ours.pid, ours_s, sizes),
            Side(THEIRS, theirs.bootstrap_servers, theirs.pid, theirs_s, sizes),
        ]


def make_topic(side: Side, topic: str, partitions: int) -> None:
    with KafkaAdminClient(bootstrap_servers=side.servers) as admin:
        admin.create_topics([NewTopic(topic, min(partitions, MOST_PARTITIONS_AT_ONCE), 1)])
        if partitions > MOST_PARTITIONS_AT_ONCE:
            admin.create_partitions({topic: partitions})


def remove_topic(side: Side, topic: str) -> None:
    with KafkaAdminClient(bootstrap_servers=side.servers) as admin:
        admin.delete_topics([topic])


# ---- Kafka's own clients ------------------------------------------------------------------------------


def produce(
    side: Side, topic: str, size: int, batch: int, records: int, rate: float = -1, warmup: int = 0
) -> dict[str, float]:
    """Run ProducerPerformance. ``warmup`` records are not measured, except in the broker's CPU time."""
    before = side.cpu_s()
    said = run_program(
        java_command(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", str(records), "--record-size", str(size)),
            *("--throughput", str(int(rate)), "--command-property", f"bootstrap.servers={side.servers}"),
            *(f"batch.size={batch}", f"linger.ms={0 if rate > 0 else 5}", "acks=all"),
            *(("--warmup-records", str(warmup)) if warmup else ()),
            jvm=side.sizes.jvm,
        ),
        timeout_s=600,
    ).decode()
    last = said.strip().splitlines()[-1]
    found = re.search(
        r"([\d.]+) records/sec.*?([\d.]+) ms avg latency.*?(\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th", last
    )
    if found is None:
        raise SystemExit(f"ProducerPerformance printed no throughput: {last}")
    return {
        "records_per_s": float(found[1]),
        "p50_ms": float(found[3]),
        "p99_ms": float(found[5]),
        "cpu_s_per_million": (side.cpu_s() - before) / records * 1e6,
    }


def consume(side: Side, topic: str, records: int) -> dict[str, float]:
    before = side.cpu_s()
    said = run_program(
        java_command(
            "org.apache.kafka.tools.ConsumerPerformance",
            *("--bootstrap-server", side.servers, "--topic", topic, "--num-records", str(records)),
            *("--timeout", "60000", "--hide-header"),
            jvm=side.sizes.jvm,
        ),
        timeout_s=600,
    ).decode()
    fields = said.strip().splitlines()[-1].split(",")
    if int(fields[4]) < records:
        raise SystemExit(f"ConsumerPerformance read {fields[4]} of {records} records of topic {topic}")
    return {
        "records_per_s": float(fields[9]),
        "cpu_s_per_million": (side.cpu_s() - before) / records * 1e6,
    }


# ---- Rows ---------------------------------------------------------------------------------------------


def entry(what: str, size: int, batch: int, partitions: int, runs: dict[str, list[dict[str, float]]]) -> Any:
    medians = {
        name: {figure: median(one[figure] for one in many) for figure in many[0]}
        for name, many in runs.items()
    }
    return {
        "what": what,
        "size": size,
        "batch": batch,
        "partitions": partitions,
        "runs": runs,
        "median": medians,
    }


def rates(sides: list[Side], sizes: Sizes, rounds: int) -> Iterator[Any]:
    """Produce as fast as the client can, then consume the same records."""
    for size, records in sizes.records.items():
        for batch in sizes.batches:
            for partitions in sizes.partitions:
                produced: dict[str, list[dict[str, float]]] = {side.name: [] for side in sides}
                consumed: dict[str, list[dict[str, float]]] = {side.name: [] for side in sides}
                for number in range(rounds):
                    topic = f"rate-{size}-{batch}-{partitions}-{number}"
                    # Alternate the order, so that neither side always runs on the busier disk.
                    for side in sides if number % 2 == 0 else sides[::-1]:
                        make_topic(side, topic, partitions)
                        produced[side.name].append(produce(side, topic, size, batch, records))
                        consumed[side.name].append(consume(side, topic, records))
                        remove_topic(side, topic)
                yield entry("produce", size, batch, partitions, produced)
                yield entry("consume", size, batch, partitions, consumed)


def latencies(sides: list[Side], sizes: Sizes, rounds: int, done: list[Any]) -> Iterator[Any]:
    """Measure latencies at half of Apache Kafka's maximum throughput."""
    for row in [row for row in done if row["what"] == "produce" and row["batch"] == SMALLEST_BATCH]:
        size, partitions = row["size"], row["partitions"]
        rate = row["median"][THEIRS]["records_per_s"] / 2
        warmup = int(rate * sizes.warmup_s)
        records = warmup + int(rate * sizes.latency_s)
        runs: dict[str, list[dict[str, float]]] = {side.name: [] for side in sides}
        for number in range(rounds):
            topic = f"latency-{size}-{partitions}-{number}"
            for side in sides if number % 2 == 0 else sides[::-1]:
                make_topic(side, topic, partitions)
                runs[side.name].append(produce(side, topic, size, SMALLEST_BATCH, records, rate, warmup))
                remove_topic(side, topic)
        yield entry("latency", size, SMALLEST_BATCH, partitions, runs) | {"rate": rate}


def resources(sides: list[Side], sizes: Sizes) -> dict[str, float]:
    """Measure start-up time, recovery time and memory, for Apache Kafka too if it runs on this machine."""
    found = {f"ready_s, {side.name}": side.ready_s for side in sides}
    partitions = sizes.most_partitions
    for side in sides:
        make_topic(side, "million", 1)
        produce(side, "million", 100, SMALLEST_BATCH, sizes.million)
        found[f"resident_mib after a million records, {side.name}"] = side.resident_mib()
    with EmbeddedBroker(flush="os") as broker:
        side = Side(OURS, broker.bootstrap_servers, broker.pid, 0.0, sizes)
        produce(side, "million", 100, SMALLEST_BATCH, sizes.million)
        found["resident_mib of a new one after a million records"] = side.resident_mib()
        idle = sizes.idle_connections
        found[f"resident_mib more with {idle:,} idle connections"] = idle_connections(side, idle)
        with KafkaAdminClient(bootstrap_servers=side.servers, request_timeout_ms=300_000) as admin:
            began = time.perf_counter()
            admin.create_topics([NewTopic("many", partitions, 1)], timeout_ms=300_000)
            found[f"s to create a topic of {partitions:,} partitions"] = time.perf_counter() - began
        broker.stop(120)
        found[f"s to start with {partitions:,} partitions, closed cleanly"] = started_s(broker)
        found[f"resident_mib with {partitions:,} partitions"] = resident_mib(broker.pid)
        broker.kill()
        found[f"s to start with {partitions:,} partitions, killed"] = started_s(broker)
        broker.stop(120)
    found["s to start after SIGKILL, 60 MiB past the recovery point"] = after_a_kill(sizes)
    return found


def started_s(broker: EmbeddedBroker) -> float:
    began = time.perf_counter()
    broker.start()
    return time.perf_counter() - began


def after_a_kill(sizes: Sizes) -> float:
    took = []
    with EmbeddedBroker(flush="os") as broker:
        for number in range(sizes.kills):
            side = Side(OURS, broker.bootstrap_servers, broker.pid, 0.0, sizes)
            produce(side, f"t{number}", 1024, SMALLEST_BATCH, sizes.records_before_a_kill)
            broker.kill()
            took.append(started_s(broker))
    return median(took)


def idle_connections(side: Side, count: int) -> float:
    """Measure the additional resident memory of idle connections that have completed their first request."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    hello = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    before = side.resident_mib()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Line(side.servers, "bench")) for _ in range(count)]
        for client in clients:
            client.say(hello, 4)
        for client in clients:
            client.hear()
        return side.resident_mib() - before


def main() -> int:
    parser = parser_of(__doc__, rounds=3)
    parser.add_argument(
        "--rows", default=",".join(ROWS), help="rows to measure (default: all); latency needs rate"
    )
    arguments = parser.parse_args()
    arguments.rounds = 1 if arguments.small else arguments.rounds
    sizes = SMALL if arguments.small else Sizes()
    rows = arguments.rows.split(",")
    if strange := [row for row in rows if row not in ROWS]:
        parser.error(f"unknown row {strange[0]}; the rows are {', '.join(ROWS)}")
    measurement = Measurement("macro/broker.py", "-broker", arguments)
    measured: list[Any] = []
    figures = {"rounds": arguments.rounds, "sides": [OURS, THEIRS], "rows": measured, "resources": {}}

    def keep(row: Any) -> None:
        # Write the file after each row, so that an interrupted run keeps what it has measured.
        measured.append(row)
        print(report.broker_row(row), file=sys.stderr, flush=True)
        measurement.keep(broker=figures)

    with both(sizes) as sides:
        for side in [] if arguments.small else sides:
            # Warm up the JIT compiler for the loops of the broker and the clients before anything is
            # measured.
            make_topic(side, "warm-up", 1)
            produce(side, "warm-up", 100, SMALLEST_BATCH, sizes.million)
            consume(side, "warm-up", sizes.million)
        if "rate" in rows:
            for row in rates(sides, sizes, arguments.rounds):
                keep(row)
        if "latency" in rows:
            for row in latencies(sides, sizes, arguments.rounds, list(measured)):
                keep(row)
        if "resources" in rows:
            figures["resources"] = resources(sides, sizes)
    measurement.keep(broker=figures)
    measurement.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
