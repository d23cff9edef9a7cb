"""``kafkacore groups``: list, describe, reset and delete consumer groups."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacore.cli.admin.group_lag import (
    DEAD,
    OTHER_PROTOCOLS,
    GroupLag,
    described_groups,
    group_lags,
    refuse_other_protocols,
)
from kafkacore.cli.admin.offset_plan import (
    OffsetMove,
    Target,
    committed_offsets,
    csv_lines,
    plan,
    plan_from_file,
    read_offsets,
)
from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import CommandError, natural
from kafkacore.cli.connection import add_bootstrap
from kafkacore.cli.tables import add_json, print_json, print_note, print_rows, raise_failures
from kafkacore.cli.times import duration_ms, timestamp_ms
from kafkacore.cli.topic_partitions import METAVAR, TopicArgument, partitions_of, topic_argument
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition, partition_name, printable

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient

EXAMPLES = """  kafkacore groups list --state Stable
  kafkacore groups describe billing                    # lag by partition, by topic, in total
  kafkacore groups list --type consumer
  kafkacore groups describe billing --members          # in the consumer protocol, with epochs and targets
  kafkacore groups describe --all --json | jq '.[] | {group, lag}'
  kafkacore groups reset billing --topic orders:0,2-4 --to-earliest            # prints the plan
  kafkacore groups reset billing --all-topics --to-datetime 2026-07-01T12:00:00Z --execute
  kafkacore groups reset billing --topic orders --by-duration PT2H --execute
  kafkacore groups reset billing --from-file offsets.csv --execute
  kafkacore groups delete-offsets billing --topic orders
  kafkacore groups delete billing reports
"""
#: States in which a group has no members, so that its offsets can be changed.
_INACTIVE = ("Empty", DEAD)
_LAG_COLUMNS = (
    "group", "topic", "partition", "current_offset", "log_end_offset", "lag", "member_id", "host",
    "client_id",
)  # fmt: skip
_MOVE_COLUMNS = ("group", "topic", "partition", "current_offset", "new_offset")


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``groups`` with its actions to the command line."""
    parser = add_command(commands, "groups", COMMANDS["groups"].summary, EXAMPLES, _list)
    actions = parser.add_choices("action")
    for name, summary, run in (
        ("list", "list groups with their state and type", _list),
        ("describe", "print lag and members of groups", _describe),
        ("reset", "move the committed offsets of a group; print the plan unless --execute is given", _reset),
        ("delete", "delete groups without members, and their committed offsets", _delete),
        ("delete-offsets", "delete committed offsets of a group", _delete_offsets),
    ):
        action = add_command(actions, name, summary, EXAMPLES, run)
        add_bootstrap(action)
        add_json(action)
        if name == "list":
            action.add_argument(
                "--state",
                action="append",
                metavar="NAME",
                help="list only groups in this state, such as Stable",
            )
            action.add_argument(
                "--type",
                action="append",
                metavar="NAME",
                help="list only groups of this type, such as consumer",
            )
        elif name == "describe":
            action.add_argument("group", nargs="*", help="groups to describe")
            action.add_argument("--all", action="store_true", help="describe all groups")
            action.add_argument("--members", action="store_true", help="print the members instead of the lag")
        elif name == "delete":
            action.add_argument("group", nargs="+", help="groups to delete")
        else:
            action.add_argument("group", help="name of the group")
            action.add_argument(
                "--topic",
                action="append",
                type=topic_argument,
                default=[],
                required=name == "delete-offsets",
                metavar=METAVAR,
                help="topic or partitions of a topic, such as orders:0,2-4; may be repeated",
            )
        if name == "reset":
            _add_reset(action)


