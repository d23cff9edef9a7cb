"""``kafkacore demo``: real flight records through our producer, our broker and Spark to Parquet, checked
and drawn.

The steps, in order: a broker as a process of its own, :mod:`flights` produced to it,
:mod:`kafkacore.spark.pipeline` from it to Parquet with an aggregate, the check of that against pandas, the
chart. A folder holds one run: the second time everything is there already and nothing is added.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacore.cli import flights
from kafkacore.cli.cpu import tree_cpu_seconds
from kafkacore.cli.report import Reporter
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.spark.pipeline import Aggregate, PipelineConfig, PipelineResult, run_pipeline
from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC, PARTITIONS = "flights", 6
EXAMPLES = """examples:
  kafkacore demo                      # into ./kafkacore-demo; the second time it adds nothing
  kafkacore demo --fresh              # start over
  kafkacore demo --dir /tmp/demo --records 20000
  kafkacore demo --json | jq .steps   # the summary for a program
"""
#: Marks a folder as ours, so that --fresh never empties another one; holds how much has been produced.
MARKER = ".kafkacore-demo.json"

DERIVED = (
    ("day_of_flight", "make_date(year, month, day)"),
    (
        "delay_class",
        "CASE WHEN dep_time IS NULL THEN 'cancelled' WHEN dep_delay <= 0 THEN 'on time' "
        "WHEN dep_delay < 15 THEN 'slight' WHEN dep_delay < 60 THEN 'moderate' ELSE 'severe' END",
    ),
)
AGGREGATE = (
    ("flights", "count(*)"),
    ("mean_dep_delay", "avg(dep_delay)"),
    ("cancelled_share", "avg(CAST(dep_time IS NULL AS DOUBLE))"),
)


class DemoError(KafkaError):
    """The demo's own check failed, or its folder cannot be used."""


@dataclass
class Step:
    """One line of the summary."""

    name: str
    records: int
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Folder:
    """Where everything of one run lies."""

    root: Path

    broker = property(lambda self: self.root / "broker")
    parquet = property(lambda self: self.root / "flights.parquet")
    aggregate = property(lambda self: self.root / "delays_by_carrier_and_month.parquet")
    checkpoint = property(lambda self: self.root / "checkpoint")
    chart = property(lambda self: self.root / "delays_by_carrier_and_month.png")
    spark_log = property(lambda self: self.root / "spark.log")
    marker = property(lambda self: self.root / MARKER)

    def open(self, fresh: bool, records: int) -> int:
        """Make the folder ready; how many records it already holds, acknowledged.

        Raises
        ------
        DemoError
            Something that is not ours lies there, or a run of another size.
        """
        if self.root.exists() and any(self.root.iterdir()) and not self.marker.exists():
            raise DemoError(
                f"{self.root} is not a folder of this demo: choose another --dir, or empty it yourself"
            )
        held = json.loads(self.marker.read_text())["acknowledged"] if self.marker.exists() else 0
        if fresh or held == 0:
            # Nothing acknowledged in whole: what an interrupted run left would be counted twice.
            shutil.rmtree(self.root, ignore_errors=True)
            held = 0
        elif held != records:
            raise DemoError(
                f"{self.root} holds a run of {held:,} records, not {records:,}: add --fresh to start over"
            )
        self.root.mkdir(parents=True, exist_ok=True)
        self.mark(held)
        return int(held)

    def mark(self, acknowledged: int) -> None:
        """Write down how many records the broker has acknowledged."""
        self.marker.write_text(json.dumps({"topic": TOPIC, "acknowledged": acknowledged}) + "\n")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``demo`` to the command line."""
    parser = commands.add_parser(
        "demo",
        help="real data through the embedded broker and Spark to Parquet",
        description="Produce 336,776 real flight records to an embedded broker, run a Spark Structured "
        "Streaming job over them into Parquet, check every count against pandas, and draw the delays.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--dir",
        type=Path,
        default=Path("kafkacore-demo"),
        help="folder for all data (default: ./kafkacore-demo)",
    )
    parser.add_argument("--fresh", action="store_true", help="empty the folder of an earlier demo first")
    parser.add_argument(
        "--records", type=_positive, default=flights.RECORD_COUNT, help="produce only the first N records"
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON, and no progress")
    parser.set_defaults(run=run)


def _positive(text: str) -> int:
    number = int(text)
    if not 0 < number <= flights.RECORD_COUNT:
        raise argparse.ArgumentTypeError(f"{number:,} is not between 1 and {flights.RECORD_COUNT:,}")
    return number


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; 0, or 1 if the check finds a difference."""
    _require_extras()
    # Imported here: `kafkacore topics` has no business loading them.
    from kafkacore.broker.process import BrokerProcess
    from kafkacore.spark.session import spark_session

    reporter = Reporter(quiet=arguments.json)
    folder = Folder(arguments.dir.absolute())
    held = folder.open(arguments.fresh, arguments.records)
    steps: list[Step] = []
    reporter.say(f"The broker's data lies in {folder.broker}")
    with BrokerProcess(data_dir=folder.broker) as broker:
        reporter.say(f"The broker listens on {broker.bootstrap_servers} (process {broker.pid})")
        acknowledged = produce(broker.bootstrap_servers, arguments.records, held, reporter, steps)
        folder.mark(acknowledged)
        with spark_session("kafkacore demo", folder.root, folder.spark_log) as spark:
            stream(spark, broker.bootstrap_servers, folder, acknowledged, reporter, steps)
            with _measured(steps, Step("check against pandas", arguments.records)), reporter.step("Check"):
                differences = check(spark, folder, arguments.records, acknowledged)
    from kafkacore.cli.chart import draw_delays

    draw_delays(folder.aggregate, folder.chart)
    _print_summary(folder, steps, differences, as_json=arguments.json)
    return 1 if differences else 0


