"""``kafkacore pipeline``: stream a topic through Spark to a sink.

The module turns the arguments and the job file into a :class:`PipelineConfig`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import require_listener, seconds, time_limits
from kafkacore.cli.connection import add_security, allow_password, password_reference, properties_of
from kafkacore.cli.interrupts import asked_to_stop
from kafkacore.cli.report import Advance, Reporter
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.spark.pipeline import (
    AVAILABLE_NOW,
    KAFKA_COLUMNS,
    VALUE_FORMATS,
    Aggregate,
    ConsoleSink,
    DeltaSink,
    KafkaSink,
    ParquetSink,
    PipelineBatch,
    PipelineConfig,
    PipelineResult,
    Sink,
    run_pipeline,
)
from kafkacore.spark.pipeline.file import TomlValue, read_settings, settings_as_toml
from kafkacore.spark.reader.options import parse_options
from kafkacore.spark.secrets import referred, resolved, without_secret

EXAMPLES = """  kafkacore pipeline --bootstrap localhost:9092 --topic orders --format json \\
      --schema 'id BIGINT, item STRING, price DOUBLE, at TIMESTAMP' \\
      --derive 'day=to_date(at)' --partition-by day \\
      --sink parquet --path ./orders.parquet --checkpoint ./orders.checkpoint

  # run until Ctrl-C, and write a batch to a Delta table every ten seconds
  kafkacore pipeline --bootstrap localhost:9092 --topic orders --format avro \\
      --option schema.registry.url=http://localhost:8081 \\
      --sink delta --path ./orders.delta --checkpoint ./orders.checkpoint --trigger '10 seconds'

  # from topic to topic, exactly once
  kafkacore pipeline --bootstrap localhost:9092 --topic orders --format raw \\
      --sink kafkacore --to orders-copy --exactly-once --checkpoint ./copy.checkpoint

  # a secure cluster; the password is read from $KAFKACORE_PASSWORD or the terminal
  kafkacore pipeline --bootstrap broker:9093 --username alice --cafile ca.pem --topic orders \\
      --format string --sink console

  # show the records of a topic
  kafkacore pipeline --bootstrap localhost:9092 --topic orders --format string --sink console

  # an aggregate of all records in the sink, computed when the stream ends
  kafkacore pipeline ... --group-by item --aggregate 'orders=count(*)' --aggregate 'turnover=sum(price)' \\
      --aggregate-path ./by_item.parquet

  # all arguments from a file; arguments on the command line override it
  kafkacore pipeline job.toml --trigger available-now

  # write a job file from the arguments of a command
  kafkacore pipeline --bootstrap localhost:9092 --topic orders ... --print-config > job.toml

job.toml, with the names of the arguments:
  bootstrap = "localhost:9092"
  topic = "orders"
  schema = "id BIGINT, item STRING, price DOUBLE, at TIMESTAMP"
  sink = "parquet"
  path = "orders.parquet"
  partition-by = ["day"]
  checkpoint = "orders.checkpoint"
  derive = { day = "to_date(at)" }
  [option]
  maxOffsetsPerTrigger = 1000000
  # Or ${file:/run/secrets/kafka}. The environment must allow it:
  # KAFKACORE_SECRETS_VARIABLES=KAFKA_PASSWORD or KAFKACORE_SECRETS_PATHS=/run/secrets
  "kafka.sasl.password" = "${env:KAFKA_PASSWORD}"
