"""``kafkacore transactions``: list, describe, find hanging and abort transactions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafkacore.cli.admin.hanging_transactions import hanging_transactions
from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import CommandError, natural, natural_up_to
from kafkacore.cli.connection import add_bootstrap
from kafkacore.cli.tables import add_json, print_json, print_rows
from kafkacore.cli.times import duration_ms, iso_time
from kafkacore.cli.topic_partitions import METAVAR, partitions_of, topic_argument
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import INT16_MAX, INT32_MAX, TopicPartition, partition_name, printable

if TYPE_CHECKING:
    from kafkacore.admin import AbortTransactionSpec, KafkaAdminClient

EXAMPLES = """  kafkacore transactions list --state Ongoing
  kafkacore transactions describe payments-1 --json
  kafkacore transactions producers orders:0
  kafkacore transactions find-hanging --topic orders
  kafkacore transactions abort orders:0 --start-offset 4711
  kafkacore transactions fence payments-1
"""
#: Default of the broker property ``transaction.max.timeout.ms``.
_MAX_TIMEOUT_MS = 900_000


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``transactions`` with its actions to the command line."""
    parser = add_command(commands, "transactions", COMMANDS["transactions"].summary, EXAMPLES, _list)
    actions = parser.add_choices("action")
    for name, summary, run in (
        ("list", "list transactions with their state and coordinator", _list),
        ("describe", "print state, times and partitions of transactions", _describe),
        ("producers", "print the producers that write to partitions", _producers),
        (
            "find-hanging",
            "find transactions that are open in a partition and that no coordinator will end there",
            _find_hanging,
        ),
        ("abort", "abort a transaction that hangs on a partition", _abort),
        ("fence", "fence the producers of transactional ids, which aborts their open transactions", _fence),
    ):
        action = add_command(actions, name, summary, EXAMPLES, run)
        add_bootstrap(action)
        add_json(action)
        _add_arguments(action, name)


def _add_arguments(action: argparse.ArgumentParser, name: str) -> None:
    if name in ("describe", "fence"):
        action.add_argument(
            "transactional_id",
            nargs="+",
            metavar="TRANSACTIONAL-ID",
            help="transactional id of a producer",
        )
    elif name == "producers":
        action.add_argument(
            "topic",
            nargs="+",
            type=topic_argument,
            metavar=METAVAR,
            help="topics or partitions, such as orders:0,2-4",
        )
    elif name == "list":
        action.add_argument(
            "--state",
            action="append",
            metavar="NAME",
            help="list only transactions in this state, such as Ongoing",
        )
        action.add_argument(
            "--producer-id",
            action="append",
            type=natural,
            metavar="ID",
            help="list only transactions of this producer id",
        )
        action.add_argument(
            "--longer-than",
            type=duration_ms,
            metavar="DURATION",
            help="list only transactions that are open for longer than this, such as PT15M",
        )
    elif name == "find-hanging":
        action.add_argument(
            "--max-transaction-timeout",
            type=duration_ms,
            default=_MAX_TIMEOUT_MS,
            metavar="DURATION",
            help="transaction.max.timeout.ms of the brokers (default: PT15M); a transaction with a "
            "more recent record does not hang",
        )
        action.add_argument(
            "--topic",
            action="append",
            type=topic_argument,
            metavar=METAVAR,
            help="topic or partitions to search, such as orders:0,2-4 (default: all topics)",
        )
        action.add_argument(
            "--broker", type=natural, metavar="ID", help="id of the replica to ask (default: the leaders)"
        )
    else:
        action.add_argument(
            "topic", type=topic_argument, metavar="TOPIC:PARTITION", help="partition with the transaction"
        )
        action.add_argument(
            "--start-offset", type=natural, metavar="OFFSET", help="first offset of the transaction"
        )
        action.add_argument(
            "--producer-id", type=natural, metavar="ID", help="id of the producer, instead of --start-offset"
        )
        action.add_argument(
            "--producer-epoch",
            type=natural_up_to(INT16_MAX),
            metavar="EPOCH",
            help="epoch of the producer; needed with --producer-id",
        )
        action.add_argument(
            "--coordinator-epoch",
            type=natural_up_to(INT32_MAX),
            default=-1,
            metavar="EPOCH",
            help="coordinator epoch to check, with --producer-id (default: not checked)",
        )


