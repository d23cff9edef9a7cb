"""``kafkacore reassign``: move replicas of partitions to other brokers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.common import CommandError, CommandParser, Commands, add_command
from kafkacore.cli.connection import add_bootstrap
from kafkacore.cli.json_files import read_partitions
from kafkacore.cli.tables import add_json, print_note, print_rows, raise_failures
from kafkacore.cli.topic_partitions import TopicArgument, described_topics, partitions_of
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient

EXAMPLES = """  kafkacore reassign plan moves.json              # prints what would move
  kafkacore reassign plan moves.json --execute
  kafkacore reassign verify moves.json
  kafkacore reassign list --json
  kafkacore reassign cancel moves.json
  kafkacore reassign cancel --all
"""
_FORMAT = (
    'file as kafka-reassign-partitions.sh reads it: {"version": 1, "partitions": [{"topic": "orders", '
    '"partition": 0, "replicas": [1, 2]}]}'
)


@dataclass(frozen=True)
class Move:
    """The replicas of one partition before and after a reassignment, as ids of brokers."""

    topic: str
    partition: int
    replicas: list[int]
    new_replicas: list[int]
    adding: list[int]
    removing: list[int]

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition as a :class:`TopicPartition`."""
        return TopicPartition(self.topic, self.partition)


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``reassign`` with its actions to the command line."""
    parser = add_command(commands, "reassign", "move replicas to other brokers", EXAMPLES, _list)
    actions = parser.add_choices("action")
    for name, summary, run in (
        ("plan", "print which replicas a file moves; move them with --execute", _plan),
        (
            "verify",
            "check which reassignments of a file are complete; exit with status 1 if any is not",
            _verify,
        ),
        ("list", "list the reassignments that are in progress", _list),
        ("cancel", "cancel reassignments that are in progress", _cancel),
    ):
        action = add_command(actions, name, summary, EXAMPLES, run)
        add_bootstrap(action)
        add_json(action)
        if name in ("plan", "verify"):
            action.add_argument("file", type=Path, help=_FORMAT)
        if name == "plan":
            action.add_argument("--execute", action="store_true", help="start the reassignment")
        if name == "cancel":
            action.add_argument("file", type=Path, nargs="?", help=_FORMAT)
            action.add_argument("--all", action="store_true", help="cancel all reassignments in progress")


def read_replicas(path: Path) -> dict[TopicPartition, list[int]]:
    """Return the new replicas of each partition in a file.

    Raises
    ------
    KafkaConfigurationError
        If the file has another format, or a log directory in it is not ``any``.
    """
    found: dict[TopicPartition, list[int]] = {}
    for tp, each in read_partitions(path).items():
        replicas = each.get("replicas")
        if (
            not isinstance(replicas, list)
            or not replicas
            or not all(isinstance(broker, int) and broker >= 0 for broker in replicas)
            or len(set(replicas)) != len(replicas)
        ):
            raise KafkaConfigurationError(
                f"{path}: replicas in {json.dumps(each)} is not a list of different ids of brokers"
            )
        folders = each.get("log_dirs", [])
        if not isinstance(folders, list) or any(folder != "any" for folder in folders):
            raise KafkaConfigurationError(
                f'{path}: log_dirs in {json.dumps(each)} must be "any": this command does not move replicas '
                "between directories"
            )
        found[tp] = replicas
    return found


def planned(
    admin: KafkaAdminClient, arguments: argparse.Namespace, wanted: Mapping[TopicPartition, list[int]]
) -> list[Move]:
    """Return the move of each partition from its current to its new replicas.

    Raises
    ------
    CommandError
        If a partition or a broker does not exist.
    """
    partitions_of(admin, arguments, [TopicArgument(tp.topic, (tp.partition,)) for tp in wanted])
    brokers = {broker["broker_id"] for broker in admin.describe_cluster()["brokers"]}
    if unknown := sorted({each for replicas in wanted.values() for each in replicas} - brokers):
        raise CommandError(
            f"brokers {', '.join(map(str, unknown))} do not exist: see `kafkacore cluster brokers`"
        )
    current = _current(admin, arguments, wanted)
    return [
        Move(
            tp.topic,
            tp.partition,
            current[tp],
            replicas,
            [each for each in replicas if each not in current[tp]],
            [each for each in current[tp] if each not in replicas],
        )
        for tp, replicas in sorted(wanted.items())
    ]


def _current(
    admin: KafkaAdminClient, arguments: argparse.Namespace, wanted: Mapping[TopicPartition, object]
) -> dict[TopicPartition, list[int]]:
    return {
        TopicPartition(str(topic["name"]), partition["partition_index"]): list(partition["replica_nodes"])
        for topic in described_topics(admin, arguments, sorted({tp.topic for tp in wanted}))
        for partition in topic["partitions"]
    }


def _plan(arguments: argparse.Namespace) -> int:
    wanted = read_replicas(arguments.file)
    with admin_client(arguments) as admin:
        moves = planned(admin, arguments, wanted)
        errors = (
            admin.alter_partition_reassignments({move.topic_partition: move.new_replicas for move in moves})
            if arguments.execute
            else {}
        )
    print_rows(list(map(asdict, moves)), arguments.json)
    raise_failures(
        f"{partition_name(tp)} was not reassigned: {error.message}"
        for tp, error in errors.items()
        if error is not None and error.errno
    )
    if arguments.execute:
        print_note(
            f"started the reassignment of {len(moves)} partitions: `kafkacore reassign verify` shows when it "
            "is complete"
        )
    else:
        print_note("dry run, nothing was changed: add --execute to start the reassignment")
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    wanted = read_replicas(arguments.file)
    with admin_client(arguments) as admin:
        moves = planned(admin, arguments, wanted)
        in_progress = admin.list_partition_reassignments(list(wanted))
    rows = [
        {
            "topic": move.topic,
            "partition": move.partition,
            "replicas": move.replicas,
            "new_replicas": move.new_replicas,
            "status": status(move, in_progress),
        }
        for move in moves
    ]
    print_rows(rows, arguments.json)
    open_ones = [row for row in rows if row["status"] != "complete"]
    if open_ones:
        raise CommandError(f"{len(open_ones)} of {len(rows)} reassignments are not complete")
    return 0


def status(move: Move, in_progress: Mapping[TopicPartition, object]) -> str:
    """Return ``complete``, ``in progress``, or ``different`` if the partition has other replicas."""
    if move.topic_partition in in_progress:
        return "in progress"
    return "complete" if move.replicas == move.new_replicas else "different"


def _list(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        found = admin.list_partition_reassignments()
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": each["replicas"],
            "adding": each["adding_replicas"],
            "removing": each["removing_replicas"],
        }
        for tp, each in sorted(found.items())
    ]
    print_rows(rows, arguments.json)
    return 0


def _cancel(arguments: argparse.Namespace) -> int:
    if arguments.all == (arguments.file is not None):
        raise KafkaConfigurationError("give either a file or --all")
    with admin_client(arguments) as admin:
        wanted = None if arguments.all else list(read_replicas(arguments.file))
        in_progress = sorted(admin.list_partition_reassignments(wanted))
        errors = admin.alter_partition_reassignments(dict.fromkeys(in_progress)) if in_progress else {}
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "error": error.message if error and error.errno else None,
        }
        for tp, error in sorted(errors.items())
    ]
    print_rows(rows, arguments.json)
    raise_failures(
        f"the reassignment of {partition_name(tp)} was not cancelled: {error.message}"
        for tp, error in errors.items()
        if error is not None and error.errno
    )
    print_note(f"cancelled {len(rows)} reassignments")
    return 0