"""
SINKS = ("parquet", "delta", "kafkacore", "console")
#: Arguments of a secure connection, which all commands have.
CONNECTION = ("security-protocol", "sasl-mechanism", "username", "password-file", "cafile", "command-config")
#: Names of the settings that a job file may have, by type: texts, tables and booleans.
TEXTS = (
    "bootstrap", "timeout", *CONNECTION, "topic", "format", "key-format", "schema", "mode", "keep",
    "partition-by", "sink", "path", "to", "to-bootstrap", "rows", "checkpoint", "trigger",
    "starting-offsets", "group-by", "aggregate-path",
)  # fmt: skip
TABLES = ("derive", "option", "sink-option", "aggregate")
FLAGS = ("exactly-once", "json")
#: Text settings whose value is a list of names.
NAMES = ("keep", "partition-by", "group-by")
DEFAULTS = {
    "timeout": "10",
    "format": "json",
    "key-format": "raw",
    "mode": "FAILFAST",
    "sink": "parquet",
    "trigger": AVAILABLE_NOW,
    "starting-offsets": "earliest",
    "rows": "20",
}
#: Arguments that each sink requires, and the sinks to which an argument applies.
NEEDED = {"parquet": ("path",), "delta": ("path",), "kafkacore": ("to",), "console": ()}
OWN = {
    "path": ("parquet", "delta"),
    "partition-by": ("parquet", "delta"),
    "to": ("kafkacore",),
    "to-bootstrap": ("kafkacore",),
    "exactly-once": ("kafkacore",),
    "sink-option": ("delta", "kafkacore"),
    "rows": ("console",),
}
_INTERVAL = re.compile(r"\d+ (millisecond|second|minute|hour)s?")
_NAME = re.compile(r"\w+")


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``pipeline`` to the command line."""
    parser = add_command(
        commands,
        "pipeline",
        COMMANDS["pipeline"].summary,
        EXAMPLES,
        run,
        description="Read a topic with Spark, decode and enrich its records, and write them to a sink. "
        "Parquet and Delta get each record exactly once. Run the command again with the same --checkpoint "
        "to continue where it stopped. The first Ctrl-C finishes the batch in progress, and the second "
        "Ctrl-C stops at once.",
    )
    parser.add_argument("job", nargs="?", type=Path, metavar="JOB.TOML", help="read arguments from this file")

    def add(name: str, metavar: str, text: str) -> None:
        parser.add_argument(f"--{name}", metavar=metavar, help=text)

    parser.add_argument("-b", "--bootstrap", metavar="HOST:PORT", help="brokers, comma-separated")
    add("timeout", "SECONDS", "give up if no broker answers within this time before the start (default: 10)")
    add_security(parser)
    add("topic", "TOPIC", "one or more topics, comma-separated")
    add("format", "FORMAT", f"format of the values: {', '.join(VALUE_FORMATS)} (default: json)")
    add("key-format", "FORMAT", "format of the keys: raw, string, long … (default: raw)")
    add("schema", "DDL", "fields of json or avro in Spark's DDL, or @FILE to read them from a file")
    add("mode", "MODE", "handling of malformed values: FAILFAST (default), DROPMALFORMED or PERMISSIVE")
    add("keep", "COLUMNS", f"columns of Kafka to keep: {', '.join(KAFKA_COLUMNS)}")
    _add_table(parser, "derive", "NAME=SQL", "add a column with the value of this SQL expression")
    add("sink", "SINK", f"destination: {', '.join(SINKS)} (default: parquet)")
    add("path", "PATH", "folder of the Parquet files, or folder or URL of the Delta table")
    add("partition-by", "COLUMNS", "columns by which the files are partitioned")
    add("to", "TOPIC", "topic to write to (sink kafkacore)")
    add("to-bootstrap", "HOST:PORT", "brokers of the topic of --to (default: those of --bootstrap)")
    parser.add_argument(
        "--exactly-once", action="store_true", default=None, help="write to the topic of --to in transactions"
    )
    _add_table(parser, "sink-option", "NAME=VALUE", "set an option of the sink")
    add("rows", "N", "rows of each batch to show (sink console; default: 20)")
    add("checkpoint", "FOLDER", "folder of the checkpoint (optional for the sink console)")
    add(
        "trigger",
        "WHEN",
        'available-now (default) stops at the end; an interval such as "10 seconds" continues',
    )
    add("starting-offsets", "WHERE", 'earliest (default), latest or JSON {"topic":{"0":23}}')
    _add_table(
        parser,
        "option",
        "NAME=VALUE",
        "set an option of the source; a secret may be ${env:NAME} or ${file:PATH}",
    )
    add("group-by", "COLUMNS", "grouping columns of the aggregate")
    _add_table(parser, "aggregate", "NAME=SQL", "add a column to the aggregate")
    add("aggregate-path", "FOLDER", "folder of the aggregate")
    parser.add_argument(
        "--json", action="store_true", default=None, help="print each batch and the result as a line of JSON"
    )
    parser.add_argument(
        "--print-config",
        action="store_true",
        help="check the arguments, print them as a job file, and exit; references replace secrets",
    )