def _list(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        listed = admin.list_transactions(
            producer_id_filters=arguments.producer_id,
            state_filters=arguments.state,
            duration_filter_ms=arguments.longer_than,
        )
    rows = [
        {
            "transactional_id": each.transactional_id,
            "coordinator": broker,
            "producer_id": each.producer_id,
            "state": each.state.value,
        }
        for broker, listings in sorted(listed.items())
        for each in sorted(listings, key=lambda each: each.transactional_id)
    ]
    print_rows(rows, arguments.json)
    return 0


def _describe(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        described = admin.describe_transactions(arguments.transactional_id)
    now_ms = SYSTEM_CLOCK.wall_ms()
    rows = [
        {
            "transactional_id": name,
            "coordinator": each.coordinator_id,
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "state": each.state.value,
            "timeout_ms": each.transaction_timeout_ms,
            "start_time": iso_time(each.transaction_start_time_ms),
            "duration_ms": max(now_ms - each.transaction_start_time_ms, 0)
            if each.transaction_start_time_ms >= 0
            else None,
            "partitions": _names(each.topic_partitions),
        }
        for name, each in described.items()
    ]
    print_rows(rows, arguments.json)
    return 0


def _producers(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        described = admin.describe_producers(partitions_of(admin, arguments, arguments.topic))
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "coordinator_epoch": each.coordinator_epoch,
            "last_sequence": each.last_sequence,
            "last_time": iso_time(each.last_timestamp),
            "transaction_start_offset": each.current_transaction_start_offset
            if each.current_transaction_start_offset >= 0
            else None,
        }
        for tp, state in sorted(described.items())
        for each in state.active_producers
    ]
    print_rows(rows, arguments.json)
    return 0


def _find_hanging(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        now_ms = SYSTEM_CLOCK.wall_ms()
        hanging = hanging_transactions(
            admin,
            partitions_of(admin, arguments, arguments.topic),
            arguments.broker,
            arguments.max_transaction_timeout,
            now_ms,
        )
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "coordinator_epoch": each.coordinator_epoch,
            "start_offset": each.current_transaction_start_offset,
            "last_time": iso_time(each.last_timestamp),
            "duration_ms": now_ms - each.last_timestamp,
        }
        for tp, each in hanging
    ]
    print_rows(rows, arguments.json)
    return 0


def _names(partitions: set[TopicPartition] | list[TopicPartition]) -> list[str]:
    return [f"{printable(tp.topic)}:{tp.partition}" for tp in sorted(partitions)]


def _abort(arguments: argparse.Namespace) -> int:
    by_producer = arguments.producer_id is not None and arguments.producer_epoch is not None
    if by_producer == (arguments.start_offset is not None):
        raise KafkaConfigurationError(
            "give either --start-offset, or --producer-id with --producer-epoch; "
            "`kafkacore transactions producers` prints them"
        )
    if arguments.topic.partitions is None or len(arguments.topic.partitions) != 1:
        raise KafkaConfigurationError("give exactly one partition, such as orders:0")
    with admin_client(arguments) as admin:
        (tp,) = partitions_of(admin, arguments, [arguments.topic])
        spec = abort_spec(admin, tp, arguments)
        admin.abort_transaction(spec)
    if arguments.json:
        print_json(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "producer_id": spec.producer_id,
                "producer_epoch": spec.producer_epoch,
            }
        )
    else:
        print(
            f"aborted the transaction of producer {spec.producer_id} (epoch {spec.producer_epoch}) on "
            f"{partition_name(tp)}"
        )
    return 0


def abort_spec(
    admin: KafkaAdminClient, tp: TopicPartition, arguments: argparse.Namespace
) -> AbortTransactionSpec:
    """Return the transaction to abort, which is given by its producer or by its start offset.

    Raises
    ------
    CommandError
        If no open transaction starts at the offset.
    """
    from kafkacore.admin import AbortTransactionSpec

    if arguments.start_offset is None:
        return AbortTransactionSpec(
            tp, arguments.producer_id, arguments.producer_epoch, arguments.coordinator_epoch
        )
    for each in admin.describe_producers([tp])[tp].active_producers:
        if each.current_transaction_start_offset == arguments.start_offset:
            return AbortTransactionSpec(
                # The leader reports no coordinator epoch until the coordinator has ended a transaction in the
                # partition.
                tp,
                each.producer_id,
                each.producer_epoch,
                max(each.coordinator_epoch, 0),
            )
    raise CommandError(
        f"no open transaction of {partition_name(tp)} starts at offset {arguments.start_offset}: see "
        f"`kafkacore transactions producers`"
    )


def _fence(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        fenced = admin.fence_producers(arguments.transactional_id)
    rows = [
        {"transactional_id": name, "producer_id": each.producer_id, "producer_epoch": each.producer_epoch}
        for name, each in fenced.items()
    ]
    if arguments.json:
        print_rows(rows, as_json=True)
        return 0
    for name, each in fenced.items():
        print(
            f"fenced the producers of {printable(name)}: the current producer is "
            f"{each.producer_id}, epoch {each.producer_epoch}"
        )
    return 0
