"""``kafkacore bench``: this client and its peers, measured against each other."""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kafkacore.bench.options import CODECS, MODES, PEERS, PROFILES, BenchOptions
from kafkacore.cli.common import Commands, add_command, natural
from kafkacore.cli.report import Reporter, print_table
from kafkacore.errors import KafkaConfigurationError

EXAMPLES = """  kafkacore bench                                  # produce and consume, on the embedded broker
  kafkacore bench all --bootstrap localhost:9092 --records 1000000 --rounds 5 --chart bench.png
  kafkacore bench produce --peers confluent --codec none,lz4,zstd --partitions 1,6
  kafkacore bench produce --rate 20000             # latency to the acknowledgement, at a fixed rate
  kafkacore bench roundtrip --linger-ms 0          # latency from send to reception
  kafkacore bench broker --bootstrap localhost:9092 # the embedded broker against that one
  kafkacore bench consume --json | jq '.results[] | {peer, median}'

Each client runs in a process of its own, the same loop in each, in turn round by round. Every record is
counted: a run that lost or doubled one is void, and the exit status is 1. Topics are called
kafkacore-bench-... and deleted at the end. Peers come with pip install 'kafkacore[bench]'; the peer java
needs a JDK and Kafka's jars (KAFKA_HOME or --java-classpath).
"""
DESCRIPTION = """Measure this client and its peers against each other: records and MB a second, CPU seconds
per million records, peak memory, latency at a fixed rate."""


def add_parser(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add ``bench`` to the command line."""
    parser = add_command(
        commands, "bench", "measure this client against its peers", EXAMPLES, run, DESCRIPTION
    )
    parser.add_argument(
        "mode",
        nargs="?",
        choices=(*MODES, "all"),
        help="what to measure (default: produce and consume); group is consume as the member of a group that "
        "commits by itself, arrow is whole columns, roundtrip is latency "
        "from send to reception, broker is the embedded broker",
    )
    _add_target(parser)
    _add_work(parser)
    _add_clients(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the result as JSON, show no progress")
    output.add_argument("--output", type=Path, metavar="FILE.json", help="write the result there too")
    output.add_argument("--chart", type=Path, metavar="FILE.png", help="draw it")


def _add_target(parser: argparse.ArgumentParser) -> None:
    target = parser.add_argument_group("where")
    target.add_argument(
        "--bootstrap", metavar="HOST:PORT", help="a running cluster (default: start the embedded broker)"
    )
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
        "--records", type=natural, default=defaults.records, help=f"a run (default: {defaults.records:,})"
    )
    work.add_argument(
        "--size", type=natural, default=defaults.size, help=f"bytes of a value (default: {defaults.size})"
    )
    work.add_argument(
        "--partitions", type=_counts, default=(1,), metavar="N,N", help="of the topic (default: 1)"
    )
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
    # The embedded broker has no groups.
    everything = MODES if arguments.bootstrap else tuple(mode for mode in MODES if mode != "group")
    modes = {None: ("produce", "consume"), "all": everything}.get(arguments.mode, (arguments.mode,))
    return BenchOptions(
        modes=modes,
        bootstrap=arguments.bootstrap,
        peers=arguments.peers,
        records=arguments.records,
        size=arguments.size,
        partitions=arguments.partitions,
        codecs=arguments.codec,
        rate=arguments.rate,
        profile=arguments.profile,
        acks=arguments.acks,
        batch_size=arguments.batch_size,
        linger_ms=arguments.linger_ms,
        rounds=arguments.rounds,
        compressible=arguments.compressible,
        warm_up_records=min(BenchOptions.warm_up_records, arguments.records),
        java_classpath=arguments.java_classpath,
        broker_pid=arguments.broker_pid,
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure and show; 1 if a run is void."""
    from kafkacore.bench.runner import run_bench

    options = options_of(arguments)
    options.check()
    _check_files(arguments.output, arguments.chart)
    reporter = Reporter(quiet=arguments.json)
    result = run_bench(options, reporter, shlex.join(["kafkacore", *sys.argv[1:]]))
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


def _show(result: dict[str, Any]) -> None:
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
