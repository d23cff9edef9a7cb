"""``kafkacore demo``: stream flight records through the embedded broker and Spark to Parquet files.

The demo starts a broker process, produces :mod:`flights`, runs a :mod:`kafkacore.spark.pipeline` to Parquet
with an aggregate, compares the result with pandas, and draws a chart. With ``--exactly-once``, the flights
are produced in transactions, and Spark copies them in transactions to the topic that it writes to Parquet.

A folder holds one run, and running the demo again adds nothing. If the last run was interrupted before all
its records were acknowledged, the demo starts over. Otherwise the records of that run would be counted twice.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkacore.cli import flights
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.connection import allow_password, password_reference
from kafkacore.cli.processes import CpuMeter
from kafkacore.cli.report import Advance, Reporter, print_table
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.settings import SECURITY_PROTOCOLS, Config
from kafkacore.spark.pipeline import (
    Aggregate,
    KafkaSink,
    ParquetSink,
    PipelineConfig,
    SinkError,
    count_rows,
    run_pipeline,
)
from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkacore.broker.process.process import BrokerProcess

TOPIC, PARTITIONS = "flights", 6
#: With ``--exactly-once``, Spark copies the flights to this topic, and the producer of the flights has this
#: transactional id.
COPY, TRANSACTIONAL_ID = "flights-once", "kafkacore-demo"
RECORDS_PER_TRANSACTION = 10_000
#: Name of the user who logs in if the security protocol uses SASL.
USER = "demo"
EXAMPLES = """  kafkacore demo                      # in ./kafkacore-demo; a second run adds nothing
  kafkacore demo --fresh              # start over
  kafkacore demo --dir /tmp/demo --records 20000
  kafkacore demo --exactly-once       # produce, and copy to another topic, in transactions
  kafkacore demo --security-protocol SASL_SSL   # with TLS and a password
  kafkacore demo --json | jq .steps   # the summary as JSON