def _add_reset(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--all-topics", action="store_true", help="reset all topics for which the group has committed offsets"
    )
    target = action.add_mutually_exclusive_group(required=True)
    for each, text in (
        (Target.EARLIEST, "move to the first record"),
        (Target.LATEST, "move to the end of the log"),
        (
            Target.CURRENT,
            "keep the committed offset; a partition without a committed offset moves to the end of the log",
        ),
    ):
        target.add_argument(f"--{each.value}", action="store_true", help=text)
    target.add_argument("--to-offset", type=natural, metavar="OFFSET", help="move to this offset")
    target.add_argument(
        "--to-datetime",
        type=timestamp_ms,
        metavar="TIME",
        help="move to the first record at or after this time: ISO 8601 (default: UTC), or ms since the epoch",
    )
    target.add_argument(
        "--by-duration",
        type=duration_ms,
        metavar="DURATION",
        help="move to the first record of the last hour (PT1H), seven days (P7D), or another duration",
    )
    target.add_argument(
        "--shift-by",
        type=int,
        metavar="N",
        help="move by this number of offsets; a negative number moves back",
    )
    target.add_argument(
        "--from-file",
        type=Path,
        metavar="CSV",
        help="move to the offsets in this file, as written by --export",
    )
    action.add_argument("--execute", action="store_true", help="commit the offsets of the plan")
    action.add_argument("--export", action="store_true", help="print the plan as CSV")