def _require_extras() -> None:
    import importlib.util

    missing = [
        name for name in ("pyspark", "pandas", "matplotlib", "pyarrow") if not importlib.util.find_spec(name)
    ]
    if missing:
        raise KafkaConfigurationError(f"the demo needs {', '.join(missing)}: pip install 'kafkacore[demo]'")
    flights.csv_path()


@contextmanager
def _measured(steps: list[Step], step: Step) -> Iterator[Step]:
    """Add the step to the summary with its wall and CPU seconds."""
    steps.append(step)
    started_ms, started_cpu = SYSTEM_CLOCK.monotonic_ms(), tree_cpu_seconds()
    yield step
    step.seconds = (SYSTEM_CLOCK.monotonic_ms() - started_ms) / 1000
    step.cpu_seconds = tree_cpu_seconds() - started_cpu


def produce(bootstrap: str, wanted: int, held: int, reporter: Reporter, steps: list[Step]) -> int:
    """Produce the flights unless the topic holds them already; how many the broker has acknowledged.

    Each record is JSON, keyed by its carrier, so that one carrier's flights stay in order.
    """
    if held == wanted:
        reporter.say(
            f"Topic {TOPIC} already holds {_records_in_topic(bootstrap):,} records; nothing is produced"
        )
        return _records_in_topic(bootstrap)
    from kafkacore import KafkaProducer

    acknowledged = 0
    failures: list[BaseException] = []

    def count(metadata: object) -> None:
        nonlocal acknowledged
        acknowledged += 1

    _create_topic(bootstrap)
    encode = json.JSONEncoder(separators=(",", ":")).encode
    with (
        _measured(steps, Step("produce", wanted)),
        reporter.step(f"Produce to topic {TOPIC}", wanted) as advance,
        KafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            compression_type="lz4",
            linger_ms=20,
            batch_size=256 * 1024,
        ) as producer,
    ):
        for sent, flight in enumerate(flights.read_flights(wanted), 1):
            future = producer.send(TOPIC, encode(flight).encode(), key=str(flight["carrier"]).encode())
            future.add_callback(count)
            future.add_errback(failures.append)
            if sent % 5_000 == 0:
                advance(acknowledged)
        producer.flush()
        advance(acknowledged)
    if failures:
        raise DemoError(f"{len(failures):,} records were not acknowledged; the first: {failures[0]}")
    return acknowledged


