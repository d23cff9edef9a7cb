"""``kafkacore elect-leaders``: elect preferred or unclean leaders of partitions."""

from __future__ import annotations

import argparse
from pathlib import Path

from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.connection import add_bootstrap
from kafkacore.cli.json_files import read_partitions
from kafkacore.cli.tables import add_json, print_note, print_rows, raise_failures
from kafkacore.cli.topic_partitions import METAVAR, TopicArgument, partitions_of, topic_argument
from kafkacore.errors import ElectionNotNeededError, KafkaConfigurationError, for_code
from kafkacore.structs import TopicPartition, partition_name, printable

EXAMPLES = """  kafkacore elect-leaders orders:0,2-4
  kafkacore elect-leaders --all
  kafkacore elect-leaders --from-file partitions.json --json
  kafkacore elect-leaders orders:0 --unclean      # may lose records
"""
#: Election types of the protocol.
_PREFERRED, _UNCLEAN = 0, 1


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``elect-leaders`` to the command line."""
    parser = add_command(commands, "elect-leaders", COMMANDS["elect-leaders"].summary, EXAMPLES, _elect)
    add_bootstrap(parser)
    add_json(parser)
    parser.add_argument(
        "topic",
        nargs="*",
        type=topic_argument,
        metavar=METAVAR,
        help="elect leaders of these topics or partitions, such as orders:0,2-4",
    )
    parser.add_argument("--all", action="store_true", help="elect leaders of all partitions of the cluster")
    parser.add_argument(
        "--from-file",
        type=Path,
        metavar="JSON",
        help='partitions as kafka-leader-election.sh reads them: {"partitions": [{"topic": "orders", '
        '"partition": 0}]}',
    )
    parser.add_argument(
        "--unclean",
        action="store_true",
        help="elect any replica of a partition without a leader, which may lose records (default: elect the "
        "preferred replica)",
    )


def _elect(arguments: argparse.Namespace) -> int:
    if bool(arguments.topic) + arguments.all + (arguments.from_file is not None) != 1:
        raise KafkaConfigurationError("give either topics, --all, or --from-file")
    wanted = arguments.topic
    if arguments.from_file is not None:
        wanted = [TopicArgument(tp.topic, (tp.partition,)) for tp in read_partitions(arguments.from_file)]
    with admin_client(arguments) as admin:
        partitions: dict[str, list[int]] = {}
        for tp in partitions_of(admin, arguments, wanted or None):
            partitions.setdefault(tp.topic, []).append(tp.partition)
        response = admin.elect_leaders(
            _UNCLEAN if arguments.unclean else _PREFERRED, partitions, raise_errors=False
        )
    results = {
        TopicPartition(topic.topic, partition.partition_id): partition
        for topic in response.replica_election_results
        for partition in topic.partition_result
    }
    rows = []
    failures = []
    for tp, result in sorted(results.items()):
        error = for_code(result.error_code)
        is_failed = bool(error.errno) and not issubclass(error, ElectionNotNeededError)
        rows.append(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "outcome": "elected" if not error.errno else "failed" if is_failed else "not needed",
                "error": error.message if is_failed else None,
            }
        )
        if is_failed:
            detail = printable(result.error_message or "no reason given")
            failures.append(f"{partition_name(tp)}: {error.message}: {detail}")
    print_rows(rows, arguments.json)
    raise_failures(failures)
    elected = sum(row["outcome"] == "elected" for row in rows)
    print_note(f"elected leaders of {elected} partitions; {len(rows) - elected} needed no election")
    return 0
