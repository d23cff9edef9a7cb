"""``kafkacore configs``: describe, alter and reset configurations of topics, brokers, groups and others."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import CommandError, assignment
from kafkacore.cli.config_rows import COLUMNS, config_rows
from kafkacore.cli.connection import add_bootstrap
from kafkacore.cli.tables import add_json, print_json, print_note, print_rows
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import printable

if TYPE_CHECKING:
    from kafkacore.admin import ConfigResourceType, KafkaAdminClient

EXAMPLES = """  kafkacore configs describe topic orders
  kafkacore configs describe broker 1 --all --json
  kafkacore configs alter topic orders --set retention.ms=86400000 --append cleanup.policy=compact
  kafkacore configs alter broker --default --set log.cleaner.threads=2    # of all brokers
  kafkacore configs alter broker-logger 1 --set kafka.server.KafkaApis=DEBUG
  kafkacore configs alter client-metrics subs --set metrics=org.apache.kafka.producer. --set interval.ms=60000
  kafkacore configs reset group billing --config consumer.session.timeout.ms
"""
TYPES = ("topic", "broker", "group", "client-metrics", "broker-logger")


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add the command ``configs`` and its subcommands to the command line."""
    parser = add_command(
        commands,
        "configs",
        COMMANDS["configs"].summary,
        EXAMPLES,
        _describe,
    )
    actions = parser.add_choices("action")
    for name, summary, run in (
        ("describe", "print configuration values", _describe),
        ("alter", "set, delete, append to or subtract from values", _alter),
        ("reset", "reset values to their defaults", _reset),
    ):
        action = add_command(actions, name, summary, EXAMPLES, run)
        add_bootstrap(action)
        add_json(action)
        action.add_argument("type", choices=TYPES, help="type of the resource")
        if name == "describe":
            action.add_argument(
                "name", nargs="*", help="name of the resource, or id of the broker (default: all)"
            )
            action.add_argument(
                "--all",
                action="store_true",
                help="print all values (default: only values that are set for the resource itself)",
            )
        else:
            action.add_argument("name", nargs="?", help="name of the resource, or id of the broker")
        action.add_argument(
            "--default", action="store_true", help="select the default of all brokers, instead of a name"
        )
        if name == "reset":
            action.add_argument(
                "--config",
                action="append",
                metavar="NAME",
                help="value to reset; may be repeated (default: all values that are set for the resource)",
            )
        if name == "alter":
            for option, text in (
                ("--set", "set a value"),
                ("--append", "add an element to a list"),
                ("--subtract", "remove an element from a list"),
            ):
                action.add_argument(
                    option, action="append", type=assignment, default=[], metavar="NAME=VALUE", help=text
                )
            action.add_argument(
                "--delete", action="append", default=[], metavar="NAME", help="reset a value to its default"
            )
        if name != "describe":
            action.add_argument(
                "--validate-only",
                action="store_true",
                help="check the changes without making them",
            )


def _kind(arguments: argparse.Namespace) -> ConfigResourceType:
    from kafkacore.admin import ConfigResourceType

    return ConfigResourceType[arguments.type.upper().replace("-", "_")]


def _name(arguments: argparse.Namespace) -> str:
    """Return the name of the resource to change, which is empty for the default of all brokers."""
    if arguments.default:
        _check_default(arguments)
        return ""
    if not arguments.name:
        raise KafkaConfigurationError(f"no {arguments.type} given: add its name")
    return str(arguments.name)


def _check_default(arguments: argparse.Namespace) -> None:
    if arguments.type != "broker" or arguments.name:
        raise KafkaConfigurationError("--default is for brokers: use the type broker, and remove the name")


def _describe(arguments: argparse.Namespace) -> int:
    if arguments.default:
        _check_default(arguments)
    with admin_client(arguments) as admin:
        names = [""] if arguments.default else arguments.name or _all_names(admin, arguments.type)
        rows = config_rows(admin, _kind(arguments), names, arguments.all)
    print_rows(rows, arguments.json, COLUMNS)
    return 0


def _all_names(admin: KafkaAdminClient, kind: str) -> list[str]:
    from kafkacore.admin import ConfigResourceType

    if kind == "topic":
        return admin.list_topics()
    if kind == "group":
        return admin.list_config_resources([ConfigResourceType.GROUP]).get("group", [])
    if kind == "client-metrics":
        return admin.list_client_metrics_resources()
    return [str(broker["broker_id"]) for broker in admin.describe_cluster()["brokers"]]


def _alter(arguments: argparse.Namespace) -> int:
    from kafkacore.admin import AlterConfigOp, ConfigResource

    changes: list[tuple[str, AlterConfigOp, str | None]] = [
        (name, operation, value)
        for operation, pairs in (
            (AlterConfigOp.SET, arguments.set),
            (AlterConfigOp.APPEND, arguments.append),
            (AlterConfigOp.SUBTRACT, arguments.subtract),
        )
        for name, value in pairs
    ]
    changes += [(name, AlterConfigOp.DELETE, None) for name in arguments.delete]
    if not changes:
        raise KafkaConfigurationError(
            "nothing to alter: add --set, --append or --subtract NAME=VALUE, or --delete NAME"
        )
    names = [name for name, _, _ in changes]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise KafkaConfigurationError(f"{', '.join(twice)}: change each value only once per command")
    kind, resource = _kind(arguments), _name(arguments)
    with admin_client(arguments) as admin:
        outcome = admin.alter_configs(
            [ConfigResource(kind, resource, {config: (op, value) for config, op, value in changes})],
            validate_only=arguments.validate_only,
            raise_on_unknown=False,
        )
    _check(outcome[kind.name.lower()][resource])
    rows = [
        _change(arguments.type, resource, config, op.name.lower(), value) for config, op, value in changes
    ]
    _show(arguments, rows)
    return 0


def _reset(arguments: argparse.Namespace) -> int:
    from kafkacore.admin import ConfigResource

    kind, resource = _kind(arguments), _name(arguments)
    with admin_client(arguments) as admin:
        names = arguments.config or [
            str(row["config"]) for row in config_rows(admin, kind, [resource], every=False)
        ]
        if names:
            outcome = admin.reset_configs(
                [ConfigResource(kind, resource, names)],
                validate_only=arguments.validate_only,
                raise_on_unknown=False,
            )
            _check(outcome[kind.name.lower()][resource])
    _show(arguments, [_change(arguments.type, resource, name, "delete", None) for name in names])
    if not names:
        print_note(f"{arguments.type} {resource!r} has no values of its own; nothing was reset")
    return 0


def _change(kind: str, name: str, config: str, operation: str, value: str | None) -> dict[str, str | None]:
    return {"type": kind, "name": name, "config": config, "operation": operation, "value": value}


def _check(outcome: str) -> None:
    if outcome != "OK":
        raise CommandError(printable(outcome))


def _show(arguments: argparse.Namespace, rows: list[dict[str, str | None]]) -> None:
    """Print the changed values."""
    if arguments.json:
        print_json(rows)
    else:
        for row in rows:
            name = printable(str(row["name"])) or "(all brokers)"
            value = "" if row["value"] is None else f"={row['value']}"
            print(f"{row['type']} {name}: {row['operation']} {row['config']}{value}")
    if arguments.validate_only:
        print_note("the change is valid; nothing was changed, because of --validate-only")