"""
#: File that shows that the demo has created a folder, so that --fresh does not empty any other folder. It
#: contains the number of acknowledged records, and whether the run is exactly once.
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
    """The demo cannot use its folder, or its records were not acknowledged."""


@dataclass(frozen=True)
class Step:
    """A line of the summary."""

    name: str
    records: int
    seconds: float
    cpu_seconds: float

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds else 0.0


class Work:
    """Runs the steps, shows their progress, and measures them for the summary.

    Parameters
    ----------
    reporter:
        Shows the progress.
    """

    def __init__(self, reporter: Reporter, clock: Clock = SYSTEM_CLOCK) -> None:
        self.steps: list[Step] = []
        self.say = reporter.say
        self._reporter = reporter
        self._clock = clock
        self._cpu = CpuMeter()
        self._started = (clock.monotonic_ms(), self._cpu.seconds())

    @contextmanager
    def step(self, name: str, total: int | None = None) -> Iterator[Advance]:
        """Run a step. Call the yielded function with the number of records so far, out of ``total``."""
        records, started = 0, (self._clock.monotonic_ms(), self._cpu.seconds())

        with self._reporter.step(name[0].upper() + name[1:], total) as show:

            def advance(done: int, note: str = "") -> None:
                nonlocal records
                records = done
                self._cpu.seconds()
                show(done, note)

            yield advance
        self.steps.append(self._since(started, name, records))

    def total(self) -> Step:
        """Return the whole run as a step, including the time between the steps."""
        return self._since(self._started, "total", 0)

    def _since(self, started: tuple[float, float], name: str, records: int) -> Step:
        started_ms, started_cpu = started
        seconds = (self._clock.monotonic_ms() - started_ms) / 1000
        return Step(name, records, seconds, self._cpu.seconds() - started_cpu)


@dataclass(frozen=True)
class Folder:
    """The folder of a run, and the paths in it."""

    root: Path

    broker = property(lambda self: self.root / "broker")
    parquet = property(lambda self: self.root / "flights.parquet")
    aggregate = property(lambda self: self.root / "delays_by_carrier_and_month.parquet")
    checkpoint = property(lambda self: self.root / "checkpoint")
    copy_checkpoint = property(lambda self: self.root / "copy-checkpoint")
    chart = property(lambda self: self.root / "delays_by_carrier_and_month.png")
    spark_log = property(lambda self: self.root / "spark.log")
    warehouse = property(lambda self: self.root / "warehouse")
    password = property(lambda self: self.root / "password")
    marker = property(lambda self: self.root / MARKER)

    @contextmanager
    def opened(self, fresh: bool, records: int, exactly_once: bool = False) -> Iterator[int]:
        """Prepare and lock the folder, and yield the number of its acknowledged records.

        Raises
        ------
        DemoError
            If the folder has other files, another demo uses it, or it has a run with other arguments.
        """
        if self.root.exists() and any(self.root.iterdir()) and not self.marker.exists():
            raise DemoError(
                f"{self.root} has files that are not from this demo: choose another --dir, or empty it"
            )
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.root, os.O_RDONLY)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DemoError(
                    f"another demo is running in {self.root}: wait for it, or choose another --dir"
                ) from None
            yield self._prepare(fresh, records, exactly_once)
        finally:
            os.close(lock)

    def _prepare(self, fresh: bool, records: int, exactly_once: bool) -> int:
        held, was_exactly_once = (0, False) if fresh else self._held()
        if held == 0:
            # Remove the records that an interrupted run has left. Otherwise they would be counted twice.
            self._empty()
        elif was_exactly_once != exactly_once:
            raise DemoError(
                f"{self.root} has a run {'with' if was_exactly_once else 'without'} --exactly-once: "
                f"add --fresh to start over"
            )
        elif held != records:
            raise DemoError(
                f"{self.root} has a run of {held:,} records, not {records:,}: add --fresh to start over"
            )
        return held

    def _held(self) -> tuple[int, bool]:
        if not self.marker.exists():
            return 0, False
        try:
            marker = json.loads(self.marker.read_text())
            return int(marker["acknowledged"]), bool(marker.get("exactly_once"))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DemoError(f"{self.marker} is damaged: add --fresh to start over") from None

    def _empty(self) -> None:
        """Remove the files of a run, and no other files."""
        self.mark(0)
        for folder in (
            self.broker,
            self.parquet,
            self.aggregate,
            self.checkpoint,
            self.copy_checkpoint,
            self.warehouse,
        ):
            if folder.exists():
                shutil.rmtree(folder)
        for file in (self.chart, self.spark_log, self.password):
            file.unlink(missing_ok=True)

    def mark(self, acknowledged: int, exactly_once: bool = False) -> None:
        """Store the number of acknowledged records atomically."""
        new = self.marker.with_suffix(".new")
        content = {"topic": TOPIC, "acknowledged": acknowledged, "exactly_once": exactly_once}
        new.write_text(json.dumps(content) + "\n")
        new.replace(self.marker)


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``demo`` to the command line."""
    parser = add_command(
        commands,
        "demo",
        COMMANDS["demo"].summary,
        EXAMPLES,
        run,
        description="Produce 336,776 real flight records to an embedded broker, run a Spark Structured "
        "Streaming job over them into Parquet, check every count against pandas, and draw the delays.",
    )
    parser.add_argument(
        "--dir",
        type=Path,
        default=Path("kafkacore-demo"),
        help="folder for all files (default: ./kafkacore-demo)",
    )
    parser.add_argument("--fresh", action="store_true", help="remove the files of an earlier demo first")
    parser.add_argument(
        "--records", type=_positive, default=flights.RECORD_COUNT, help="records to produce (default: all)"
    )
    parser.add_argument(
        "--exactly-once",
        action="store_true",
        help="produce in transactions, and copy to another topic in transactions (default: no transactions)",
    )
    parser.add_argument(
        "--security-protocol",
        type=str.upper,
        choices=SECURITY_PROTOCOLS,
        default="PLAINTEXT",
        help="protocol of the broker (default: PLAINTEXT); the demo creates the certificate and the password",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON, without progress")


def _positive(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= flights.RECORD_COUNT:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 to {flights.RECORD_COUNT}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo, and return 1 if the check finds a difference."""
    _require_extras(arguments.security_protocol)
    reporter = Reporter(quiet=arguments.json)
    folder = Folder(arguments.dir.absolute())
    work = Work(reporter)
    with folder.opened(arguments.fresh, arguments.records, arguments.exactly_once) as held:
        differences = _run_steps(folder, arguments, held, work)
    _print_summary(folder, [*work.steps, work.total()], differences, as_json=arguments.json)
    return 1 if differences else 0


def _run_steps(folder: Folder, arguments: argparse.Namespace, held: int, work: Work) -> list[str]:
    """Run all steps, and return the differences that the check found."""
    protocol, wanted, exactly_once = arguments.security_protocol, arguments.records, arguments.exactly_once
    # Imported here, because the other commands do not need these modules.
    from kafkacore.cli.chart import draw_delays
    from kafkacore.spark.session import spark_session

    work.say(f"The broker stores its data in {folder.broker}")
    with ExitStack() as running:
        options = running.enter_context(_logged_in(folder, protocol))
        with work.step("start the broker"):
            broker = running.enter_context(_broker(folder, protocol))
        settings = broker.client_settings()
        work.say(f"The broker listens on {broker.bootstrap_servers} (process {broker.pid}){_how(settings)}")
        if held == wanted:
            acknowledged = _records_in_topic(settings, TOPIC, exactly_once)
            work.say(f"Topic {TOPIC} already has {acknowledged:,} records; producing none")
        else:
            with work.step("produce", wanted) as advance:
                acknowledged = produce(settings, wanted, advance, exactly_once)
            folder.mark(acknowledged, exactly_once)
        with work.step("start Spark"):
            spark = running.enter_context(spark_session("kafkacore demo", folder.root, folder.spark_log))
        copied = acknowledged
        if exactly_once:
            with work.step("copy exactly once", wanted) as advance:
                copy(spark, settings, options, folder, advance)
            copied = _records_in_topic(settings, COPY, exactly_once)
        try:
            with work.step("Spark to Parquet", wanted) as advance:
                stream(spark, settings, options, folder, advance, COPY if exactly_once else TOPIC)
            with work.step("check against pandas") as advance:
                differences = check(spark, folder, wanted, acknowledged)
                if copied != acknowledged:
                    differences.append(f"{copied:,} committed records in topic {COPY}, not {acknowledged:,}")
                advance(wanted)
        except SinkError as error:
            return [f"cannot read the Parquet files: {error}"]
        with work.step("draw the chart"):
            draw_delays(folder.aggregate, folder.chart)
        with work.step("stop"):
            running.close()
    return differences


@contextmanager
def _logged_in(folder: Folder, protocol: str) -> Iterator[dict[str, str]]:
    """Write a random password to a file, and yield the option of Spark's source that refers to it.

    The reference keeps the password out of Spark's plans. Without SASL, no file is written and no option is
    needed.
    """
    if not protocol.startswith("SASL_"):
        yield {}
        return
    if set(str(folder.password)) & set("{},"):
        raise DemoError(f"--dir {folder.root}: the path must not contain braces or commas")
    folder.password.unlink(missing_ok=True)
    with os.fdopen(os.open(folder.password, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_urlsafe())
    try:
        allow_password(USER, str(folder.password))
        yield {"kafka.sasl.password": password_reference(str(folder.password))}
    finally:
        folder.password.unlink(missing_ok=True)


def _broker(folder: Folder, protocol: str) -> BrokerProcess:
    from kafkacore.broker.process.process import BrokerProcess

    config: dict[str, Any] = {"security_protocol": protocol, "self_made_certificate": "SSL" in protocol}
    if protocol.startswith("SASL_"):
        config["users"] = {USER: folder.password.read_text()}
    return BrokerProcess(data_dir=folder.broker, **config)


def _how(settings: Config) -> str:
    """Return a description of the security protocol; empty for plaintext."""
    said = [settings[name] for name in ("security_protocol", "sasl_mechanism") if name in settings]
    return f", with {' and '.join(said)}" if said else ""


def _require_extras(protocol: str) -> None:
    import importlib.util

    needed = ["pyspark", "pandas", "matplotlib", "pyarrow"] + ["cryptography"] * ("SSL" in protocol)
    missing = [name for name in needed if not importlib.util.find_spec(name)]
    if missing:
        raise KafkaConfigurationError(f"the demo needs {', '.join(missing)}: pip install 'kafkacore[demo]'")
    flights.csv_path()


def produce(settings: Config, wanted: int, advance: Advance, exactly_once: bool = False) -> int:
    """Produce the flights, and return the number of acknowledged records."""
    from kafkacore import KafkaProducer
    from kafkacore.cli.topics import create_topic

    acknowledged = 0
    failures: list[BaseException] = []

    def count(metadata: object) -> None:
        nonlocal acknowledged
        acknowledged += 1

    create_topic(settings, TOPIC, partitions=PARTITIONS)
    if exactly_once:
        settings = {**settings, "transactional_id": TRANSACTIONAL_ID}
    with KafkaProducer(
        **settings,
        acks="all",
        compression_type="lz4",
        linger_ms=20,
        batch_size=256 * 1024,
    ) as producer:
        if exactly_once:
            producer.init_transactions()
            producer.begin_transaction()
        for sent, (key, value) in enumerate(flights.records(wanted), 1):
            future = producer.send(TOPIC, value, key)
            future.add_callback(count)
            future.add_errback(failures.append)
            if sent % 5_000 == 0:
                advance(acknowledged)
            if exactly_once and sent % RECORDS_PER_TRANSACTION == 0:
                producer.commit_transaction()
                producer.begin_transaction()
        producer.flush()
        if exactly_once:
            producer.commit_transaction()
    advance(acknowledged)
    if failures:
        raise DemoError(f"{len(failures):,} records were not acknowledged; the first error: {failures[0]}")
    return acknowledged


def _records_in_topic(settings: Config, topic: str, in_transactions: bool) -> int:
    """Return the number of records in a topic, or of committed records if the topic has transactions."""
    from kafkacore import KafkaConsumer

    if in_transactions:
        settings = {**settings, "isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    with KafkaConsumer(**settings) as consumer:
        partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic) or ()]
        first, last = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
        if not in_transactions:
            return sum(last[tp] - first[tp] for tp in partitions)
        # Markers and aborted records have offsets too, so only reading shows the number of committed records.
        consumer.assign(partitions)
        count = 0
        while any(consumer.position(tp) < last[tp] for tp in partitions):
            count += sum(len(records) for records in consumer.poll(1_000).values())
    return count


#: Options of Spark's source for the settings of kafkacore's clients.
_OPTIONS = {
    "security_protocol": "kafka.security.protocol",
    "ssl_cafile": "kafka.ssl.ca.location",
    "sasl_mechanism": "kafka.sasl.mechanism",
    "sasl_plain_username": "kafka.sasl.username",
}


def copy(
    spark: SparkSession, settings: Config, options: Mapping[str, str], folder: Folder, advance: Advance
) -> None:
    """Copy the flights to another topic in transactions; the parameters are those of :func:`stream`."""
    from kafkacore.admin import KafkaAdminClient
    from kafkacore.cli.topics import create_topic

    with KafkaAdminClient(**settings) as admin:
        is_new = COPY not in admin.list_topics()
    if is_new:
        create_topic(settings, COPY, partitions=PARTITIONS)
    servers, secured = settings["bootstrap_servers"], {**_secured(settings), **options}
    config = PipelineConfig(
        bootstrap_servers=servers,
        topic=TOPIC,
        value_format="raw",
        keep=("key",),
        sink=KafkaSink(servers, COPY, exactly_once=True, options=secured),
        checkpoint=folder.copy_checkpoint,
        options={"maxOffsetsPerTrigger": "100000", "kafka.isolation.level": "read_committed", **secured},
    )
    run_pipeline(spark, config, on_progress=advance)


def _secured(settings: Config) -> dict[str, str]:
    return {option: settings[name] for name, option in _OPTIONS.items() if name in settings}


def stream(
    spark: SparkSession,
    settings: Config,
    options: Mapping[str, str],
    folder: Folder,
    advance: Advance,
    topic: str = TOPIC,
) -> None:
    """Run the pipeline from a topic to Parquet, with an aggregate per carrier and month.

    Parameters
    ----------
    settings:
        Settings for the connection of a client.
    options:
        The option of the source that refers to the password.
    topic:
        The topic to read. Spark reads only committed records.
    """
    config = PipelineConfig(
        bootstrap_servers=settings["bootstrap_servers"],
        topic=topic,
        value_format="json",
        schema=flights.SCHEMA,
        derive=DERIVED,
        sink=ParquetSink(folder.parquet, partition_by=("month",)),
        checkpoint=folder.checkpoint,
        options={
            "maxOffsetsPerTrigger": "100000",
            "kafka.isolation.level": "read_committed",
            **_secured(settings),
            **options,
        },
        aggregate=Aggregate(("carrier", "month"), AGGREGATE, folder.aggregate),
    )
    run_pipeline(spark, config, on_progress=advance)


def check(spark: SparkSession, folder: Folder, wanted: int, acknowledged: int) -> list[str]:
    """Compare the data set, the acknowledged records and the Parquet files, and describe all differences."""
    import pandas as pd

    differences = []
    table = pd.read_csv(flights.csv_path(), nrows=wanted)
    in_parquet = count_rows(spark, folder.parquet)
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
        differences.append(f"the aggregate differs from that of pandas: {error}")
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
    lines = [
        (
            step.name,
            f"{step.records:,}" if step.records else "-",
            f"{step.seconds:.1f}",
            f"{step.records_per_second:,.0f}" if step.records else "-",
            f"{step.cpu_seconds:.1f}",
        )
        for step in steps
    ]
    print_table(("step", "records", "seconds", "records/s", "CPU seconds"), lines)
    for name, place in places.items():
        print(f"{name:<10} {place}")
    sys.stdout.flush()
    for difference in differences:
        print(f"MISMATCH: {difference}", file=sys.stderr)
    if not differences:
        print("\nChecked: data set = acknowledged = Parquet, and the aggregate equals that of pandas.")
