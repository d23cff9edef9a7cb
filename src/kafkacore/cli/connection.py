"""Arguments and properties files for the connection of a command to its brokers.

A password is never an argument, because ``ps`` shows arguments.
"""

from __future__ import annotations

import argparse
import getpass
import os
from collections.abc import Mapping
from pathlib import Path

from kafkacore.broker.config.properties_file import read_properties
from kafkacore.cli.common import DEFAULT_BOOTSTRAP, add_timeout, require_listener, time_limits
from kafkacore.cli.profiles import CONFIG_VARIABLE, PROFILE_VARIABLE, read_profile
from kafkacore.client.config import CLIENT_SETTINGS
from kafkacore.client.text_settings import typed
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security import Secret
from kafkacore.security.java_names import PREFIXES, security_arguments
from kafkacore.security.references import (
    ALLOWED_PATHS,
    ALLOWED_VARIABLES,
    allow,
    read_secret,
    resolved,
)
from kafkacore.security.settings import SECRET_SETTINGS
from kafkacore.settings import SECURITY_PROTOCOLS, Config

#: The environment variable with the addresses of brokers. It is used if the arguments and the properties file
#: contain no addresses.
BOOTSTRAP_VARIABLE = "KAFKACORE_BOOTSTRAP"
#: The environment variable with the password.
PASSWORD_VARIABLE = "KAFKACORE_PASSWORD"  # noqa: S105 - the name of a variable
#: SASL mechanism that ``--username`` uses if ``--sasl-mechanism`` is not given.
DEFAULT_MECHANISM = "SCRAM-SHA-512"
#: Arguments that make a connection secure.
SECURE_ARGUMENTS = ("security_protocol", "sasl_mechanism", "username", "password_file", "cafile")


def add_bootstrap(parser: argparse.ArgumentParser) -> None:
    """Add ``--bootstrap``, ``--profile``, ``--timeout`` and the arguments of a secure connection."""
    parser.add_argument(
        "-b",
        "--bootstrap",
        metavar="HOST:PORT",
        help="brokers, comma-separated (default: those of --profile or --command-config, "
        f"${BOOTSTRAP_VARIABLE}, or {DEFAULT_BOOTSTRAP})",
    )
    parser.add_argument(
        "--profile",
        # `bench` has another --profile, whose value is not a section of the file.
        dest="client_profile",
        metavar="NAME",
        help=f"use the settings in this section of ~/.config/kafkacore/profiles.toml or ${CONFIG_VARIABLE} "
        f"(default: ${PROFILE_VARIABLE}, or none)",
    )
    add_timeout(parser)
    add_security(parser)


