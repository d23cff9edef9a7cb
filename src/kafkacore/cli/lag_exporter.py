"""``kafkacore lag-exporter``: serve the lag of consumer groups to Prometheus, or print it once."""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
from typing import TYPE_CHECKING

from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import CommandError, seconds
from kafkacore.cli.connection import add_bootstrap, client_settings
from kafkacore.cli.interrupts import asked_to_stop
from kafkacore.cli.tables import print_rows
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.structs import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafkacore.admin.lag import ClusterLag, LagReader
    from kafkacore.admin.lag_collector import LagCollector
    from kafkacore.metrics.prometheus import Exporter

EXAMPLES = """  kafkacore lag-exporter --once
  kafkacore lag-exporter --json --groups 'orders-.*'
  kafkacore lag-exporter --listen 0.0.0.0:9308 --interval 15 --cluster-name eu
  kafkacore lag-exporter --command-config client.properties --topics 'orders|payments'

The user needs permission to describe the cluster, the groups and the topics. READ permission is not needed.
"""
DEFAULT_LISTEN = "127.0.0.1:9308"
DEFAULT_INTERVAL_S = 30.0
_PARTITION_COLUMNS = ("topic", "partition", "offset", "end_offset", "lag", "lag_seconds")
#: Pause between two checks of whether the command must stop.
_SLICE_MS = 250.0


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``lag-exporter`` to the command line."""
    parser = add_command(commands, "lag-exporter", COMMANDS["lag-exporter"].summary, EXAMPLES, run)
    add_bootstrap(parser)
    parser.add_argument(
        "--groups",
        type=_pattern,
        default=".*",
        metavar="REGEX",
        help="read only groups whose full name matches (default: all)",
    )
    parser.add_argument(
        "--topics",
        type=_pattern,
        default=".*",
        metavar="REGEX",
        help="read only topics whose full name matches (default: all)",
    )
    parser.add_argument("--once", action="store_true", help="print the lag as a table, and exit")
    parser.add_argument("--json", action="store_true", help="print the lag as JSON, and exit")
    parser.add_argument(
        "--listen",
        type=_address,
        default=DEFAULT_LISTEN,
        metavar="HOST:PORT",
        help=f"serve http://HOST:PORT/metrics; port 0 chooses a free port (default: {DEFAULT_LISTEN})",
    )
    parser.add_argument(
        "--interval",
        type=seconds,
        default=DEFAULT_INTERVAL_S,
        metavar="SECONDS",
        help=f"time between two requests for the lag (default: {DEFAULT_INTERVAL_S:g})",
    )
    parser.add_argument(
        "--cluster-name", default="", metavar="NAME", help="value of the label cluster_name (default: none)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the lag, or serve it until the command is stopped. Return the exit status."""
    from kafkacore.admin import KafkaAdminClient

    if arguments.once or arguments.json:
        settings = client_settings(arguments, "request_timeout_ms", "bootstrap_timeout_ms")
        with KafkaAdminClient(**settings) as admin:
            lag = admin.lag_reader(arguments.groups, arguments.topics).read(settings["request_timeout_ms"])
        return _print_json(lag) if arguments.json else _print_table(lag)
    try:
        from kafkacore.admin.lag_collector import LagCollector
    except ImportError as error:
        raise KafkaConfigurationError(
            f"lag-exporter needs Prometheus's client ({error}): run pip install 'kafkacore[prometheus]', or "
            "print the lag with --once or --json"
        ) from error
    # Report later failures to read the lag even without --log-level.
    logging.getLogger(LagCollector.__module__).setLevel(logging.WARNING)
    settings = client_settings(arguments, "request_timeout_ms", "bootstrap_timeout_ms")
    collector = LagCollector(arguments.cluster_name)
    host, port = arguments.listen
    with (
        KafkaAdminClient(**settings) as admin,
        asked_to_stop(lambda: print("kafkacore: stopping", file=sys.stderr)) as stops,
    ):
        reader = admin.lag_reader(arguments.groups, arguments.topics)
        look(reader, collector, settings["request_timeout_ms"])
        with _exporter(collector, port, host) as exporter:
            shown = f"[{host}]" if ":" in host else host
            print(f"kafkacore: serving http://{shown}:{exporter.port}/metrics", file=sys.stderr, flush=True)
            while not wait(arguments.interval * 1000, stops, SYSTEM_CLOCK):
                look(reader, collector, settings["request_timeout_ms"])
    return 0


def _exporter(collector: LagCollector, port: int, host: str) -> Exporter:
    from kafkacore.metrics.prometheus import Exporter

    try:
        return Exporter(collector, port, host)
    except OSError as error:
        raise CommandError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def look(reader: LagReader, collector: LagCollector, timeout_ms: float) -> None:
    """Read the lag once. If this fails, report the cluster as down. The next call tries again."""
    try:
        collector.update(reader.read(timeout_ms))
    except KafkaError as error:
        collector.failed(error)


def wait(duration_ms: float, stops: Callable[[], bool], clock: Clock) -> bool:
    """Wait for a duration in milliseconds, and return whether the command must stop."""
    deadline_ms = clock.monotonic_ms() + duration_ms
    while not stops():
        left_ms = deadline_ms - clock.monotonic_ms()
        if left_ms <= 0:
            return False
        clock.sleep_ms(min(left_ms, _SLICE_MS))
    return True


# ---- Output --------------------------------------------------------------------------------------------


def _print_json(lag: ClusterLag) -> int:
    print(
        json.dumps(
            {
                "groups": [
                    {
                        "group": group.group,
                        "state": group.state,
                        "members": group.members,
                        "sum_lag": group.sum_lag,
                        "max_lag_seconds": group.max_lag_seconds,
                        "partitions": [
                            {
                                "topic": each.topic,
                                "partition": each.partition,
                                "offset": each.offset,
                                "end_offset": each.end_offset,
                                "lag": each.lag,
                                "lag_seconds": each.lag_seconds,
                            }
                            for each in group.partitions
                        ],
                    }
                    for group in lag.groups
                ],
                "errors": [
                    {"kind": each.kind, "name": each.name, "error": str(each.error)} for each in lag.errors
                ],
                "duration_ms": round(lag.duration_ms, 3),
            }
        )
    )
    return 1 if lag.errors else 0


def _print_table(lag: ClusterLag) -> int:
    """Print a line per partition, and errors on standard error. Return 1 if there is an error."""
    rows: list[dict[str, object]] = []
    for group in lag.groups:
        start = {"group": group.group, "state": group.state, "members": group.members}
        rows += [
            start
            | {
                "topic": each.topic,
                "partition": each.partition,
                "offset": each.offset,
                "end_offset": each.end_offset,
                "lag": each.lag,
                "lag_seconds": None if each.lag_seconds is None else round(each.lag_seconds, 1),
            }
            for each in group.partitions
        ] or [start | dict.fromkeys(_PARTITION_COLUMNS)]
    print_rows(rows)
    for error in lag.errors:
        print(f"kafkacore: {error.kind} {printable(error.name)}: {error.error}", file=sys.stderr)
    return 1 if lag.errors else 0


# ---- Arguments -----------------------------------------------------------------------------------------


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None
    return text


def _address(text: str) -> tuple[str, int]:
    """Parse ``HOST:PORT`` or ``[IPv6]:PORT``."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host, int(port)
