"""``kafkacore log-dirs``: log directories of brokers, and the sizes of the partitions in them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import natural
from kafkacore.cli.connection import add_bootstrap
from kafkacore.cli.tables import add_json, print_json, print_rows
from kafkacore.cli.topic_partitions import METAVAR, partitions_of, topic_argument
from kafkacore.errors import for_code

if TYPE_CHECKING:
    from kafkacore.admin.cluster import BrokerLogDirs

EXAMPLES = """  kafkacore log-dirs                              # size of each directory
  kafkacore log-dirs orders:0,2-4 returns         # size of each partition
  kafkacore log-dirs --partitions --broker 1 --json
"""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``log-dirs`` to the command line."""
    parser = add_command(commands, "log-dirs", COMMANDS["log-dirs"].summary, EXAMPLES, _log_dirs)
    add_bootstrap(parser)
    add_json(parser)
    parser.add_argument(
        "topic",
        nargs="*",
        type=topic_argument,
        metavar=METAVAR,
        help="print the sizes of these topics or partitions",
    )
    parser.add_argument(
        "--broker", action="append", type=natural, metavar="ID", help="id of a broker (default: all)"
    )
    parser.add_argument(
        "--partitions",
        action="store_true",
        help="print a line per partition, and not per directory (implied if topics are given)",
    )


def _log_dirs(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        wanted: dict[str, list[int]] | None = None
        if arguments.topic:
            wanted = {}
            for tp in partitions_of(admin, arguments, arguments.topic):
                wanted.setdefault(tp.topic, []).append(tp.partition)
        described = admin.describe_log_dirs(wanted, arguments.broker)
    folders = log_dirs(described)
    if arguments.json:
        print_json(folders)
    elif arguments.topic or arguments.partitions:
        print_rows(
            [
                {"broker": each["broker"], "log_dir": each["log_dir"], **partition}
                for each in folders
                for partition in each["partitions"]
            ]
        )
    else:
        print_rows([{**each, "partitions": len(each["partitions"])} for each in folders])
    return 0


def log_dirs(described: Iterable[BrokerLogDirs]) -> list[dict[str, Any]]:
    """Return a dict per log directory, with its partitions. Sizes are in bytes."""
    folders = []
    for of_broker in sorted(described, key=lambda each: each["broker"]):
        for folder in of_broker["log_dirs"]:
            partitions = [
                {
                    "topic": topic["name"],
                    "partition": partition["partition_index"],
                    "size": partition["partition_size"],
                    "offset_lag": partition["offset_lag"],
                    "is_future": partition["is_future_key"],
                }
                for topic in folder["topics"]
                for partition in topic["partitions"]
            ]
            partitions.sort(key=lambda each: (each["topic"], each["partition"]))
            folders.append(
                {
                    "broker": of_broker["broker"],
                    "log_dir": folder["log_dir"],
                    "error": for_code(folder["error_code"]).message if folder["error_code"] else None,
                    "size": sum(each["size"] for each in partitions),
                    # Kafka before 3.3 does not report the size of the volume.
                    "total_bytes": folder["total_bytes"] if folder["total_bytes"] >= 0 else None,
                    "usable_bytes": folder["usable_bytes"] if folder["usable_bytes"] >= 0 else None,
                    "partitions": partitions,
                }
            )
    return folders
