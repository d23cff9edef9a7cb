"""``kafkacore offsets``: first offsets, end offsets, and offsets by time of partitions."""

from __future__ import annotations

import argparse

from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.connection import add_bootstrap
from kafkacore.cli.tables import add_json, print_rows
from kafkacore.cli.times import iso_time, timestamp_ms
from kafkacore.cli.topic_partitions import METAVAR, partitions_of, topic_argument
from kafkacore.structs import IsolationLevel, OffsetSpec

EXAMPLES = """  kafkacore offsets orders                        # first offset, end, and number of offsets
  kafkacore offsets orders:0,2-4 --read-committed --json
  kafkacore offsets orders --at 2026-07-01T12:00:00Z
  kafkacore offsets orders --max-timestamp
"""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``offsets`` to the command line."""
    parser = add_command(commands, "offsets", COMMANDS["offsets"].summary, EXAMPLES, _offsets)
    add_bootstrap(parser)
    add_json(parser)
    parser.add_argument(
        "topic", nargs="*", type=topic_argument, metavar=METAVAR, help="topics or partitions (default: all)"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--at",
        type=timestamp_ms,
        metavar="TIME",
        help="also print the first record at or after this time: ISO 8601 (UTC by default), or ms since the "
        "epoch",
    )
    which.add_argument(
        "--max-timestamp", action="store_true", help="also print the record with the largest timestamp"
    )
    parser.add_argument(
        "--read-committed",
        action="store_true",
        help="use the start of the first open transaction as the end of a partition",
    )


def _offsets(arguments: argparse.Namespace) -> int:
    level = IsolationLevel.READ_COMMITTED if arguments.read_committed else IsolationLevel.READ_UNCOMMITTED
    with admin_client(arguments) as admin:
        partitions = partitions_of(admin, arguments, arguments.topic or None)
        first = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST), level)
        last = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST), level)
        spec = OffsetSpec.MAX_TIMESTAMP if arguments.max_timestamp else arguments.at
        found = {} if spec is None else admin.list_partition_offsets(dict.fromkeys(partitions, spec), level)
    rows: list[dict[str, object]] = []
    for tp in partitions:
        row: dict[str, object] = {
            "topic": tp.topic,
            "partition": tp.partition,
            "earliest": first[tp].offset,
            "latest": last[tp].offset,
            "offsets": last[tp].offset - first[tp].offset,
        }
        if tp in found:
            is_there = found[tp].offset >= 0
            row["offset"] = found[tp].offset if is_there else None
            row["timestamp"] = found[tp].timestamp if is_there else None
            row["time"] = iso_time(found[tp].timestamp) if is_there else None
        rows.append(row)
    print_rows(rows, arguments.json)
    return 0
