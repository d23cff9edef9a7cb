"""``kafkacore acls``: list, add and remove access control entries."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkacore.access_control import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.connection import add_bootstrap
from kafkacore.cli.tables import print_columns
from kafkacore.errors import KafkaConfigurationError

if TYPE_CHECKING:
    from kafkacore.admin import ACL, ACLFilter

EXAMPLES = """  kafkacore acls list --command-config admin.properties
  kafkacore acls list --topic orders --json       # all entries that have an effect on the topic
  kafkacore acls add --allow User:alice --operation read,describe --topic orders
  kafkacore acls add --allow User:bob --operation write --topic-prefix shop. --host 192.0.2.7
  kafkacore acls add --deny User:eve --operation all --group '*'
  kafkacore acls remove --principal User:alice --topic orders
"""
KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}
#: Name of the only resource of type CLUSTER.
CLUSTER_NAME = "kafka-cluster"


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``acls`` with its actions to the command line."""
    parser = add_command(commands, "acls", COMMANDS["acls"].summary, EXAMPLES, _list)
    actions = parser.add_choices("action")
    for name, summary, run in (
        ("list", "list entries (default: all)", _list),
        ("add", "allow or deny operations on resources", _add),
        ("remove", "remove the entries that match", _remove),
    ):
        action = add_command(actions, name, summary, EXAMPLES, run)
        add_bootstrap(action)
        _add_resources(action)
        action.add_argument("--json", action="store_true", help="print JSON")
        if name == "add":
            who = action.add_mutually_exclusive_group(required=True)
            who.add_argument("--allow", metavar="PRINCIPAL", help="allow this principal, such as User:alice")
            who.add_argument(
                "--deny", metavar="PRINCIPAL", help="deny this principal; a denial overrides permissions"
            )
            action.add_argument("--operation", required=True, metavar="NAMES", help=_OPERATIONS)
            action.add_argument("--host", default="*", help="client's IP address (default: all)")
        else:
            action.add_argument(
                "--principal", help="select this principal, such as User:alice (default: all)"
            )
            action.add_argument("--operation", default="any", metavar="NAME", help=_OPERATIONS)
            action.add_argument("--host", help="client's IP address, or '*' (default: all)")
            action.add_argument(
                "--permission",
                choices=("any", "allow", "deny"),
                default="any",
                help="select only entries with this permission (default: any)",
            )
        if name == "remove":
            action.add_argument("--all", action="store_true", help="remove the entries of all principals")


_OPERATIONS = ", ".join(
    each.name.lower().replace("_", "-") for each in ACLOperation if each > ACLOperation.ANY
)


def _add_resources(parser: argparse.ArgumentParser) -> None:
    about = parser.add_argument_group("resources")
    for kind in KINDS:
        about.add_argument(
            f"--{kind}",
            action="append",
            default=[],
            metavar="NAME",
            help="select the resource with this name",
        )
        about.add_argument(
            f"--{kind}-prefix",
            action="append",
            default=[],
            metavar="TEXT",
            help="select all resources whose name has this prefix",
        )
    about.add_argument("--cluster", action="store_true", help="select the cluster itself")


def _resources(arguments: argparse.Namespace) -> Iterator[tuple[ResourceType, str, ACLResourcePatternType]]:
    for kind, resource_type in KINDS.items():
        name = kind.replace("-", "_")
        for each in getattr(arguments, name):
            yield resource_type, each, ACLResourcePatternType.LITERAL
        for each in getattr(arguments, f"{name}_prefix"):
            yield resource_type, each, ACLResourcePatternType.PREFIXED
    if arguments.cluster:
        yield ResourceType.CLUSTER, CLUSTER_NAME, ACLResourcePatternType.LITERAL


def _operation(text: str) -> ACLOperation:
    try:
        found = ACLOperation[text.strip().upper().replace("-", "_")]
    except KeyError:
        found = ACLOperation.UNKNOWN
    if found is ACLOperation.UNKNOWN:
        raise KafkaConfigurationError(f"--operation {text.strip()!r} is unknown: use one of {_OPERATIONS}")
    return found


def _filters(arguments: argparse.Namespace, matching: bool) -> list[ACLFilter]:
    """Return the filters of the arguments.

    Parameters
    ----------
    matching:
        Whether a resource argument selects all entries that affect the resource. Otherwise it selects only
        the entries with the exact name or prefix.
    """
    from kafkacore.admin import ACLFilter, ResourcePatternFilter

    patterns = [
        ResourcePatternFilter(
            kind, name, ACLResourcePatternType.MATCH if matching and how is _LITERAL else how
        )
        for kind, name, how in _resources(arguments)
    ] or [ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)]
    permission = ACLPermissionType[arguments.permission.upper()]
    operation = _operation(arguments.operation)
    return [
        ACLFilter(arguments.principal, arguments.host, operation, permission, pattern) for pattern in patterns
    ]


_LITERAL = ACLResourcePatternType.LITERAL


def _list(arguments: argparse.Namespace) -> int:
    filters = _filters(arguments, matching=True)
    with admin_client(arguments) as admin:
        found = [entry for each in filters for entry in admin.describe_acls(each)[0]]
    _show(list(dict.fromkeys(found)), arguments.json)
    return 0


def _add(arguments: argparse.Namespace) -> int:
    from kafkacore.admin import ACL, ResourcePattern

    patterns = [ResourcePattern(*each) for each in _resources(arguments)]
    if not patterns:
        raise KafkaConfigurationError("no resource given: add --topic, --group or another resource")
    permission = ACLPermissionType.ALLOW if arguments.allow else ACLPermissionType.DENY
    entries = [
        ACL(arguments.allow or arguments.deny, arguments.host, _operation(name), permission, pattern)
        for name in arguments.operation.split(",")
        for pattern in patterns
    ]
    with admin_client(arguments) as admin:
        admin.create_acls(entries, raise_errors=True)
    _show(entries, arguments.json)
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    filters = _filters(arguments, matching=False)
    if not arguments.all and not arguments.principal and not any(_resources(arguments)):
        raise KafkaConfigurationError(
            "this would remove the entries of all principals: add --principal or a resource, or confirm with "
            "--all"
        )
    with admin_client(arguments) as admin:
        found = [entry for _, gone, _ in admin.delete_acls(filters, raise_errors=True) for entry in gone]
    _show(list(dict.fromkeys(found)), arguments.json)
    return 0


def _show(entries: list[ACL], as_json: bool) -> None:
    rows = [
        {
            "principal": entry.principal,
            "permission": entry.permission_type.name,
            "operation": entry.operation.name,
            "resource_type": entry.resource_pattern.resource_type.name,
            "resource_name": entry.resource_pattern.resource_name,
            "pattern": entry.resource_pattern.pattern_type.name,
            "host": entry.host,
        }
        for entry in entries
    ]
    rows.sort(key=lambda row: tuple(row.values()))
    if as_json:
        print(json.dumps(rows))
    elif rows:
        header = ("principal", "permission", "operation", "resource", "name", "pattern", "host")
        print_columns(header, [tuple(row.values()) for row in rows])
