"""How a command reaches its brokers: arguments, and a file of Java's names, to the settings of a client.

A password is never an argument: ``ps`` shows those. Does not know: what the client is for.
"""

from __future__ import annotations

import argparse
import getpass
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafkacore.broker.properties_file import read_properties
from kafkacore.cli.common import DEFAULT_BOOTSTRAP, add_timeout, time_limits
from kafkacore.client.config import CLIENT_SETTINGS, SECRET_SETTINGS
from kafkacore.client.text_settings import typed
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.java_names import PREFIXES, security_arguments
from kafkacore.security.references import resolved

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
#: Where a password is looked for first.
PASSWORD_VARIABLE = "KAFKACORE_PASSWORD"  # noqa: S105 - the name of a variable
#: Of a user whose mechanism is not told.
DEFAULT_MECHANISM = "SCRAM-SHA-512"
#: Arguments that make a connection a secure one.
SECURE_ARGUMENTS = ("security_protocol", "sasl_mechanism", "username", "password_file", "cafile")


def add_bootstrap(parser: argparse.ArgumentParser) -> None:
    """``--bootstrap``, ``--timeout`` and how to be secure, as every client command has them."""
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help=f"brokers, comma-separated (default: those of --command-config, or {DEFAULT_BOOTSTRAP})",
    )
    add_timeout(parser)
    add_security(parser)


def add_security(parser: argparse.ArgumentParser) -> None:
    """The arguments that say how to be secure, for :func:`client_settings`."""
    secure = parser.add_argument_group(
        "secure connection", f"The password of --username is in ${PASSWORD_VARIABLE}, or asked for."
    )
    secure.add_argument(
        "--security-protocol",
        type=str.upper,
        choices=PROTOCOLS,
        help="default: SASL_SSL with --username, SSL with --cafile alone, else PLAINTEXT",
    )
    secure.add_argument("--cafile", metavar="FILE.pem", help="who has signed the brokers' certificates")
    secure.add_argument("--username", metavar="NAME", help="log in by SASL as this user")
    secure.add_argument("--password-file", metavar="FILE", help="holds the user's password")
    secure.add_argument(
        "--sasl-mechanism",
        type=str.upper,
        metavar="NAME",
        help=f"PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 … (default with --username: {DEFAULT_MECHANISM})",
    )
    secure.add_argument(
        "--command-config",
        metavar="FILE",
        help="a client.properties as Kafka's own tools take it; ${env:NAME} and ${file:PATH} name secrets",
    )


def client_settings(arguments: argparse.Namespace, *limits: str) -> dict[str, Any]:
    """What every client of the command is made with; asks for a password if there is no other way to one.

    ``arguments.bootstrap`` is where the brokers are, from then on.

    Parameters
    ----------
    limits:
        Names of settings that ``--timeout`` is.

    Raises
    ------
    KafkaConfigurationError
        The file or the arguments cannot be used; the message says what to change, and no secret.
    """
    given = properties_of(arguments)
    arguments.bootstrap = given.pop("bootstrap.servers")
    settings: dict[str, Any] = {"bootstrap_servers": arguments.bootstrap}
    secure = {name: text for name, text in given.items() if name.startswith(PREFIXES)}
    translated = security_arguments(secure, resolved)[0]
    for name, text in given.items():
        argument = name.replace(".", "_")
        if name not in secure and argument in CLIENT_SETTINGS:
            translated[argument] = resolved(text, name)
    defaults = {name: setting.default for name, setting in CLIENT_SETTINGS.items()}
    for name, value in translated.items():
        if name not in CLIENT_SETTINGS:
            setting = name.replace("_", ".")
            raise KafkaConfigurationError(
                f"{arguments.command_config} has {setting}, which kafkacore does not know: leave it out"
            )
        is_text = isinstance(value, str) and name not in SECRET_SETTINGS
        settings[name] = typed(name, name.replace("_", "."), value.strip(), defaults) if is_text else value
    return settings | time_limits(arguments, *limits) if limits else settings


def properties_of(arguments: argparse.Namespace, asks: bool = True) -> dict[str, str]:
    """All that the arguments and the file say, by Java's names; the arguments win. Of the user's password it
    is where it is to be found.

    Parameters
    ----------
    asks:
        For a password that is nowhere; else :func:`have_password` may do so later.
    """
    config = getattr(arguments, "command_config", None)
    given = {} if config is None else read_properties(Path(config))
    if arguments.bootstrap is not None:
        given["bootstrap.servers"] = arguments.bootstrap
    given.setdefault("bootstrap.servers", DEFAULT_BOOTSTRAP)
    if any(getattr(arguments, name, None) for name in SECURE_ARGUMENTS):
        given |= _told(arguments, given, asks)
    return given


def _told(arguments: argparse.Namespace, given: Mapping[str, str], asks: bool) -> dict[str, str]:
    """Of a secure connection, by the arguments."""
    told = {}
    if arguments.cafile:
        told["ssl.ca.location"] = arguments.cafile
    if arguments.username:
        told["sasl.username"] = arguments.username
        told["sasl.mechanism"] = arguments.sasl_mechanism or given.get("sasl.mechanism") or DEFAULT_MECHANISM
        told["sasl.password"] = _password(arguments, asks)
    elif arguments.password_file:
        raise KafkaConfigurationError("--password-file is of a user: add --username")
    elif arguments.sasl_mechanism:
        told["sasl.mechanism"] = arguments.sasl_mechanism
    sasl = bool(told.get("sasl.mechanism"))
    protocol = arguments.security_protocol or given.get("security.protocol")
    told["security.protocol"] = protocol or (
        "SASL_SSL" if sasl else "SSL" if arguments.cafile else "PLAINTEXT"
    )
    if arguments.username and not told["security.protocol"].startswith("SASL_"):
        raise KafkaConfigurationError(
            f"--username is for SASL: --security-protocol {told['security.protocol']} has none; say SASL_SSL"
        )
    return told


def _password(arguments: argparse.Namespace, asks: bool) -> str:
    """Where it is: what is there is looked up once, with the other references."""
    if arguments.password_file:
        place = Path(arguments.password_file).absolute()
        if set(str(place)) & set("{}"):
            raise KafkaConfigurationError("--password-file: the file's path must be without braces")
        return f"${{file:{place}}}"
    if asks:
        have_password(arguments.username)
    return f"${{env:{PASSWORD_VARIABLE}}}"


def have_password(user: str) -> None:
    """Ask for it if it is not there, for this process and those that it starts."""
    if PASSWORD_VARIABLE not in os.environ:
        asked = ask_password(f"Password of {user}: ", PASSWORD_VARIABLE, "--password-file")
        os.environ[PASSWORD_VARIABLE] = asked


def ask_password(question: str, variable: str, other_way: str) -> str:
    """What somebody types, unseen.

    Raises
    ------
    KafkaConfigurationError
        Nobody is there.
    """
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        raise KafkaConfigurationError(
            f"there is no terminal to ask for the password: set {variable}, or give {other_way} FILE"
        ) from None
    return getpass.getpass(question)
