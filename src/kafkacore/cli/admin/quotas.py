"""``kafkacore quotas``: describe and alter client quotas."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping

from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import assignment
from kafkacore.cli.connection import add_bootstrap
from kafkacore.cli.tables import add_json, print_json, print_note, print_rows
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import printable

EXAMPLES = """  kafkacore quotas describe
  kafkacore quotas describe --user alice --json
  kafkacore quotas alter --user alice --set producer_byte_rate=1048576 --set request_percentage=50
  kafkacore quotas alter --default-client-id --set consumer_byte_rate=2097152
  kafkacore quotas alter --user alice --client-id report --delete producer_byte_rate
  kafkacore quotas alter --ip 192.0.2.7 --set connection_creation_rate=10
"""
#: Text that stands for the default of an entity type.
_DEFAULT = "(default)"
_MEANING = {
    "user": "name of a user, without User:",
    "client-id": "client_id of a client",
    "ip": "IP address of a client",
}
TYPES = tuple(_MEANING)


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``quotas`` with its actions to the command line."""
    parser = add_command(commands, "quotas", COMMANDS["quotas"].summary, EXAMPLES, _describe)
    actions = parser.add_choices("action")
    for name, summary, run in (
        ("describe", "print quotas (default: those of all entities)", _describe),
        ("alter", "set or delete quotas of an entity", _alter),
    ):
        action = add_command(actions, name, summary, EXAMPLES, run)
        add_bootstrap(action)
        add_json(action)
        for kind in TYPES:
            which = action.add_mutually_exclusive_group()
            which.add_argument(f"--{kind}", metavar="NAME", help=_MEANING[kind])
            which.add_argument(
                f"--default-{kind}",
                action="store_true",
                help=f"the default: every {kind} without its own quota",
            )
        if name == "alter":
            action.add_argument(
                "--set", action="append", type=_quota, default=[], metavar="NAME=NUMBER", help="set a quota"
            )
            action.add_argument(
                "--delete", action="append", default=[], metavar="NAME", help="delete a quota"
            )
            action.add_argument(
                "--validate-only", action="store_true", help="check the changes without making them"
            )


def _quota(text: str) -> tuple[str, float]:
    name, number = assignment(text)
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r}: {number!r} is not a number")
    return name, value


def entity(arguments: argparse.Namespace) -> dict[str, str | None]:
    """Return the entity that the arguments name: type → name, where ``None`` stands for the default."""
    found: dict[str, str | None] = {}
    for kind in TYPES:
        name = kind.replace("-", "_")
        if getattr(arguments, f"default_{name}"):
            found[kind] = None
        elif getattr(arguments, name) is not None:
            found[kind] = getattr(arguments, name)
    return found


def entity_name(of: Mapping[str, str | None]) -> str:
    """Return the text of an entity, such as ``user=alice,client-id=(default)``."""
    names = {kind: _DEFAULT if name is None else name for kind, name in of.items()}
    return ",".join(
        f"{printable(kind)}={printable(name)}" for kind, name in sorted(names.items(), reverse=True)
    )


def _describe(arguments: argparse.Namespace) -> int:
    from kafkacore.admin import ClientQuotaFilterComponent

    components = [
        ClientQuotaFilterComponent.of_default_entity(kind)
        if name is None
        else ClientQuotaFilterComponent.of_entity(kind, name)
        for kind, name in entity(arguments).items()
    ]
    with admin_client(arguments) as admin:
        found = admin.describe_client_quotas(components)
    found.sort(key=lambda each: entity_name(each["entity"]))
    if arguments.json:
        print_json(found)
        return 0
    print_rows(
        [
            {"entity": entity_name(each["entity"]), "quota": name, "value": f"{value:.15g}"}
            for each in found
            for name, value in sorted(each["quotas"].items())
        ]
    )
    return 0


def _alter(arguments: argparse.Namespace) -> int:
    from kafkacore.admin import ClientQuotaAlteration

    of = entity(arguments)
    if not of:
        raise KafkaConfigurationError(
            "no entity given: add --user, --client-id or --ip, or a default such as --default-user"
        )
    changes: dict[str, float | None] = dict(arguments.set)
    changes |= dict.fromkeys(arguments.delete)
    if not changes:
        raise KafkaConfigurationError("nothing to alter: add --set NAME=NUMBER or --delete NAME")
    with admin_client(arguments) as admin:
        admin.alter_client_quotas([ClientQuotaAlteration(of, changes)], arguments.validate_only)
    if arguments.json:
        print_json({"entity": of, "quotas": changes})
    else:
        for name, value in changes.items():
            print(
                f"{entity_name(of)}: "
                + (f"deleted {printable(name)}" if value is None else f"{printable(name)}={value:.15g}")
            )
    if arguments.validate_only:
        print_note("the change is valid; nothing was changed, because of --validate-only")
    return 0
