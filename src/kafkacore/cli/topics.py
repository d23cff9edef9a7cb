"""``kafkacore topics``: list, describe, create, alter and delete topics, their partitions and records."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import CommandError, assignment, natural, natural_up_to, no_topic
from kafkacore.cli.config_rows import COLUMNS, config_rows
from kafkacore.cli.connection import add_bootstrap
from kafkacore.cli.json_files import read_partitions, whole_number
from kafkacore.cli.tables import add_json, print_json, print_rows
from kafkacore.cli.times import timestamp_ms
from kafkacore.cli.topic_partitions import METAVAR, described_topics, partitions_of, topic_argument
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.settings import Config
from kafkacore.structs import INT16_MAX, INT32_MAX, TopicPartition, printable

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient

EXAMPLES = """  kafkacore topics list
  kafkacore topics create orders --partitions 6 --config retention.ms=86400000
  kafkacore topics describe orders --json
  kafkacore topics configs orders --all
  kafkacore topics alter orders --config cleanup.policy=compact --delete-config retention.ms
  kafkacore topics add-partitions orders --partitions 12
  kafkacore topics delete-records orders:0-3 --before-time 2026-07-01T00:00:00Z
  kafkacore topics delete orders
"""
#: The offset that stands for the high watermark in DeleteRecords.
_ALL_RECORDS = -1


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``topics`` with its actions to the command line."""
    parser = add_command(commands, "topics", COMMANDS["topics"].summary, EXAMPLES, _list)
    actions = parser.add_choices("action")
    for name, summary, run in (
        ("list", "print the names of all topics", _list),
        ("describe", "print ids, partitions and leaders of topics", _describe),
        ("configs", "print the configuration of topics", _configs),
        ("create", "create a topic", _create),
        ("alter", "change the configuration of a topic", _alter),
        ("add-partitions", "add partitions to a topic", _add_partitions),
        ("delete-records", "delete the oldest records of partitions", _delete_records),
        ("delete", "delete topics and all their records", _delete),
    ):
        action = add_command(actions, name, summary, EXAMPLES, run)
        add_bootstrap(action)
        add_json(action)
        _add_arguments(action, name)


def _add_arguments(action: argparse.ArgumentParser, name: str) -> None:
    if name in ("create", "alter", "add-partitions"):
        action.add_argument("topic", help="name of the topic")
    if name in ("describe", "configs"):
        action.add_argument("topic", nargs="*", help="names of topics (default: all)")
    if name == "delete":
        action.add_argument("topic", nargs="+", help="topics to delete")
    if name == "configs":
        action.add_argument(
            "--all",
            action="store_true",
            help="print all values (default: only values that are set for the topic)",
        )
    if name == "create":
        action.add_argument(
            "--partitions",
            type=natural_up_to(INT32_MAX),
            default=-1,
            help="number of partitions (default: the broker's)",
        )
        action.add_argument(
            "--replication-factor",
            type=natural_up_to(INT16_MAX),
            default=-1,
            help="number of replicas (default: the broker's)",
        )
    if name == "alter":
        action.add_argument(
            "--delete-config",
            action="append",
            default=[],
            metavar="NAME",
            help="reset a topic setting to the broker's default",
        )
    if name in ("create", "alter"):
        action.add_argument(
            "--config",
            action="append",
            type=assignment,
            default=[],
            metavar="NAME=VALUE",
            help="set a topic setting, such as retention.ms=86400000",
        )
    if name == "add-partitions":
        action.add_argument(
            "--partitions",
            type=natural_up_to(INT32_MAX),
            required=True,
            help="new total number of partitions of the topic",
        )
    if name == "delete-records":
        action.add_argument(
            "topic",
            nargs="*",
            type=topic_argument,
            metavar=METAVAR,
            help="topics or partitions, such as orders:0,2-4",
        )
        until = action.add_mutually_exclusive_group(required=True)
        until.add_argument(
            "--before-offset", type=natural, metavar="OFFSET", help="delete the records before this offset"
        )
        until.add_argument(
            "--before-time",
            type=timestamp_ms,
            metavar="TIME",
            help="delete the records before this time: ISO 8601 (UTC by default), or ms since the epoch",
        )
        until.add_argument("--all-records", action="store_true", help="delete all records")
        until.add_argument(
            "--from-file",
            type=Path,
            metavar="JSON",
            help='file of offsets for kafka-delete-records.sh: {"partitions": [{"topic": "orders", '
            '"partition": 0, "offset": 5}]}',
        )


def create_topic(settings: Config, topic: str, partitions: int) -> None:
    """Create a topic with an admin client that has these settings."""
    from kafkacore.admin import KafkaAdminClient, NewTopic

    with KafkaAdminClient(**settings) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=partitions)])


def _check_there(admin: KafkaAdminClient, arguments: argparse.Namespace, topics: list[str]) -> None:
    """Check that all topics exist, before the command changes any of them."""
    known = admin.list_topics() if topics else []
    if missing := [name for name in topics if name not in known]:
        raise no_topic(arguments, *missing)