def _create_topic(bootstrap: str) -> None:
    from kafkacore.cli.topics import create_topic

    create_topic(bootstrap, TOPIC, partitions=PARTITIONS)


def _records_in_topic(bootstrap: str) -> int:
    from kafkacore import KafkaConsumer

    with KafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        partitions = [TopicPartition(TOPIC, p) for p in consumer.partitions_for_topic(TOPIC) or ()]
        first, last = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    return sum(last[tp] - first[tp] for tp in partitions)


def stream(
    spark: SparkSession, bootstrap: str, folder: Folder, total: int, reporter: Reporter, steps: list[Step]
) -> PipelineResult:
    """Run the pipeline: the topic to Parquet by month, and the aggregate per carrier and month."""
    config = PipelineConfig(
        bootstrap_servers=bootstrap,
        topic=TOPIC,
        value_format="json",
        schema=flights.SCHEMA,
        derive=DERIVED,
        partition_by=("month",),
        path=folder.parquet,
        checkpoint=folder.checkpoint,
        options={"maxOffsetsPerTrigger": "100000"},
        aggregate=Aggregate(("carrier", "month"), AGGREGATE, folder.aggregate),
    )
    with (
        _measured(steps, Step("Spark to Parquet", 0)) as step,
        reporter.step("Spark to Parquet", total) as advance,
    ):
        result = run_pipeline(spark, config, on_progress=advance)
        step.records = result.rows
    return result


def check(spark: SparkSession, folder: Folder, wanted: int, acknowledged: int) -> list[str]:
    """Every difference between what went in and what came out, in words; none is success."""
    import pandas as pd

    differences = []
    table = pd.read_csv(flights.csv_path(), nrows=wanted)
    in_parquet = spark.read.parquet(str(folder.parquet)).count()
    if not len(table) == acknowledged == in_parquet:
        differences.append(
            f"{len(table):,} records in the data set, {acknowledged:,} acknowledged, "
            f"{in_parquet:,} rows in Parquet"
        )
    expected = table.groupby(["carrier", "month"], as_index=False).agg(
        flights=("year", "size"),
        mean_dep_delay=("dep_delay", "mean"),
        cancelled_share=("dep_time", lambda times: float(times.isna().mean())),
    )
    names = [name for name, _ in AGGREGATE]
    found = (
        pd.read_parquet(folder.aggregate).set_index(["carrier", "month"])[names].sort_index().astype(float)
    )
    wanted_table = expected.set_index(["carrier", "month"])[names].sort_index().astype(float)
    try:
        pd.testing.assert_frame_equal(found, wanted_table, check_index_type=False, rtol=1e-9)
    except AssertionError as error:
        differences.append(f"the aggregate differs from pandas': {error}")
    return differences


def _print_summary(folder: Folder, steps: list[Step], differences: list[str], as_json: bool) -> None:
    places = {
        "parquet": str(folder.parquet),
        "aggregate": str(folder.aggregate),
        "chart": str(folder.chart),
        "broker": str(folder.broker),
        "spark_log": str(folder.spark_log),
    }
    if as_json:
        rows = [asdict(step) | {"records_per_second": step.records_per_second} for step in steps]
        print(json.dumps({"steps": rows, "output": places, "differences": differences}, indent=2))
        return
    print(f"\n{'step':<22}{'records':>10}{'seconds':>9}{'records/s':>11}{'CPU s':>8}")
    for step in steps:
        rate = f"{step.records_per_second:,.0f}" if step.records else "-"
        print(f"{step.name:<22}{step.records:>10,}{step.seconds:>9.1f}{rate:>11}{step.cpu_seconds:>8.1f}")
    print()
    for name, place in places.items():
        print(f"{name:<10} {place}")
    for difference in differences:
        print(f"MISMATCH: {difference}", file=sys.stderr)
    if not differences:
        print("\nChecked: data set = acknowledged = Parquet, and the aggregate equals pandas'.")
