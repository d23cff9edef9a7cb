"""``kafkacore pipeline``: a user's own topic through Spark to Parquet; arguments to a
:class:`PipelineConfig`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from kafkacore.cli.common import Commands, add_command, add_timeout, time_limits
from kafkacore.cli.report import Reporter
from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.options import parse_options
from kafkacore.spark.pipeline import AVAILABLE_NOW, KAFKA_COLUMNS, Aggregate, PipelineConfig, run_pipeline

EXAMPLES = """  kafkacore pipeline --bootstrap localhost:9092 --topic orders --format json \\
      --schema 'id BIGINT, item STRING, price DOUBLE, at TIMESTAMP' \\
      --derive 'day=to_date(at)' --partition-by day \\
      --sink parquet --path ./orders.parquet --checkpoint ./orders.checkpoint

  # keep running, a batch every ten seconds, the bytes as they are
  kafkacore pipeline --bootstrap localhost:9092 --topic orders --format raw \\
      --sink parquet --path ./raw.parquet --checkpoint ./raw.checkpoint --trigger '10 seconds'

  # an aggregate of everything in the sink, recomputed when the stream ends
  kafkacore pipeline ... --group-by item --aggregate 'orders=count(*)' --aggregate 'turnover=sum(price)' \\
      --aggregate-path ./by_item.parquet
"""
_INTERVAL = re.compile(r"\d+ (millisecond|second|minute|hour)s?")
_ASSIGNMENT = re.compile(r"(\w+)=(.+)", re.DOTALL)


def add_parser(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add ``pipeline`` to the command line."""
    parser = add_command(
        commands,
        "pipeline",
        "a topic through Spark Structured Streaming to Parquet",
        EXAMPLES,
        run,
        description="Read a topic with Spark, parse and enrich its records, and write Parquet exactly once. "
        "Run it again with the same --checkpoint and it goes on where it stopped.",
    )
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT", help="brokers, comma-separated")
    add_timeout(parser)
    parser.add_argument("--topic", required=True, help="topic, or comma-separated topics")
    parser.add_argument("--format", choices=("json", "raw"), default="json", help="what the values are")
    parser.add_argument(
        "--schema", metavar="DDL", help="columns of the JSON in Spark's DDL, or @FILE that holds it"
    )
    parser.add_argument(
        "--derive", action="append", type=_assignment, default=[], metavar="NAME=SQL", help="a further column"
    )
    parser.add_argument("--keep", default="", metavar="COLUMNS", help=f"of Kafka: {', '.join(KAFKA_COLUMNS)}")
    parser.add_argument("--partition-by", default="", metavar="COLUMNS", help="columns that become folders")
    parser.add_argument("--sink", choices=("parquet",), default="parquet", help="what to write")
    parser.add_argument("--path", required=True, type=Path, help="folder of the sink")
    parser.add_argument("--checkpoint", required=True, type=Path, help="folder of the checkpoint")
    parser.add_argument(
        "--trigger", type=_trigger, default=AVAILABLE_NOW, help='available-now, or "10 seconds"'
    )
    parser.add_argument(
        "--starting-offsets", default="earliest", help='earliest, latest or JSON {"topic":{"0":23}}'
    )
    parser.add_argument(
        "--option", action="append", type=_option, default=[], metavar="NAME=VALUE", help="a source option"
    )
    parser.add_argument("--group-by", default="", metavar="COLUMNS", help="columns of the aggregate")
    parser.add_argument("--aggregate", action="append", type=_assignment, default=[], metavar="NAME=SQL")
    parser.add_argument("--aggregate-path", type=Path, help="folder of the aggregate")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, and no progress")


def _assignment(text: str) -> tuple[str, str]:
    match = _ASSIGNMENT.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SQL, such as 'day=to_date(at)'")
    return match.group(1), match.group(2)


def _option(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as 'maxOffsetsPerTrigger=100000'")
    return name, value


def _trigger(text: str) -> str:
    if text != AVAILABLE_NOW and not _INTERVAL.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither {AVAILABLE_NOW} nor an interval such as '10 seconds'"
        )
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def config_of(arguments: argparse.Namespace) -> PipelineConfig:
    """The job that the arguments describe.

    Raises
    ------
    KafkaConfigurationError
        Arguments that do not go together; the message says what to change.
    """
    schema = arguments.schema
    if schema is not None and schema.startswith("@"):
        try:
            schema = Path(schema[1:]).read_text()
        except OSError as error:
            raise KafkaConfigurationError(f"--schema {schema}: {error.strerror}: {schema[1:]}") from None
    aggregate = None
    wanted = (arguments.group_by, arguments.aggregate, arguments.aggregate_path)
    if any(wanted):
        if not all(wanted):
            raise KafkaConfigurationError(
                "--group-by, --aggregate and --aggregate-path go together: give all three"
            )
        aggregate = Aggregate(
            _names(arguments.group_by), tuple(arguments.aggregate), arguments.aggregate_path
        )
    return PipelineConfig(
        bootstrap_servers=arguments.bootstrap,
        topic=arguments.topic,
        value_format=arguments.format,
        schema=schema,
        derive=tuple(arguments.derive),
        keep=_names(arguments.keep),
        partition_by=_names(arguments.partition_by),
        path=arguments.path.absolute(),
        checkpoint=arguments.checkpoint.absolute(),
        trigger=arguments.trigger,
        starting_offsets=arguments.starting_offsets,
        options=dict(arguments.option),
        aggregate=aggregate,
    )


def _require_topics(config: PipelineConfig, arguments: argparse.Namespace) -> None:
    """Ask for the topics once before Spark is started, which takes longer and asks for minutes."""
    from kafkacore.spark.planner import OffsetPlanner

    options = parse_options(config.source_options(), streaming=True)
    limits = {name: str(limit) for name, limit in time_limits(arguments, "request_timeout_ms").items()}
    planner = OffsetPlanner(
        replace(options, fetch_retries=0, client_configs=limits | dict(options.client_configs))
    )
    try:
        planner.partitions()
    finally:
        planner.close()


def run(arguments: argparse.Namespace) -> int:
    """Run the pipeline until its trigger ends it, or until Ctrl-C."""
    if importlib.util.find_spec("pyspark") is None:
        raise KafkaConfigurationError("the pipeline needs PySpark: pip install 'kafkacore[spark]'")
    from kafkacore.spark.session import spark_session

    config = config_of(arguments)
    _require_topics(config, arguments)
    reporter = Reporter(quiet=arguments.json)
    spark_log = config.checkpoint.parent / f"{config.checkpoint.name}.spark.log"
    reporter.say(f"Spark's own log is {spark_log}")
    short_lived = config.trigger == AVAILABLE_NOW
    with ExitStack() as running:
        with reporter.step("Start Spark"):
            session = spark_session("kafkacore pipeline", config.checkpoint.parent, spark_log, short_lived)
            spark = running.enter_context(session)
        with reporter.step(f"{config.topic} to {config.path.name}") as advance:
            result = run_pipeline(spark, config, on_progress=advance)
    if arguments.json:
        print(
            json.dumps({"records": result.rows, "batches": result.batches, "seconds": result.stream_seconds})
        )
    else:
        rate = result.rows / result.stream_seconds if result.stream_seconds else 0.0
        print(f"{result.rows:,} records in {result.stream_seconds:.1f} s ({rate:,.0f}/s) to {config.path}")
    return 0