def _add_table(parser: argparse.ArgumentParser, name: str, metavar: str, text: str) -> None:
    parser.add_argument(f"--{name}", action="append", type=_pair(metavar), metavar=metavar, help=text)


def _pair(form: str) -> Callable[[str], tuple[str, str]]:
    def parse(text: str) -> tuple[str, str]:
        name, separator, value = text.partition("=")
        if not separator or not name or not value:
            # The message omits the text, because the text may be a password.
            raise argparse.ArgumentTypeError(f"the value must have the form {form}")
        return name, value

    return parse


# ---- Settings ----------------------------------------------------------------------------------------------


#: Options of the proxy, in the order of their precedence.
PROXIES = ("kafka.proxy.url", "kafka.socks5.proxy")
#: Prefixes of the options of a secure connection and of the proxy.
SECURITY = ("kafka.security.", "kafka.sasl.", "kafka.ssl.", *PROXIES)


class Settings:
    """The settings of a job. The command line overrides the job file, and both override the defaults.

    Parameters
    ----------
    arguments:
        The arguments of the command line; ``None`` for arguments that were not given.

    Raises
    ------
    KafkaConfigurationError
        If the job file is invalid.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        file = {} if arguments.job is None else read_settings(arguments.job, TEXTS, TABLES, FLAGS)
        given = {name.replace("_", "-"): value for name, value in vars(arguments).items()}
        self._texts: dict[str, str] = {**DEFAULTS, **{n: file[n] for n in TEXTS if n in file}}
        self._texts |= {name: given[name] for name in TEXTS if given[name] is not None}
        self._tables = {name: [*file.get(name, ()), *(given[name] or ())] for name in TABLES}
        self._flags = {name: bool(file.get(name) if given[name] is None else given[name]) for name in FLAGS}
        self._said = {name for name in (*TEXTS, *TABLES, *FLAGS) if given[name] or file.get(name)}

    def said(self, name: str) -> bool:
        """Return whether the command line or the file contains the setting."""
        return name in self._said

    def text(self, name: str) -> str:
        """Return the value of a required text setting.

        Raises
        ------
        KafkaConfigurationError
            If the setting is missing.
        """
        if not (found := self._texts.get(name)):
            raise KafkaConfigurationError(f"--{name} is missing")
        return found

    def optional(self, name: str) -> str | None:
        """Return the value of a text setting, or ``None`` if it is not given."""
        return self._texts.get(name)

    def names(self, name: str) -> tuple[str, ...]:
        """Return the names in a setting that is a comma-separated list."""
        return tuple(part.strip() for part in self._texts.get(name, "").split(",") if part.strip())

    def choice(self, name: str, among: Sequence[str]) -> str:
        """Return the value of a text setting, which must be one of ``among``."""
        chosen = self.text(name)
        if chosen not in among:
            raise KafkaConfigurationError(f"--{name} {chosen} is unknown: use one of {', '.join(among)}")
        return chosen

    def table(self, name: str) -> dict[str, str]:
        """Return a table. If a name occurs several times, its last value counts."""
        return dict(self._tables[name])

    def expressions(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return column names with their SQL in order. For each name, the last expression counts."""
        for column in self.table(name):
            if not _NAME.fullmatch(column):
                raise KafkaConfigurationError(
                    f"--{name} {column!r} is not a valid column name: use NAME=SQL, such as 'day=to_date(at)'"
                )
        return tuple(self.table(name).items())

    def flag(self, name: str) -> bool:
        """Return the value of a boolean setting."""
        return self._flags[name]


