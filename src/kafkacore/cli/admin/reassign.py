"""``kafkacore reassign``: move replicas of partitions to other brokers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacore.cli.admin.log_dir_moves import LogDirState, log_dir_states, start_moves
from kafkacore.cli.admin.reassignment_file import Assignment, assignment_json, read_assignment, read_topics
from kafkacore.cli.admin.replica_placement import StripedReplicaPlacer
from kafkacore.cli.admin.replication_throttle import (
    remove_throttles,
    set_log_dir_throttle,
    set_replication_throttle,
)
from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import CommandError, natural, time_limits
from kafkacore.cli.connection import add_bootstrap
from kafkacore.cli.tables import add_json, print_json, print_note, print_rows, raise_failures
from kafkacore.cli.topic_partitions import TopicArgument, described_topics, partitions_of
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition, TopicPartitionReplica, partition_name

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient

EXAMPLES = """  kafkacore reassign generate orders --brokers 1,2,3 --output moves.json
  kafkacore reassign plan moves.json              # prints what would move
  kafkacore reassign plan moves.json --execute --throttle 50000000 --rollback back.json
  kafkacore reassign verify moves.json            # also removes the throttle when all is complete
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
    parser = add_command(commands, "reassign", COMMANDS["reassign"].summary, EXAMPLES, _list)
    actions = parser.add_choices("action")
    for name, summary, run in (
        ("generate", "propose replicas for topics on some brokers, spread over their racks", _generate),
        ("plan", "print which replicas a file moves; move them with --execute", _plan),
        (
            "verify",
            "check which reassignments of a file are complete, and remove throttles if none is in progress; "
            "exit with status 1 if any is not complete",
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
        if name == "generate":
            _add_generate(action)
        if name == "plan":
            _add_plan(action)
        if name == "cancel":
            action.add_argument("file", type=Path, nargs="?", help=_FORMAT)
            action.add_argument("--all", action="store_true", help="cancel all reassignments in progress")
        if name in ("verify", "cancel"):
            action.add_argument("--preserve-throttles", action="store_true", help="keep the throttles")


def _add_generate(action: argparse.ArgumentParser) -> None:
    action.add_argument("topic", nargs="*", help="topics to place")
    action.add_argument(
        "--from-file",
        type=Path,
        metavar="JSON",
        help='topics as kafka-reassign-partitions.sh reads them: {"version": 1, "topics": [{"topic": '
        '"orders"}]}',
    )
    action.add_argument(
        "--brokers", type=_brokers, required=True, metavar="ID,ID", help="brokers that get the replicas"
    )
    action.add_argument("--disable-rack-aware", action="store_true", help="ignore the racks of the brokers")
    action.add_argument(
        "--output", type=Path, metavar="FILE", help="write the proposal to this file, for `plan`"
    )


def _add_plan(action: argparse.ArgumentParser) -> None:
    action.add_argument("--execute", action="store_true", help="start the reassignment")
    action.add_argument(
        "--additional",
        action="store_true",
        help="start the reassignment even if others are in progress; --throttle then applies to all of them",
    )
    action.add_argument(
        "--throttle",
        type=natural,
        metavar="BYTES",
        help="limit the replication traffic of each broker to this many bytes per second, until `verify` "
        "removes the limit (default: no limit)",
    )
    action.add_argument(
        "--replica-alter-log-dirs-throttle",
        type=natural,
        metavar="BYTES",
        help="limit the traffic between the log directories of each broker to this many bytes per second, "
        "until `verify` removes the limit (default: no limit)",
    )
    action.add_argument(
        "--rollback", type=Path, metavar="FILE", help="write a file for `plan` that moves the replicas back"
    )


def _brokers(text: str) -> list[int]:
    """Parse ids of brokers for argparse."""
    found = [natural(part) for part in text.split(",")]
    if len(set(found)) != len(found):
        raise argparse.ArgumentTypeError(f"{text!r} names a broker twice")
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
    _racks(admin, {each for replicas in wanted.values() for each in replicas})
    current = _current(admin, arguments, wanted)
    return [_move(tp, current[tp], replicas) for tp, replicas in sorted(wanted.items())]


def _move(tp: TopicPartition, replicas: list[int], new_replicas: list[int]) -> Move:
    return Move(
        tp.topic,
        tp.partition,
        replicas,
        new_replicas,
        [each for each in new_replicas if each not in replicas],
        [each for each in replicas if each not in new_replicas],
    )


def _current(
    admin: KafkaAdminClient, arguments: argparse.Namespace, wanted: Mapping[TopicPartition, object]
) -> dict[TopicPartition, list[int]]:
    return {
        TopicPartition(str(topic["name"]), partition["partition_index"]): list(partition["replica_nodes"])
        for topic in described_topics(admin, arguments, sorted({tp.topic for tp in wanted}))
        for partition in topic["partitions"]
    }


def _racks(admin: KafkaAdminClient, wanted: Iterable[int]) -> dict[int, str | None]:
    """Return the racks of brokers.

    Raises
    ------
    CommandError
        If a broker does not exist.
    """
    racks = {broker["broker_id"]: broker["rack"] for broker in admin.describe_cluster()["brokers"]}
    if unknown := sorted(set(wanted) - racks.keys()):
        raise CommandError(
            f"brokers {', '.join(map(str, unknown))} do not exist: see `kafkacore cluster brokers`"
        )
    return {broker: racks[broker] for broker in wanted}


def _generate(arguments: argparse.Namespace) -> int:
    if bool(arguments.topic) == (arguments.from_file is not None):
        raise KafkaConfigurationError("give either topics or --from-file")
    topics = arguments.topic if arguments.from_file is None else read_topics(arguments.from_file)
    with admin_client(arguments) as admin:
        moves = proposed(admin, arguments, topics)
    proposal = assignment_json({move.topic_partition: move.new_replicas for move in moves})
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(proposal, indent=1) + "\n", encoding="utf-8")
    if arguments.json:
        print_json(proposal)
        return 0
    print_rows(list(map(asdict, moves)))
    print_note(
        "nothing was changed, and the next proposal may differ: "
        + (
            "add --output FILE to write it to a file, for `kafkacore reassign plan FILE`"
            if arguments.output is None
            else f"`kafkacore reassign plan {arguments.output} --execute` starts this reassignment"
        )
    )
    return 0


def proposed(
    admin: KafkaAdminClient,
    arguments: argparse.Namespace,
    topics: Iterable[str],
    clock: Clock = SYSTEM_CLOCK,
) -> list[Move]:
    """Return moves that spread the replicas of topics evenly over the brokers of ``--brokers``.

    Parameters
    ----------
    topics:
        Names of the topics.
    clock:
        Source of random numbers. The first broker of each topic is random. Otherwise, the first partitions
        of many topics would all be on the same brokers.

    Raises
    ------
    CommandError
        If a topic or broker does not exist, there are more replicas than brokers, or only some brokers have a
        rack.
    """
    racks = _racks(admin, arguments.brokers)
    if arguments.disable_rack_aware:
        racks = dict.fromkeys(racks)
    without = sorted(broker for broker, rack in racks.items() if rack is None)
    if without and len(without) < len(racks):
        raise CommandError(
            f"only some brokers have a rack; {', '.join(map(str, without))} have none: set broker.rack "
            "there, or add --disable-rack-aware to ignore the racks"
        )
    moves = []
    for topic in described_topics(admin, arguments, topics):
        partitions = sorted(topic["partitions"], key=lambda each: each["partition_index"])
        factor = len(partitions[0]["replica_nodes"])
        if factor > len(racks):
            raise CommandError(
                f"topic {topic['name']!r} has {factor} replicas of each partition: give at least as many "
                "--brokers"
            )
        placer = StripedReplicaPlacer(racks, clock)
        moves += [
            _move(
                TopicPartition(str(topic["name"]), partition["partition_index"]),
                list(partition["replica_nodes"]),
                placer.place(factor),
            )
            for partition in partitions
        ]
    return sorted(moves, key=lambda move: move.topic_partition)


def _plan(arguments: argparse.Namespace) -> int:
    wanted = read_assignment(arguments.file)
    if arguments.replica_alter_log_dirs_throttle is not None and not wanted.log_dirs:
        raise KafkaConfigurationError(
            f"{arguments.file} has no log_dirs: remove --replica-alter-log-dirs-throttle"
        )
    with admin_client(arguments) as admin:
        moves = planned(admin, arguments, wanted.replicas)
        if arguments.rollback is not None:
            current = assignment_json({move.topic_partition: move.replicas for move in moves})
            arguments.rollback.write_text(json.dumps(current, indent=1) + "\n", encoding="utf-8")
        if arguments.execute:
            _execute(admin, arguments, wanted, moves)
    print_rows(list(map(asdict, moves)), arguments.json)
    if not arguments.execute:
        print_note("dry run, nothing was changed: add --execute to start the reassignment")
        return 0
    print_note(
        f"started the reassignment of {len(moves)} partitions: `kafkacore reassign verify` shows when it "
        "is complete"
    )
    if arguments.throttle is not None or arguments.replica_alter_log_dirs_throttle is not None:
        print_note(
            f"the throttle stays until `kafkacore reassign verify {arguments.file}` finds that it is complete"
        )
    return 0


def _execute(
    admin: KafkaAdminClient, arguments: argparse.Namespace, wanted: Assignment, moves: list[Move]
) -> None:
    in_progress = admin.list_partition_reassignments()
    if in_progress and not arguments.additional:
        raise CommandError(
            f"{len(in_progress)} other reassignments are in progress, see `kafkacore reassign list`: add "
            "--additional to start this reassignment as well"
        )
    if arguments.throttle is not None:
        set_replication_throttle(
            admin,
            {move.topic_partition: move.replicas for move in moves},
            wanted.replicas,
            in_progress,
            arguments.throttle,
        )
    if arguments.replica_alter_log_dirs_throttle is not None:
        brokers = {replica.broker_id for replica in wanted.log_dirs}
        set_log_dir_throttle(admin, brokers, arguments.replica_alter_log_dirs_throttle)
    errors = admin.alter_partition_reassignments(wanted.replicas)
    raise_failures(
        f"{partition_name(tp)} was not reassigned: {error.message}"
        for tp, error in errors.items()
        if error is not None and error.errno
    )
    start_moves(admin, wanted.log_dirs, time_limits(arguments, "timeout_ms")["timeout_ms"], SYSTEM_CLOCK)


def _verify(arguments: argparse.Namespace) -> int:
    wanted = read_assignment(arguments.file)
    with admin_client(arguments) as admin:
        moves = planned(admin, arguments, wanted.replicas)
        in_progress = admin.list_partition_reassignments()
        log_dirs = log_dir_states(admin, wanted.log_dirs)
        rows = [
            {
                "topic": move.topic,
                "partition": move.partition,
                "replicas": move.replicas,
                "new_replicas": move.new_replicas,
                "status": status(move, in_progress, wanted.log_dirs, log_dirs),
            }
            for move in moves
        ]
        open_ones = [row for row in rows if row["status"] != "complete"]
        is_idle = not in_progress and all(row["status"] != "in progress" for row in rows)
        removed = []
        if is_idle and not arguments.preserve_throttles:
            removed = remove_throttles(admin, {move.topic for move in moves})
    print_rows(rows, arguments.json)
    _note_removed(removed)
    if open_ones:
        raise CommandError(f"{len(open_ones)} of {len(rows)} reassignments are not complete")
    return 0


def _note_removed(removed: list[str]) -> None:
    if removed:
        print_note(f"removed the throttle of {', '.join(removed)}")


def status(
    move: Move,
    in_progress: Mapping[TopicPartition, object],
    wanted_log_dirs: Mapping[TopicPartitionReplica, str],
    log_dirs: Mapping[TopicPartitionReplica, LogDirState],
) -> str:
    """Return the status of a partition.

    The status is ``complete``, ``in progress`` or ``different``. The status is ``different`` if no move is in
    progress and the replicas or their log directories differ from the file.
    """
    if move.topic_partition in in_progress:
        return "in progress"
    states = {"complete" if move.replicas == move.new_replicas else "different"}
    for replica, folder in wanted_log_dirs.items():
        if (replica.topic, replica.partition) == move.topic_partition:
            states.add(log_dirs[replica].status(folder))
    return next(each for each in ("in progress", "different", "complete") if each in states)


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
    wanted = None if arguments.all else read_assignment(arguments.file)
    with admin_client(arguments) as admin:
        all_in_progress = admin.list_partition_reassignments()
        in_progress = sorted(tp for tp in all_in_progress if wanted is None or tp in wanted.replicas)
        errors = admin.alter_partition_reassignments(dict.fromkeys(in_progress)) if in_progress else {}
        back = {
            replica: state.current
            for replica, state in log_dir_states(admin, wanted.log_dirs if wanted else ()).items()
            if state.future is not None and state.current is not None
        }
        start_moves(admin, back, time_limits(arguments, "timeout_ms")["timeout_ms"], SYSTEM_CLOCK)
        topics = {tp.topic for tp in (wanted.replicas if wanted else in_progress)}
        removed = []
        # Keep the throttles while other reassignments continue, because they apply to whole brokers.
        if len(in_progress) == len(all_in_progress) and not arguments.preserve_throttles:
            removed = remove_throttles(admin, topics)
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "error": error.message if error and error.errno else None,
        }
        for tp, error in sorted(errors.items())
    ]
    print_rows(rows, arguments.json)
    _note_removed(removed)
    raise_failures(
        f"the reassignment of {partition_name(tp)} was not cancelled: {error.message}"
        for tp, error in errors.items()
        if error is not None and error.errno
    )
    print_note(f"cancelled {len(rows)} reassignments")
    return 0
