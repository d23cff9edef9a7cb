"""``kafkacore bench``: compare the performance of this client with other clients."""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from kafkacore.bench.options import CODECS, MODES, PEERS, PROFILES, BenchOptions
from kafkacore.bench.result import Result
from kafkacore.bench.spark.options import JsonValues, SparkBenchOptions
from kafkacore.bench.spark.rows import ROWS
from kafkacore.bench.task import ClientSettings
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import natural, require_listener
from kafkacore.cli.connection import add_security, client_settings, proxy_url_of
from kafkacore.cli.report import Reporter, print_table
from kafkacore.errors import KafkaConfigurationError

EXAMPLES = """  kafkacore bench                                  # produce and consume, on the embedded broker
  kafkacore bench all --bootstrap localhost:9092 --records 1000000 --rounds 5 --chart bench.png
  kafkacore bench produce --peers confluent --codec none,lz4,zstd --partitions 1,6
  kafkacore bench produce --rate 20000             # latency until the acknowledgement, at a fixed rate
  kafkacore bench roundtrip --linger-ms 0          # latency from send to reception
  kafkacore bench latency --stages --rate 1000     # where a record spends its time, stage by stage
  kafkacore bench broker --bootstrap localhost:9092 # compare the embedded broker with that broker
  kafkacore bench spark --bootstrap localhost:9092 --spark-kafka-jars 'jars/*'
  kafkacore bench --bootstrap localhost:9093 --security-protocol SSL --cafile ca.pem   # all clients use TLS
  kafkacore bench spark --rows read,stream --records 5000000
  kafkacore bench consume --json | jq '.results[] | {peer, median}'

Each client runs the same loop in a process of its own; the clients take turns in each round. Every record is
counted: a run that lost or duplicated a record is void, and the exit status is 1. Topics have names such as
kafkacore-bench-... and are deleted at the end. The other clients come with pip install 'kafkacore[bench]';
the Java client needs a JDK and Kafka's jars (KAFKA_HOME or --java-classpath).
"""
#: Mode that measures kafkacore alone.
LATENCY = "latency"
DESCRIPTION = """Compare this client with other clients: records and MB per second, CPU seconds per million
records, peak memory, and latency at a fixed rate."""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``bench`` to the command line."""
    parser = add_command(commands, "bench", COMMANDS["bench"].summary, EXAMPLES, run, DESCRIPTION)
    parser.add_argument(
        "mode",
        nargs="?",
        choices=(*MODES, LATENCY, "spark", "all"),
        help="what to measure (default: produce and consume); group consumes as a member of a group with "
        "automatic commits, arrow transfers whole columns, roundtrip measures the latency from send to "
        "reception, broker measures the embedded broker; not part of all: latency measures the round trip of "
        "kafkacore alone, with linger 0, and spark measures Spark",
    )
    _add_target(parser)
    _add_work(parser)
    _add_clients(parser)
    _add_spark(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the result as JSON, without progress")
    output.add_argument("--output", type=Path, metavar="FILE.json", help="also write the result to this file")
    output.add_argument("--chart", type=Path, metavar="FILE.png", help="draw a chart of the result")


def _add_target(parser: argparse.ArgumentParser) -> None:
    target = parser.add_argument_group("where")
    target.add_argument(
        "-b",
        "--bootstrap",
        metavar="HOST:PORT",
        help="use a running cluster (default: start the embedded broker)",
    )
    add_security(parser)
    target.add_argument(
        "--broker-pid", type=natural, metavar="PID", help="also measure the CPU time of this broker process"
    )
    target.add_argument(
        "--peers",
        type=_names(PEERS),
        default=PEERS,
        metavar="NAMES",
        help=f"clients to compare with: {','.join(PEERS)} (default: all), or none",
    )
    target.add_argument(
        "--java-classpath", metavar="JARS", help="path of Kafka's jars, as 'DIR/*' (default: KAFKA_HOME/libs)"
    )


def _add_work(parser: argparse.ArgumentParser) -> None:
    defaults = BenchOptions()
    work = parser.add_argument_group("work")
    work.add_argument(
        "--records",
        type=natural,
        help=f"records per run (default: {defaults.records:,}; spark: {SparkBenchOptions.records:,})",
    )
    work.add_argument(
        "--size", type=natural, default=defaults.size, help=f"value size in bytes (default: {defaults.size})"
    )
    work.add_argument(
        "--partitions", type=_counts, metavar="N,N", help="numbers of partitions (default: 1; spark: 2)"
    )
    work.add_argument(
        "--codec",
        type=_names(CODECS),
        default=("none",),
        metavar="NAMES",
        help=f"codecs: {','.join(CODECS)} (default: none)",
    )
    work.add_argument(
        "--rate",
        type=float,
        metavar="N",
        help="send N records per second, and measure latency from the time at which each record was due",
    )
    work.add_argument(
        "--stages",
        action="store_true",
        help="with latency, also show how long the records spend in each stage of the producer and the "
        "consumer (default: only until acknowledgement and reception)",
    )
    work.add_argument(
        "--compressible",
        type=float,
        default=defaults.compressible,
        metavar="SHARE",
        help="share of a value that all values have in common, like the names in JSON; the rest consists of "
        f"random letters from a set of 16 (default: {defaults.compressible})",
    )
    work.add_argument(
        "--rounds",
        type=natural,
        default=defaults.rounds,
        help=f"number of rounds (default: {defaults.rounds})",
    )


def _add_clients(parser: argparse.ArgumentParser) -> None:
    clients = parser.add_argument_group("settings of the clients")
    clients.add_argument(
        "--profile",
        choices=PROFILES,
        default="tuned",
        help="tuned (the default): acks=1, batches of 1 MB, linger 5 ms, large fetches; default: each "
        "client's own defaults",
    )
    clients.add_argument(
        "--acks", choices=("0", "1", "all"), help="acknowledgements that the producer requires"
    )
    clients.add_argument(
        "--batch-size", type=natural, metavar="BYTES", help="size of the producer's batches, in bytes"
    )
    clients.add_argument(
        "--linger-ms", type=float, metavar="MS", help="linger time of the producer, in milliseconds"
    )


def _add_spark(parser: argparse.ArgumentParser) -> None:
    defaults = SparkBenchOptions()
    spark = parser.add_argument_group("spark")
    spark.add_argument(
        "--rows",
        type=_names(tuple(ROWS)),
        default=defaults.rows,
        metavar="NAMES",
        help=f"measurements: {','.join(ROWS)} (default: all)",
    )
    spark.add_argument(
        "--spark-kafka-jars",
        metavar="JARS",
        help="jars of Spark's own source, as 'DIR/*' (default: do not measure that source)",
    )
    spark.add_argument(
        "--cores",
        type=natural,
        default=defaults.cores,
        help=f"number of cores for Spark (default: {defaults.cores})",
    )
    spark.add_argument(
        "--memory-gigabytes",
        type=float,
        default=defaults.memory_bytes / 1e9,
        metavar="N",
        help=f"gigabytes to read in the measurement 'memory' (default: {defaults.memory_bytes / 1e9:g})",
    )


def _names(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        if "none" not in known and names == ("none",):
            return ()
        if not names or (strange := [name for name in names if name not in known]):
            named = repr(strange[0]) if names else "nothing"
            raise argparse.ArgumentTypeError(f"{named} is not one of {', '.join(known)}")
        return names

    return parse


def _counts(text: str) -> tuple[int, ...]:
    return tuple(natural(part) for part in text.split(","))


def options_of(arguments: argparse.Namespace) -> BenchOptions:
    """Return the options of a benchmark of clients or the broker."""
    records = BenchOptions.records if arguments.records is None else arguments.records
    security = security_of(arguments)
    modes = {None: ("produce", "consume"), "all": MODES, LATENCY: ("roundtrip",)}.get(
        arguments.mode, (arguments.mode,)
    )
    is_latency = arguments.mode == LATENCY
    return BenchOptions(
        modes=modes,
        bootstrap=arguments.bootstrap,
        peers=() if is_latency else arguments.peers,
        records=records,
        size=arguments.size,
        partitions=arguments.partitions or (1,),
        codecs=arguments.codec,
        rate=arguments.rate,
        profile=arguments.profile,
        acks=arguments.acks,
        batch_size=arguments.batch_size,
        linger_ms=0.0 if is_latency and arguments.linger_ms is None else arguments.linger_ms,
        rounds=arguments.rounds,
        compressible=arguments.compressible,
        warm_up_records=min(BenchOptions.warm_up_records, records),
        java_classpath=arguments.java_classpath,
        broker_pid=arguments.broker_pid,
        stages=arguments.stages,
        security=security,
    )


def security_of(arguments: argparse.Namespace) -> ClientSettings:
    """Return the security settings and the proxy of the clients; empty for a direct plaintext connection."""
    given, named = arguments.bootstrap, argparse.Namespace(**vars(arguments))
    settings = client_settings(named)
    if arguments.command_config and given is None:
        # The properties file may contain the address of the cluster.
        arguments.bootstrap = named.bootstrap
    secure = {
        name: value for name, value in settings.items() if name.startswith(("security_", "ssl_", "sasl_"))
    }
    if secure.get("security_protocol", "PLAINTEXT") == "PLAINTEXT":
        secure = {}
    proxy_url = proxy_url_of(settings)
    return secure if proxy_url is None else {**secure, "proxy_url": proxy_url}


def spark_options_of(arguments: argparse.Namespace) -> SparkBenchOptions:
    """Return the options of a benchmark of Spark."""
    if arguments.stages:
        raise KafkaConfigurationError("--stages requires bench latency")
    for name, given in (("--partitions", arguments.partitions), ("--codec", arguments.codec)):
        if given is not None and len(given) != 1:
            raise KafkaConfigurationError(f"bench spark takes one {name} at a time")
    if security_of(arguments):
        raise KafkaConfigurationError(
            "bench spark supports only plaintext connections without a proxy: remove the arguments of the "
            "secure connection, and proxy.url"
        )
    defaults = SparkBenchOptions()
    return SparkBenchOptions(
        bootstrap=arguments.bootstrap,
        rows=arguments.rows,
        records=defaults.records if arguments.records is None else arguments.records,
        size=arguments.size,
        partitions=arguments.partitions[0] if arguments.partitions else defaults.partitions,
        codec=arguments.codec[0],
        rounds=arguments.rounds,
        cores=arguments.cores,
        kafka_jars=arguments.spark_kafka_jars,
        memory_bytes=int(arguments.memory_gigabytes * 1e9),
        broker_pid=arguments.broker_pid,
        json_values=flights_as_json(),
    )


def flights_as_json() -> JsonValues | None:
    """Return the flights of the demo as JSON values, or ``None`` if the data set is not installed."""
    from kafkacore.cli.flights import SCHEMA, csv_path, records

    try:
        csv_path()
    except KafkaConfigurationError:
        return None
    return JsonValues(SCHEMA, lambda: (value for _, value in records()))


def run(arguments: argparse.Namespace) -> int:
    """Run the benchmark and show the result; return 1 if a run lost or duplicated a record."""
    command, reporter = shlex.join(["kafkacore", *sys.argv[1:]]), Reporter(quiet=arguments.json)
    # Check everything first, because the measurement takes minutes.
    options = spark_options_of(arguments) if arguments.mode == "spark" else options_of(arguments)
    options.check()
    _check_files(arguments.output, arguments.chart)
    if options.bootstrap is not None:
        proxy_url = None if isinstance(options, SparkBenchOptions) else options.security.get("proxy_url")
        require_listener(options.bootstrap, proxy_url=proxy_url)
    if isinstance(options, SparkBenchOptions):
        from kafkacore.bench.spark.runner import run_spark_bench

        result = run_spark_bench(options, reporter, command)
    else:
        from kafkacore.bench.runner import run_bench

        result = run_bench(options, reporter, command)
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    if arguments.chart is not None:
        from kafkacore.bench.chart import draw, draw_stages

        (draw_stages if arguments.stages else draw)(result, arguments.chart)
    if arguments.json:
        print(json.dumps(result))
    else:
        _show(result)
    return 1 if result["void"] else 0


def _check_files(output: Path | None, chart: Path | None) -> None:
    """Check before the benchmark that its output can be written."""
    if chart is not None:
        if chart.suffix.lower() != ".png":
            raise KafkaConfigurationError(f"--chart {chart}: the name of the chart must end in .png")
        if importlib.util.find_spec("matplotlib") is None:
            raise KafkaConfigurationError("--chart needs matplotlib: pip install 'kafkacore[bench]'")
    for file in filter(None, (output, chart)):
        file.parent.mkdir(parents=True, exist_ok=True)
        was_there = file.exists()
        file.open("ab").close()
        if not was_there:
            file.unlink()


def _show(result: Result) -> None:
    from kafkacore.bench.table import setting_lines, stage_tables, tables

    for title, header, rows in (*tables(result), *stage_tables(result)):
        print(title)
        print_table(header, rows, has_sum=False)
    for entry in result["results"]:
        if entry["void"]:
            print(f"VOID: {entry['peer']}, {entry['mode']}, {entry['codec']}: {entry['void']}")
    for peer, why in result["missing"].items():
        print(f"without {peer}: {why}")
    for line in setting_lines(result):
        print(line)
    print(result["machine"]["words"])
    print(", ".join(f"{name} {version}" for name, version in result["versions"].items()))