def config_of(settings: Settings) -> PipelineConfig:
    """Return the job that the settings describe.

    Raises
    ------
    KafkaConfigurationError
        If the settings contradict each other.
    """
    sink = _sink(settings)
    checkpoint = settings.optional("checkpoint")
    if checkpoint is None and not isinstance(sink, ConsoleSink):
        raise KafkaConfigurationError(
            "--checkpoint is missing: give a folder in which the job stores its progress"
        )
    return PipelineConfig(
        bootstrap_servers=settings.text("bootstrap"),
        topic=settings.text("topic"),
        sink=sink,
        checkpoint=Path(checkpoint or ".").absolute(),
        value_format=settings.choice("format", VALUE_FORMATS),
        key_format=settings.text("key-format"),
        schema=_schema(settings.optional("schema")),
        mode=settings.text("mode").upper(),
        derive=settings.expressions("derive"),
        keep=settings.names("keep"),
        trigger=_trigger(settings.text("trigger")),
        starting_offsets=settings.text("starting-offsets"),
        options=_secured(settings) | settings.table("option"),
        aggregate=_aggregate(settings),
    )


def _secured(settings: Settings) -> dict[str, str]:
    """Return the options of the source for its connection, with a reference to the password."""
    given = {name.replace("-", "_"): settings.optional(name) for name in ("bootstrap", *CONNECTION)}
    properties = properties_of(argparse.Namespace(**given))
    if given["username"]:
        properties["sasl.password"] = password_reference(given["password_file"])
    return {
        f"kafka.{name}": text for name, text in properties.items() if f"kafka.{name}".startswith(SECURITY)
    }


def _security_of(options: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in options.items() if name.lower().startswith(SECURITY)}


def _sink(settings: Settings) -> Sink:
    kind = settings.choice("sink", SINKS)
    for name, owners in OWN.items():
        if settings.said(name) and kind not in owners:
            raise KafkaConfigurationError(
                f"--{name} works only with the sink {' or '.join(owners)}, not with {kind}"
            )
    for name in NEEDED[kind]:
        if not settings.optional(name):
            raise KafkaConfigurationError(f"--{name} is missing: the sink {kind} needs it")
    partition_by = settings.names("partition-by")
    if kind == "parquet":
        return ParquetSink(Path(settings.text("path")).absolute(), partition_by)
    options = settings.table("sink-option")
    if kind == "delta":
        path = settings.text("path")
        return DeltaSink(path if "://" in path else str(Path(path).absolute()), partition_by, options)
    if kind == "kafkacore":
        servers = settings.optional("to-bootstrap") or settings.text("bootstrap")
        # The security settings of the source also apply to the sink, unless the sink is on another cluster.
        secured = (
            {}
            if settings.said("to-bootstrap")
            else _security_of(_secured(settings) | settings.table("option"))
        )
        return KafkaSink(servers, settings.text("to"), settings.flag("exactly-once"), secured | options)
    rows = settings.text("rows")
    if not rows.isdecimal():
        raise KafkaConfigurationError(f"--rows {rows} is not a whole number")
    return ConsoleSink(int(rows), as_json=settings.flag("json"))


def _schema(text: str | None) -> str | None:
    if text is None or not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text()
    except OSError as error:
        raise KafkaConfigurationError(f"--schema {text}: {error.strerror}: {text[1:]}") from None


def _trigger(text: str) -> str:
    if text != AVAILABLE_NOW and not _INTERVAL.fullmatch(text):
        raise KafkaConfigurationError(
            f"--trigger {text!r} is invalid: use {AVAILABLE_NOW} or an interval such as '10 seconds'"
        )
    return text


def _aggregate(settings: Settings) -> Aggregate | None:
    wanted = ("group-by", "aggregate", "aggregate-path")
    if not any(settings.said(name) for name in wanted):
        return None
    if not all(settings.said(name) for name in wanted):
        raise KafkaConfigurationError("--group-by, --aggregate and --aggregate-path must be given together")
    path = Path(settings.text("aggregate-path")).absolute()
    return Aggregate(settings.names("group-by"), settings.expressions("aggregate"), path)


