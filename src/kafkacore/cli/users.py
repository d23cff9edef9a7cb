"""``kafkacore users``: list, create and delete SCRAM users."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path

from kafkacore.cli.admin_client import admin_client
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import CommandError, natural
from kafkacore.cli.connection import add_bootstrap, ask_password
from kafkacore.cli.tables import print_columns
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.references import read_secret

#: The environment variable with the password of a new user.
NEW_PASSWORD_VARIABLE = "KAFKACORE_NEW_PASSWORD"  # noqa: S105 - the name of a variable
EXAMPLES = f"""  kafkacore users create alice                                # asks for the password
  {NEW_PASSWORD_VARIABLE}=… kafkacore users create alice --mechanism SCRAM-SHA-256
  kafkacore users create alice --new-password-file /run/secrets/alice --iterations 8192
  kafkacore users list --json
  kafkacore users delete alice --command-config admin.properties
"""
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_MECHANISM = "SCRAM-SHA-512"


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``users`` with its actions to the command line."""
    parser = add_command(commands, "users", COMMANDS["users"].summary, EXAMPLES, _list)
    actions = parser.add_choices("action")
    for name, summary, run in (
        ("list", "list users and their mechanisms", _list),
        ("create", "create a user, or change the password", _create),
        ("delete", "delete a user, or the user's credential of one mechanism", _delete),
    ):
        action = add_command(actions, name, summary, EXAMPLES, run)
        add_bootstrap(action)
        action.add_argument("--json", action="store_true", help="print JSON")
        if name != "list":
            action.add_argument("user", help="name of the user, without the prefix User:")
        if name == "create":
            action.add_argument(
                "--mechanism",
                type=str.upper,
                choices=MECHANISMS,
                default=DEFAULT_MECHANISM,
                help=f"SASL mechanism of the password (default: {DEFAULT_MECHANISM})",
            )
            action.add_argument(
                "--new-password-file",
                type=Path,
                metavar="FILE",
                help=f"read the password from this file (default: ${NEW_PASSWORD_VARIABLE} or the terminal)",
            )
            action.add_argument(
                "--iterations", type=natural, metavar="N", help="number of hash iterations (default: 4096)"
            )
        if name == "delete":
            action.add_argument(
                "--mechanism",
                type=str.upper,
                choices=MECHANISMS,
                help="delete only the credential of this mechanism (default: all credentials)",
            )


def _list(arguments: argparse.Namespace) -> int:
    with admin_client(arguments) as admin:
        described = admin.describe_user_scram_credentials()
    rows = [
        {"user": user, "mechanism": _name(info["mechanism"]), "iterations": info["iterations"]}
        for user, description in sorted(described.items())
        for info in sorted(description["credential_infos"], key=lambda info: info["mechanism"])
    ]
    _show(rows, arguments.json)
    return 0


def _create(arguments: argparse.Namespace) -> int:
    from kafkacore.admin import UserScramCredentialUpsertion

    iterations = 4096 if arguments.iterations is None else arguments.iterations
    if not 1 <= iterations <= 1_000_000:
        raise KafkaConfigurationError(f"--iterations {iterations} is invalid: brokers accept 4096 to 16384")
    upsertion = UserScramCredentialUpsertion(
        arguments.user, arguments.mechanism, _new_password(arguments), iterations
    )
    with admin_client(arguments) as admin:
        admin.alter_user_scram_credentials([upsertion], raise_errors=True)
    row = {"user": arguments.user, "mechanism": arguments.mechanism, "iterations": iterations}
    _show([row], arguments.json)
    return 0


def _delete(arguments: argparse.Namespace) -> int:
    from kafkacore.admin import UserScramCredentialDeletion

    with admin_client(arguments) as admin:
        infos = admin.describe_user_scram_credentials([arguments.user])[arguments.user]["credential_infos"]
        found = [info for info in infos if arguments.mechanism in (None, _name(info["mechanism"]))]
        if not found:
            which = f" with {arguments.mechanism}" if arguments.mechanism else ""
            raise CommandError(f"user {arguments.user!r}{which} does not exist: see `kafkacore users list`")
        for info in found:
            # A request may change a user only once, so each mechanism needs its own request.
            deletion = UserScramCredentialDeletion(arguments.user, info["mechanism"])
            admin.alter_user_scram_credentials([deletion], raise_errors=True)
    _show([{"user": arguments.user, "mechanism": _name(info["mechanism"])} for info in found], arguments.json)
    return 0


def _new_password(arguments: argparse.Namespace) -> str:
    if arguments.new_password_file is not None:
        password = read_secret(arguments.new_password_file, "--new-password-file")
    elif NEW_PASSWORD_VARIABLE in os.environ:
        password = os.environ[NEW_PASSWORD_VARIABLE]
    else:
        ways = (NEW_PASSWORD_VARIABLE, "--new-password-file")
        password = ask_password(f"New password of {arguments.user}: ", *ways)
        if ask_password("Repeat the password: ", *ways) != password:
            raise KafkaConfigurationError("the two passwords differ; nothing was changed")
    if not password:
        raise KafkaConfigurationError("the password is empty; nothing was changed")
    return password


def _name(mechanism: Enum) -> str:
    return str(mechanism.name).replace("_", "-")


def _show(rows: Sequence[Mapping[str, object]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(rows))
    elif rows:
        print_columns(tuple(rows[0]), [tuple(map(str, row.values())) for row in rows])
