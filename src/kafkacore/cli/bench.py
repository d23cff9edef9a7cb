"""``kafkacore bench``: this client and its peers, measured against each other."""

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
from kafkacore.cli.common import CommandParser, Commands, add_command, natural, require_listener
from kafkacore.cli.connection import add_security, client_settings
from kafkacore.cli.report import Reporter, print_table
from kafkacore.errors import KafkaConfigurationError

EXAMPLES = """  kafkacore bench                                  # produce and consume, on the embedded broker
  kafkacore bench all --bootstrap localhost:9092 --records 1000000 --rounds 5 --chart bench.png
  kafkacore bench produce --peers confluent --codec none,lz4,zstd --partitions 1,6
  kafkacore bench produce --rate 20000             # latency to the acknowledgement, at a fixed rate
  kafkacore bench roundtrip --linger-ms 0          # latency from send to reception
  kafkacore bench broker --bootstrap localhost:9092 # the embedded broker against that one
  kafkacore bench spark --bootstrap localhost:9092 --spark-kafka-jars 'jars/*'
  kafkacore bench --bootstrap localhost:9093 --security-protocol SSL --cafile ca.pem   # all clients by TLS
  kafkacore bench spark --rows read,stream --records 5000000
  kafkacore bench consume --json | jq '.results[] | {peer, median}'

Each client runs in a process of its own, the same loop in each, in turn round by round. Every record is
counted: a run that lost or doubled one is void, and the exit status is 1. Topics are called
kafkacore-bench-... and deleted at the end. Peers come with pip install 'kafkacore[bench]'; the peer java
needs a JDK and Kafka's jars (KAFKA_HOME or --java-classpath).
"""
DESCRIPTION = """Measure this client and its peers against each other: records and MB a second, CPU seconds
per million records, peak memory, latency at a fixed rate."""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``bench`` to the command line."""
    parser = add_command(
        commands, "bench", "measure this client against its peers", EXAMPLES, run, DESCRIPTION
    )
    parser.add_argument(
        "mode",
        nargs="?",
        choices=(*MODES, "spark", "all"),
        help="what to measure (default: produce and consume); group is consume as the member of a group that "
        "commits by itself, arrow is whole columns, roundtrip is latency "
        "from send to reception, broker is the embedded broker, spark (not in all) is Spark's tables",
    )
    _add_target(parser)
    _add_work(parser)
    _add_clients(parser)
    _add_spark(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the result as JSON, show no progress")
    output.add_argument("--output", type=Path, metavar="FILE.json", help="write the result there too")
    output.add_argument("--chart", type=Path, metavar="FILE.png", help="draw it")


def _add_target(parser: argparse.ArgumentParser) -> None:
    target = parser.add_argument_group("where")
    target.add_argument(
        "--bootstrap", metavar="HOST:PORT", help="a running cluster (default: start the embedded broker)"
    )
    add_security(parser)
    target.add_argument(
        "--broker-pid", type=natural, metavar="PID", help="the cluster's process here: measure its CPU too"
    )
    target.add_argument(
        "--peers",
        type=_names(PEERS),
        default=PEERS,
        metavar="NAMES",
        help=f"clients to compare with, of {','.join(PEERS)} (default: all); none for no other",
    )
    target.add_argument(
        "--java-classpath", metavar="JARS", help="Kafka's jars, as 'DIR/*' (default: KAFKA_HOME/libs)"
    )


def _add_work(parser: argparse.ArgumentParser) -> None:
    defaults = BenchOptions()
    work = parser.add_argument_group("work")
    work.add_argument(
        "--records",
        type=natural,
        help=f"a run (default: {defaults.records:,}; spark: {SparkBenchOptions.records:,})",
    )
    work.add_argument(
        "--size", type=natural, default=defaults.size, help=f"bytes of a value (default: {defaults.size})"
    )
    work.add_argument("--partitions", type=_counts, metavar="N,N", help="of the topic (default: 1; spark: 2)")
    work.add_argument(
        "--codec", type=_names(CODECS), default=("none",), metavar="NAMES", help=f"of {','.join(CODECS)}"
    )
    work.add_argument(
        "--rate",
        type=float,
        metavar="N",
        help="send so many records a second, and measure latency from when each should have been sent",
    )
    work.add_argument(
        "--compressible",
        type=float,
        default=defaults.compressible,
        metavar="SHARE",
        help="share of a value that is the same text in all, as JSON's names; the rest is random letters "
        f"out of 16 (default: {defaults.compressible})",
    )
    work.add_argument(
        "--rounds", type=natural, default=defaults.rounds, help=f"of each client (default: {defaults.rounds})"
    )


def _add_clients(parser: argparse.ArgumentParser) -> None:
    clients = parser.add_argument_group("clients' settings")
    clients.add_argument(
        "--profile",
        choices=PROFILES,
        default="tuned",
        help="tuned: acks 1, batches of 1 MB, linger 5 ms, large fetches; default: each client as it comes",
    )
    clients.add_argument("--acks", choices=("0", "1", "all"))
    clients.add_argument("--batch-size", type=natural, metavar="BYTES")
    clients.add_argument("--linger-ms", type=float, metavar="MS")


def _add_spark(parser: argparse.ArgumentParser) -> None:
    defaults = SparkBenchOptions()
    spark = parser.add_argument_group("spark")
    spark.add_argument(
        "--rows",
        type=_names(tuple(ROWS)),
        default=defaults.rows,
        metavar="NAMES",
        help=f"what to measure, of {','.join(ROWS)} (default: all)",
    )
    spark.add_argument(
        "--spark-kafka-jars", metavar="JARS", help="of Spark's own source, as 'DIR/*' (default: ours alone)"
    )
    spark.add_argument(
        "--cores", type=natural, default=defaults.cores, help=f"of Spark (default: {defaults.cores})"
    )
    spark.add_argument(
        "--memory-gigabytes",
        type=float,
        default=defaults.memory_bytes / 1e9,
        metavar="N",
        help=f"read by the row memory (default: {defaults.memory_bytes / 1e9:g})",
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
    """The benchmark that the arguments ask for."""
    records = BenchOptions.records if arguments.records is None else arguments.records
    security = security_of(arguments)
    modes = {None: ("produce", "consume"), "all": MODES}.get(arguments.mode, (arguments.mode,))
    return BenchOptions(
        modes=modes,
        bootstrap=arguments.bootstrap,
        peers=arguments.peers,
        records=records,
        size=arguments.size,
        partitions=arguments.partitions or (1,),
        codecs=arguments.codec,
        rate=arguments.rate,
        profile=arguments.profile,
        acks=arguments.acks,
        batch_size=arguments.batch_size,
        linger_ms=arguments.linger_ms,
        rounds=arguments.rounds,
        compressible=arguments.compressible,
        warm_up_records=min(BenchOptions.warm_up_records, records),
        java_classpath=arguments.java_classpath,
        broker_pid=arguments.broker_pid,
        security=security,
    )


def security_of(arguments: argparse.Namespace) -> ClientSettings:
    """How our clients reach the cluster, without its address; nothing for an open one."""
    given, named = arguments.bootstrap, argparse.Namespace(**vars(arguments))
    settings = client_settings(named)
    if arguments.command_config and given is None:
        # The file may say where the cluster is.
        arguments.bootstrap = named.bootstrap
    secure = {
        name: value for name, value in settings.items() if name.startswith(("security_", "ssl_", "sasl_"))
    }
    return {} if secure.get("security_protocol", "PLAINTEXT") == "PLAINTEXT" else secure


def spark_options_of(arguments: argparse.Namespace) -> SparkBenchOptions:
    """The benchmark of Spark that the arguments ask for."""
    for name, given in (("--partitions", arguments.partitions), ("--codec", arguments.codec)):
        if given is not None and len(given) != 1:
            raise KafkaConfigurationError(f"bench spark takes one {name} at a time")
    if security_of(arguments):
        raise KafkaConfigurationError(
            "bench spark measures without encryption: leave the secure connection out"
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
    """The demo's flights as values, if its data set is installed."""
    from kafkacore.cli.flights import SCHEMA, csv_path, read_flights

    encode = json.JSONEncoder(separators=(",", ":")).encode
    try:
        csv_path()
    except KafkaConfigurationError:
        return None
    return JsonValues(SCHEMA, lambda: (encode(flight).encode() for flight in read_flights()))