def effective(settings: Settings, config: PipelineConfig) -> dict[str, TomlValue]:
    """Return all settings of the job by name, including defaults and without secrets."""
    kind = settings.text("sink")
    found: dict[str, TomlValue] = {}
    for name in (*TEXTS, *FLAGS, *TABLES):
        if kind not in OWN.get(name, SINKS):
            continue
        if name in FLAGS:
            found[name] = settings.flag(name)
        elif name in TABLES:
            found[name] = {key: referred(text, key) for key, text in settings.table(name).items()}
        elif name in NAMES:
            found[name] = settings.names(name)
        else:
            found[name] = without_secret(settings.optional(name) or "")
    found["schema"], found["mode"] = config.schema or "", config.mode
    if isinstance(config.sink, KafkaSink):
        found["to-bootstrap"] = config.sink.bootstrap_servers
    options = found.get("option")
    is_delta = isinstance(config.sink, DeltaSink)
    if is_delta and isinstance(options, dict) and not _named(options, "maxOffsetsPerTrigger"):
        options["maxOffsetsPerTrigger"] = config.source_options()["maxOffsetsPerTrigger"]
    return {name: value for name, value in found.items() if value or value is False}


def _named(options: Mapping[str, str], name: str) -> bool:
    return name.lower() in (given.lower() for given in options)


# ---- The run -----------------------------------------------------------------------------------------------


def run(arguments: argparse.Namespace) -> int:
    """Run the pipeline until its trigger ends it or Ctrl-C stops it."""
    if importlib.util.find_spec("pyspark") is None:
        raise KafkaConfigurationError("the pipeline needs PySpark: pip install 'kafkacore[spark]'")
    settings = Settings(arguments)
    user, password_file = settings.optional("username"), settings.optional("password-file")
    # A path on the command line is trusted, so permit it here. A path in a job file is used only if the
    # environment permits it.
    if user and password_file == arguments.password_file:
        allow_password(user, password_file, asks=not arguments.print_config)
    config = config_of(settings)
    if arguments.print_config:
        print(settings_as_toml(effective(settings, config)), end="")
        return 0
    if not settings.said("timeout"):
        for servers, proxy_url in {_cluster_of(config.source_options()), *_clusters_of(config.sink)}:
            require_listener(servers, proxy_url=proxy_url)
    _require_topics(config, _timeout(settings.text("timeout")))
    as_json = settings.flag("json")
    reporter = Reporter(quiet=as_json)
    with ExitStack() as running:
        if settings.optional("checkpoint") is None:
            config = replace(config, checkpoint=running.enter_context(_temporary_folder()) / "checkpoint")
        result = _run(config, reporter, as_json, running)
    _print_result(config, result, as_json)
    if result.stopped:
        # The job has stopped cleanly, but the exit status must show the interrupt.
        raise KeyboardInterrupt
    return 0


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Yield a temporary folder for a job without a checkpoint. After a failure, keep Spark's log."""
    left = folder = Path(tempfile.mkdtemp(prefix="kafkacore-pipeline-"))
    try:
        yield folder
    except KafkaError:
        left = folder / "checkpoint"
        raise
    finally:
        shutil.rmtree(left, ignore_errors=True)


def _clusters_of(sink: Sink) -> list[tuple[str, str | None]]:
    if not isinstance(sink, KafkaSink):
        return []
    return [_cluster_of({"kafka.bootstrap.servers": sink.bootstrap_servers, **sink.options})]


def _cluster_of(options: Mapping[str, str]) -> tuple[str, str | None]:
    """Return the brokers and the URL of the proxy in the options of a source or a sink."""
    given = {name.lower(): text for name, text in options.items()}
    proxy = next((name for name in PROXIES if given.get(name)), None)
    return given["kafka.bootstrap.servers"], None if proxy is None else resolved(given[proxy], proxy)


def _timeout(text: str) -> argparse.Namespace:
    try:
        return argparse.Namespace(timeout=seconds(text))
    except argparse.ArgumentTypeError as error:
        raise KafkaConfigurationError(f"--timeout {error}") from None