def _list(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        listed = admin.list_groups(states_filter=arguments.state, types_filter=arguments.type)
    rows = [
        {
            "group": each["group_id"],
            "state": each["group_state"],
            "type": each["group_type"],
            "protocol": each["protocol_type"],
        }
        for each in sorted(listed, key=lambda each: each["group_id"])
    ]
    print_rows(rows, arguments.json)
    return 0


def _describe(arguments: argparse.Namespace) -> int:
    if not arguments.group and not arguments.all:
        raise KafkaConfigurationError("no group given: name groups, or add --all")
    with admin_client(arguments) as admin:
        names = arguments.group
        if arguments.all:
            names = sorted(
                each["group_id"]
                for each in admin.list_groups()
                if each["group_type"].lower() not in OTHER_PROTOCOLS
            )
        groups = group_lags(admin, arguments, names)
    if arguments.json:
        print_json([asdict(group) for group in groups])
        return 0
    for number, group in enumerate(groups):
        if number:
            print()
        _print_group(group, arguments.members)
    return 0


def _print_group(group: GroupLag, members: bool) -> None:
    assignor = f", assignor {printable(group.assignor)}" if group.assignor else ""
    epochs = ""
    if group.group_epoch is not None:
        epochs = f", epoch {group.group_epoch}, assignment epoch {group.assignment_epoch}"
    print(
        f"group {printable(group.group)}: {printable(group.state)}, type {printable(group.type)}{assignor}"
        f"{epochs}, {len(group.members)} members, lag {group.lag}"
    )
    if members:
        print_rows([{"group": group.group, **member} for member in group.members])
        return
    print_rows([{"group": group.group, **asdict(each)} for each in group.partitions], columns=_LAG_COLUMNS)
    if group.topics:
        total = {"topic": "(total)", "partitions": len(group.partitions), "lag": group.lag}
        print()
        print_rows([*map(asdict, group.topics), total])


def _reset(arguments: argparse.Namespace) -> int:
    if arguments.export and arguments.json:
        raise KafkaConfigurationError("--export prints CSV: leave out --json")
    if bool(arguments.topic) + arguments.all_topics + (arguments.from_file is not None) != 1:
        raise KafkaConfigurationError("give either --topic, --all-topics, or --from-file")
    with admin_client(arguments) as admin:
        state = admin.describe_groups([arguments.group])[arguments.group]["group_state"]
        if state == DEAD:
            refuse_other_protocols(admin, arguments.group)
        moves = _planned(admin, arguments)
        if arguments.execute:
            if state not in _INACTIVE:
                raise CommandError(_active(arguments.group, state))
            _commit(admin, arguments.group, moves)
    _print_moves(moves, arguments)
    for move in moves:
        if move.wanted_offset != move.new_offset:
            print_note(
                f"{partition_name(move.topic_partition)}: offset {move.wanted_offset} is outside of the log; "
                f"{move.new_offset} is the nearest"
            )
    if arguments.execute:
        print_note(f"set {len(moves)} committed offsets of group {arguments.group!r}")
    else:
        print_note("dry run, nothing was changed: add --execute to commit these offsets")
        if state not in _INACTIVE:
            print_note(_active(arguments.group, state))
    return 0


def _planned(
    admin: KafkaAdminClient, arguments: argparse.Namespace, clock: Clock = SYSTEM_CLOCK
) -> list[OffsetMove]:
    group = arguments.group
    if arguments.from_file is not None:
        offsets = read_offsets(arguments.from_file, group)
        partitions_of(admin, arguments, [TopicArgument(tp.topic, (tp.partition,)) for tp in offsets])
        return plan_from_file(admin, group, offsets)
    target, value = _target(arguments, clock)
    wanted: Sequence[TopicArgument] = arguments.topic
    if arguments.all_topics:
        wanted = [
            TopicArgument(topic) for topic in sorted({tp.topic for tp in committed_offsets(admin, group)})
        ]
        if not wanted:
            raise CommandError(f"group {group!r} has no committed offsets: name the topics with --topic")
    return plan(admin, group, partitions_of(admin, arguments, wanted), target, value)


def _target(arguments: argparse.Namespace, clock: Clock) -> tuple[Target, int]:
    if arguments.to_offset is not None:
        return Target.OFFSET, arguments.to_offset
    if arguments.to_datetime is not None:
        return Target.TIME, arguments.to_datetime
    if arguments.by_duration is not None:
        return Target.TIME, max(clock.wall_ms() - arguments.by_duration, 0)
    if arguments.shift_by is not None:
        return Target.SHIFT, arguments.shift_by
    if arguments.to_current:
        return Target.CURRENT, 0
    return (Target.EARLIEST if arguments.to_earliest else Target.LATEST), 0


def _active(group: str, state: str) -> str:
    return f"group {group!r} is {printable(state)}: stop its members before its offsets are moved"


def _commit(admin: KafkaAdminClient, group: str, moves: Sequence[OffsetMove]) -> None:
    from kafkacore.structs import OffsetAndMetadata

    errors = admin.alter_group_offsets(
        group, {move.topic_partition: OffsetAndMetadata(move.new_offset) for move in moves}
    )
    raise_failures(
        str(error(f"group {group!r}, {partition_name(tp)}")) for tp, error in errors.items() if error.errno
    )


def _print_moves(moves: Sequence[OffsetMove], arguments: argparse.Namespace) -> None:
    if arguments.export:
        for line in csv_lines(moves):
            print(line)
    else:
        print_rows(list(map(asdict, moves)), arguments.json, _MOVE_COLUMNS)


def _delete(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        described_groups(admin, arguments, arguments.group)
        results = admin.delete_groups(arguments.group)
    deleted = [group for group in arguments.group if results[group] == "OK"]
    if arguments.json:
        print_json(
            [{"group": group, "error": None if group in deleted else results[group]} for group in results]
        )
    else:
        for group in deleted:
            print(f"deleted group {printable(group)} and its committed offsets")
    raise_failures(
        f"group {group!r} was not deleted, because it has members: stop them first"
        if result == "NonEmptyGroupError"
        else f"group {group!r} was not deleted: {result}"
        for group, result in results.items()
        if result != "OK"
    )
    return 0


def _delete_offsets(arguments: argparse.Namespace) -> int:
    group = arguments.group
    with admin_client(arguments) as admin:
        described_groups(admin, arguments, [group])
        committed = committed_offsets(admin, group)
        wanted: list[TopicPartition] = []
        for each in arguments.topic:
            found = [tp for tp in sorted(committed) if each.includes(tp)]
            if not found:
                raise CommandError(f"group {group!r} has no committed offset for topic {each.topic!r}")
            wanted += found
        errors = admin.delete_group_offsets(group, wanted)
    rows = [
        {
            "group": group,
            "topic": tp.topic,
            "partition": tp.partition,
            "deleted_offset": committed[tp],
            "error": error.message if error.errno else None,
        }
        for tp, error in sorted(errors.items())
    ]
    print_rows([row for row in rows if arguments.json or not row["error"]], arguments.json)
    raise_failures(
        f"{partition_name(tp)} of group {group!r} was not deleted: {error.message}"
        for tp, error in errors.items()
        if error.errno
    )
    if not arguments.json:
        print_note(f"deleted {len(rows)} committed offsets of group {group!r}")
    return 0