def add_security(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a secure connection, which :func:`client_settings` reads."""
    secure = parser.add_argument_group(
        "secure connection",
        f"The password of --username is read from ${PASSWORD_VARIABLE} or from the terminal.",
    )
    secure.add_argument(
        "--security-protocol",
        type=str.upper,
        choices=SECURITY_PROTOCOLS,
        help="protocol (default: SASL_SSL with --username, SSL with --cafile alone, else PLAINTEXT)",
    )
    secure.add_argument("--cafile", metavar="FILE.pem", help="trust the certificate authorities in this file")
    secure.add_argument("--username", metavar="NAME", help="log in with SASL as this user")
    secure.add_argument("--password-file", metavar="FILE", help="read the user's password from this file")
    secure.add_argument(
        "--sasl-mechanism",
        type=str.upper,
        metavar="NAME",
        help=f"PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 … (default with --username: {DEFAULT_MECHANISM})",
    )
    secure.add_argument(
        "--command-config",
        metavar="FILE",
        help="read a client.properties file of Kafka's own tools; a password in it may be ${env:NAME} or "
        f"${{file:PATH}}, if ${ALLOWED_VARIABLES} or ${ALLOWED_PATHS} allows that name or path",
    )


def client_settings(arguments: argparse.Namespace, *limits: str) -> Config:
    """Return the settings for the clients of a command, and set ``arguments.bootstrap``.

    The password of ``--username`` is read from the terminal unless a variable or a file contains it. With
    ``limits``, the function also checks that a broker accepts connections, unless ``--timeout`` is given.

    Parameters
    ----------
    limits:
        Names of the settings that ``--timeout`` sets.

    Raises
    ------
    KafkaConfigurationError
        If the file or the arguments are invalid. The message contains no secret.
    """
    given = properties_of(arguments)
    arguments.bootstrap = given.pop("bootstrap.servers")
    settings: Config = {"bootstrap_servers": arguments.bootstrap}
    password = _password(arguments, given)
    secure = {name: text for name, text in given.items() if name.startswith(PREFIXES)}
    translated = security_arguments(secure, resolved)[0]
    for name, text in given.items():
        argument = name.replace(".", "_")
        if name not in secure and argument in CLIENT_SETTINGS:
            translated[argument] = resolved(text, name)
    for name, value in translated.items():
        if name not in CLIENT_SETTINGS:
            setting = name.replace("_", ".")
            raise KafkaConfigurationError(f"{arguments.command_config}: unknown setting {setting}; remove it")
        if isinstance(value, str) and name not in SECRET_SETTINGS:
            settings[name] = typed(name, name.replace("_", "."), value.strip(), CLIENT_SETTINGS)
        else:
            settings[name] = value
    if password is not None:
        settings["sasl_plain_password"] = password
    if not limits:
        return settings
    if arguments.timeout is None:
        require_listener(arguments.bootstrap, proxy_url=proxy_url_of(settings))
    return settings | time_limits(arguments, *limits)


def proxy_url_of(settings: Config) -> str | Secret | None:
    """Return the URL of the proxy in the settings of a client."""
    url: str | Secret | None = settings.get("proxy_url") or settings.get("socks5_proxy")
    return url


def properties_of(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the properties of the file and the arguments, by Java's names. Arguments override the file.

    The password of ``--username`` is not included, see :func:`password_reference`.
    """
    given = _given_by_file(arguments)
    if arguments.bootstrap is not None:
        given["bootstrap.servers"] = arguments.bootstrap
    given.setdefault("bootstrap.servers", os.environ.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP)
    if any(getattr(arguments, name, None) for name in SECURE_ARGUMENTS):
        given |= _security_properties(arguments, given)
        if arguments.username:
            given.pop("sasl.password", None)
    return given


def _given_by_file(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the properties of ``--command-config`` or of the profile.

    Only commands with the argument ``--profile`` read ``$KAFKACORE_PROFILE``.
    """
    config = getattr(arguments, "command_config", None)
    if config is not None:
        if getattr(arguments, "client_profile", None) is not None:
            raise KafkaConfigurationError("give either --profile or --command-config")
        return read_properties(Path(config))
    if not hasattr(arguments, "client_profile"):
        return {}
    # Store the name of the profile, because _password() also reads the attribute.
    arguments.client_profile = arguments.client_profile or os.environ.get(PROFILE_VARIABLE)
    return read_profile(arguments.client_profile) if arguments.client_profile else {}


def _security_properties(arguments: argparse.Namespace, given: Mapping[str, str]) -> dict[str, str]:
    """Return the properties for TLS and SASL that follow from the arguments."""
    properties = {}
    if arguments.cafile:
        properties["ssl.ca.location"] = arguments.cafile
    if arguments.username:
        properties["sasl.username"] = arguments.username
        properties["sasl.mechanism"] = (
            arguments.sasl_mechanism or given.get("sasl.mechanism") or DEFAULT_MECHANISM
        )
    elif arguments.password_file and "sasl.username" not in given:
        raise KafkaConfigurationError("--password-file needs --username")
    elif arguments.sasl_mechanism:
        properties["sasl.mechanism"] = arguments.sasl_mechanism
    sasl = bool(properties.get("sasl.mechanism"))
    protocol = arguments.security_protocol or given.get("security.protocol")
    properties["security.protocol"] = protocol or (
        "SASL_SSL" if sasl else "SSL" if arguments.cafile else "PLAINTEXT"
    )
    if arguments.username and not properties["security.protocol"].startswith("SASL_"):
        raise KafkaConfigurationError(
            f"--username needs SASL, but --security-protocol is {properties['security.protocol']}: "
            "use SASL_SSL"
        )
    return properties


def _password(arguments: argparse.Namespace, given: Mapping[str, str]) -> str | None:
    """Return the password of ``--username``.

    The result is ``None`` if there is no user, or if the properties file contains the password.
    """
    if arguments.password_file:
        return read_secret(Path(arguments.password_file), "--password-file")
    user = arguments.username
    if user is None and getattr(arguments, "client_profile", None) and "sasl.password" not in given:
        user = given.get("sasl.username")
    if not user:
        return None
    have_password(user)
    return os.environ[PASSWORD_VARIABLE]


def password_reference(password_file: str | None) -> str:
    """Return a reference to the password of ``--username``, for options that other processes read.

    :func:`allow_password` allows those processes to resolve the reference.
    """
    if password_file is None:
        return f"${{env:{PASSWORD_VARIABLE}}}"
    place = str(Path(password_file).absolute())
    if set(place) & set("{},"):
        raise KafkaConfigurationError("--password-file: the path must not contain braces or commas")
    return f"${{file:{place}}}"


def allow_password(user: str, password_file: str | None, asks: bool = True) -> None:
    """Allow this process and its children to resolve the reference, and ask for a missing password."""
    if password_file is None:
        if asks:
            have_password(user)
        allow(ALLOWED_VARIABLES, PASSWORD_VARIABLE)
    else:
        allow(ALLOWED_PATHS, str(Path(password_file).absolute()))


def have_password(user: str) -> None:
    """Ask for the password if the environment does not contain it, and store it in the environment.

    Child processes inherit the password with the environment.
    """
    if PASSWORD_VARIABLE not in os.environ:
        asked = ask_password(f"Password of {user}: ", PASSWORD_VARIABLE, "--password-file")
        os.environ[PASSWORD_VARIABLE] = asked


def ask_password(question: str, variable: str, other_way: str) -> str:
    """Read a password from the terminal without echo.

    Raises
    ------
    KafkaConfigurationError
        If the process has no terminal.
    """
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        raise KafkaConfigurationError(
            f"cannot ask for the password without a terminal: set {variable}, or use {other_way} FILE"
        ) from None
    return getpass.getpass(question)