def _require_topics(config: PipelineConfig, timeout: argparse.Namespace) -> None:
    """Check that the topics exist before Spark starts, because Spark would retry for minutes."""
    from kafkacore.spark.reader.planner import MissingTopicError

    limits = {name: str(limit) for name, limit in time_limits(timeout, "request_timeout_ms").items()}
    try:
        _request_topics(config.source_options(), limits)
    except MissingTopicError as error:
        raise MissingTopicError(str(error).replace("the subscribe option", "--topic")) from None
    sink = config.sink
    if isinstance(sink, KafkaSink) and sink.bootstrap_servers != config.bootstrap_servers:
        # The brokers of the sink may create the topic with the first write.
        with suppress(MissingTopicError):
            where = {"kafka.bootstrap.servers": sink.bootstrap_servers, "subscribe": sink.topic}
            _request_topics(where | _security_of(sink.options), limits)


def _request_topics(source_options: Mapping[str, str], limits: Mapping[str, str]) -> None:
    """Request the metadata of the topics once."""
    from kafkacore.spark.reader.planner import OffsetPlanner

    options = parse_options(source_options, streaming=True)
    configs = {**limits, **options.client_configs}
    planner = OffsetPlanner(replace(options, fetch_retries=0, client_configs=configs))
    try:
        planner.partitions()
    finally:
        planner.close()


def _run(config: PipelineConfig, reporter: Reporter, as_json: bool, running: ExitStack) -> PipelineResult:
    from kafkacore.spark.session import spark_session

    spark_log = config.checkpoint.parent / f"{config.checkpoint.name}.spark.log"
    reporter.say(f"Spark writes its log to {spark_log}")
    with reporter.step("Start Spark"):
        short_lived = config.trigger == AVAILABLE_NOW
        session = spark_session("kafkacore pipeline", config.checkpoint.parent, spark_log, short_lived)
        spark = running.enter_context(session)
    with (
        asked_to_stop(
            lambda: reporter.say("Finishing the batch in progress. Press Ctrl-C again to stop at once.")
        ) as stop,
        reporter.step(f"{config.topic} to {config.sink.label}") as advance,
    ):
        shown = _Shown(advance, as_json)
        return run_pipeline(spark, config, shown.advance, on_batch=shown.batch, stop_wanted=stop)


class _Shown:
    """Shows the progress of the batches, or prints them as JSON."""

    def __init__(self, advance: Advance, as_json: bool) -> None:
        self._advance = advance
        self._as_json = as_json
        self._note = ""

    def advance(self, rows: int) -> None:
        """Show the number of rows so far."""
        self._advance(rows, self._note)

    def batch(self, batch: PipelineBatch) -> None:
        """Show a finished batch."""
        if self._as_json:
            shown = {
                "batch": batch.number,
                "records": batch.rows,
                "milliseconds": batch.duration_ms,
                "records_per_second": round(batch.rows_per_second, 1),
                "behind": batch.behind,
                "phases_ms": dict(batch.phases_ms),
            }
            print(json.dumps(shown), flush=True)
        behind = "" if batch.behind is None else f", {batch.behind:,} behind"
        self._note = (
            f"; batch {batch.number} of {batch.rows:,} in {batch.duration_ms:,} ms "
            f"({batch.rows_per_second:,.0f}/s){behind}"
        )


def _print_result(config: PipelineConfig, result: PipelineResult, as_json: bool) -> None:
    if as_json:
        took = round(result.stream_seconds, 3)
        shown = {"records": result.rows, "batches": result.batches, "seconds": took}
        print(json.dumps(shown | {"stopped": result.stopped}), flush=True)
        return
    rate = result.rows / result.stream_seconds if result.stream_seconds else 0.0
    where = config.sink.path if isinstance(config.sink, ParquetSink | DeltaSink) else config.sink.label
    print(f"{result.rows:,} records in {result.stream_seconds:.1f} s ({rate:,.0f}/s) to {where}", flush=True)