def _list(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        names = admin.list_topics()
    if arguments.json:
        print(json.dumps(names))
    else:
        for name in names:
            print(printable(name))
    return 0


def _describe(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        topics = described_topics(admin, arguments, arguments.topic or None)
    if arguments.json:
        print_json(topics)
        return 0
    for number, topic in enumerate(topics):
        if number:
            print()
        print(
            f"topic {printable(str(topic['name']))}: id {topic['topic_id']}, "
            f"{len(topic['partitions'])} partitions"
        )
        print_rows(
            [
                {
                    "partition": partition["partition_index"],
                    "leader": partition["leader_id"],
                    "replicas": partition["replica_nodes"],
                    "isr": partition["isr_nodes"],
                    "offline": partition["offline_replicas"],
                }
                for partition in topic["partitions"]
            ]
        )
    return 0


def _configs(arguments: argparse.Namespace) -> int:
    from kafkacore.admin import ConfigResourceType

    with admin_client(arguments) as admin:
        _check_there(admin, arguments, arguments.topic)
        names = arguments.topic or admin.list_topics()
        rows = config_rows(admin, ConfigResourceType.TOPIC, names, arguments.all)
    print_rows(rows, arguments.json, COLUMNS)
    return 0


def _create(arguments: argparse.Namespace) -> int:
    from kafkacore.admin import NewTopic

    topic = NewTopic(
        arguments.topic,
        num_partitions=arguments.partitions,
        replication_factor=arguments.replication_factor,
        topic_configs=dict(arguments.config),
    )
    with admin_client(arguments) as admin:
        created = admin.create_topics([topic])["topics"][0]
    if arguments.json:
        print_json(
            {name: created[name] for name in ("name", "topic_id", "num_partitions", "replication_factor")}
        )
    else:
        print(f"created {created['name']} with {created['num_partitions']} partitions")
    return 0


def _alter(arguments: argparse.Namespace) -> int:
    # Imported here, so that ``--help`` does not load the client.
    from kafkacore.admin import AlterConfigOp, ConfigResource, ConfigResourceType

    changed: dict[str, Any] = dict(arguments.config)
    if not changed and not arguments.delete_config:
        raise KafkaConfigurationError("nothing to alter: add --config NAME=VALUE or --delete-config NAME")
    with admin_client(arguments) as admin:
        changes = changed | dict.fromkeys(arguments.delete_config, (AlterConfigOp.DELETE, None))
        resource = ConfigResource(ConfigResourceType.TOPIC, arguments.topic, changes)
        outcome = admin.alter_configs([resource], raise_on_unknown=False)["topic"][arguments.topic]
    if outcome != "OK":
        raise KafkaError(outcome)
    if arguments.json:
        print_json({"topic": arguments.topic, "set": changed, "deleted": arguments.delete_config})
        return 0
    for name, value in changed.items():
        print(f"{arguments.topic}: {name}={value}")
    for name in arguments.delete_config:
        print(f"{arguments.topic}: {name} reset to the broker's default")
    return 0


def _add_partitions(arguments: argparse.Namespace) -> int:
    topic, wanted = arguments.topic, arguments.partitions
    with admin_client(arguments) as admin:
        (described,) = described_topics(admin, arguments, [topic])
        former = len(described["partitions"])
        if wanted <= former:
            raise CommandError(
                f"topic {topic!r} has {former} partitions already: --partitions must be larger, because "
                "partitions cannot be removed"
            )
        admin.create_partitions({topic: wanted})
    if arguments.json:
        print_json({"topic": topic, "former_partitions": former, "partitions": wanted})
    else:
        print(f"{printable(topic)}: added {wanted - former} partitions, {wanted} in total")
    return 0


def _delete_records(arguments: argparse.Namespace) -> int:
    if bool(arguments.topic) == (arguments.from_file is not None):
        raise KafkaConfigurationError("give either topics or --from-file")
    with admin_client(arguments) as admin:
        before = _offsets_to_delete(admin, arguments)
        deleted = admin.delete_records(before)
    rows = [
        {"topic": tp.topic, "partition": tp.partition, "log_start_offset": each["low_watermark"]}
        for tp, each in sorted(deleted.items())
    ]
    if arguments.json:
        print_rows(rows, as_json=True)
    else:
        for tp, each in sorted(deleted.items()):
            print(
                f"{printable(tp.topic)}:{tp.partition}: deleted the records before offset "
                f"{each['low_watermark']}"
            )
    return 0


def _offsets_to_delete(
    admin: KafkaAdminClient, arguments: argparse.Namespace
) -> Mapping[TopicPartition, int]:
    """Return the offset of each partition before which records are deleted."""
    if arguments.from_file is not None:
        found = {
            tp: whole_number(arguments.from_file, each, "offset", least=_ALL_RECORDS)
            for tp, each in read_partitions(arguments.from_file).items()
        }
        partitions_of(admin, arguments, [topic_argument(f"{tp.topic}:{tp.partition}") for tp in found])
        return found
    partitions = partitions_of(admin, arguments, arguments.topic)
    if arguments.all_records:
        return dict.fromkeys(partitions, _ALL_RECORDS)
    if arguments.before_offset is not None:
        return dict.fromkeys(partitions, arguments.before_offset)
    offsets = admin.list_partition_offsets(dict.fromkeys(partitions, arguments.before_time))
    # If no record is at or after the time, all records are older and are deleted.
    return {tp: each.offset if each.offset >= 0 else _ALL_RECORDS for tp, each in offsets.items()}


def _delete(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        _check_there(admin, arguments, arguments.topic)
        admin.delete_topics(arguments.topic)
    if arguments.json:
        print_json([{"topic": name, "error": None} for name in arguments.topic])
        return 0
    for name in arguments.topic:
        print(f"deleted {printable(name)}")
    return 0