def run(arguments: argparse.Namespace) -> int:
    """Measure and show; 1 if a run is void."""
    command, reporter = shlex.join(["kafkacore", *sys.argv[1:]]), Reporter(quiet=arguments.json)
    # Checked before the files are looked at, and those before minutes of measuring.
    options = spark_options_of(arguments) if arguments.mode == "spark" else options_of(arguments)
    options.check()
    _check_files(arguments.output, arguments.chart)
    if options.bootstrap is not None:
        require_listener(options.bootstrap)
    if isinstance(options, SparkBenchOptions):
        from kafkacore.bench.spark.runner import run_spark_bench

        result = run_spark_bench(options, reporter, command)
    else:
        from kafkacore.bench.runner import run_bench

        result = run_bench(options, reporter, command)
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    if arguments.chart is not None:
        from kafkacore.bench.chart import draw

        draw(result, arguments.chart)
    if arguments.json:
        print(json.dumps(result))
    else:
        _show(result)
    return 1 if result["void"] else 0


def _check_files(output: Path | None, chart: Path | None) -> None:
    """Refuse what could not be written at the end, before minutes of measuring."""
    if chart is not None:
        if chart.suffix.lower() != ".png":
            raise KafkaConfigurationError(f"--chart {chart}: the picture is a PNG, call it ….png")
        if importlib.util.find_spec("matplotlib") is None:
            raise KafkaConfigurationError("--chart needs matplotlib: pip install 'kafkacore[bench]'")
    for file in filter(None, (output, chart)):
        file.parent.mkdir(parents=True, exist_ok=True)
        was_there = file.exists()
        file.open("ab").close()
        if not was_there:
            file.unlink()


def _show(result: Result) -> None:
    from kafkacore.bench.table import setting_lines, tables

    for title, header, rows in tables(result):
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
