"""``kafkacore topics``: list, describe, create, alter and delete topics."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from kafkacore.cli.common import (
    CommandParser,
    Commands,
    add_command,
    assignment,
    natural,
    no_topic,
)
from kafkacore.cli.connection import add_bootstrap, client_settings
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.settings import Config
from kafkacore.structs import printable

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient

EXAMPLES = """  kafkacore topics list
  kafkacore topics create orders --partitions 6 --config retention.ms=86400000
  kafkacore topics describe orders --json
  kafkacore topics alter orders --config cleanup.policy=compact --delete-config retention.ms
  kafkacore topics delete orders
"""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``topics`` with its actions to the command line."""
    parser = add_command(
        commands, "topics", "list, describe, create, alter or delete topics", EXAMPLES, _list
    )
    actions = parser.add_choices("action")
    for name, summary, run in (
        ("list", "print the names of all topics", _list),
        ("describe", "print ids, partitions and leaders of topics", _describe),
        ("create", "create a topic", _create),
        ("alter", "change the configuration of a topic", _alter),
        ("delete", "delete topics and all their records", _delete),
    ):
        action = add_command(actions, name, summary, EXAMPLES, run)
        add_bootstrap(action)
        if name == "create":
            action.add_argument("topic", help="name of the new topic")
            action.add_argument(
                "--partitions", type=natural, default=-1, help="number of partitions (default: the broker's)"
            )
            action.add_argument(
                "--replication-factor",
                type=natural,
                default=-1,
                help="number of replicas (default: the broker's)",
            )
        if name == "alter":
            action.add_argument("topic", help="topic to change")
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
        if name in ("describe", "delete"):
            if name == "describe":
                action.add_argument("topic", nargs="*", help="topics to describe (default: all)")
            else:
                action.add_argument("topic", nargs="+", help="topics to delete")
        if name in ("list", "describe"):
            action.add_argument("--json", action="store_true", help="print JSON")


def create_topic(settings: Config, topic: str, partitions: int) -> None:
    """Create a topic with a client that has these settings."""
    from kafkacore.admin import KafkaAdminClient, NewTopic

    with KafkaAdminClient(**settings) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=partitions)])


def admin_client(arguments: argparse.Namespace) -> KafkaAdminClient:
    """Return an admin client with the settings of the arguments."""
    from kafkacore.admin import KafkaAdminClient

    return KafkaAdminClient(**client_settings(arguments, "request_timeout_ms", "bootstrap_timeout_ms"))


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
            print(name)
    return 0


def _describe(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        _check_there(admin, arguments, arguments.topic)
        topics = admin.describe_topics(arguments.topic or None)
    if arguments.json:
        print(json.dumps(topics))
        return 0
    for topic in topics:
        print(
            f"{printable(str(topic['name']))}  id {topic['topic_id']}  {len(topic['partitions'])} partitions"
        )
        for partition in topic["partitions"]:
            replicas = ",".join(map(str, partition["replica_nodes"]))
            print(
                f"  {partition['partition_index']:>5}  leader {partition['leader_id']}  replicas {replicas}"
            )
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
    print(f"created {created['name']} with {created['num_partitions']} partitions")
    return 0


def _alter(arguments: argparse.Namespace) -> int:
    # Imported here, so that the help of a command loads no client.
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
    for name, value in changed.items():
        print(f"{arguments.topic}: {name}={value}")
    for name in arguments.delete_config:
        print(f"{arguments.topic}: {name} reset to the broker's default")
    return 0


def _delete(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        _check_there(admin, arguments, arguments.topic)
        admin.delete_topics(arguments.topic)
    for name in arguments.topic:
        print(f"deleted {name}")
    return 0
