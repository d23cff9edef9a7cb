"""The command line of ``kafkacore broker`` and ``python -m kafkacore.broker``.

A dedicated option, such as ``--data-dir``, overrides ``--override``. Both override the configuration file,
which overrides the defaults.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.config_keys import ResolvedProperties, resolve
from kafkacore.broker.config.properties_file import read_properties
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security import Secret
from kafkacore.settings import SECURITY_PROTOCOLS

if TYPE_CHECKING:
    from kafkacore.broker.process.server import KafkaBroker

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
DEFAULT: Final = "default"
PASSWORD_VARIABLE: Final = "KAFKACORE_PASSWORD"  # noqa: S105 - a name
EPHEMERAL_PREFIX: Final = "kafkacore-ephemeral-"


class _InsteadOfListen(argparse.Action):
    """Rejects ``--port`` and ``--host``, which other programs have, and suggests ``--listen``."""

    def __call__(
        self, parser: argparse.ArgumentParser, _: object, value: object, option: object = None
    ) -> None:
        address = f"localhost:{value or 9092}" if option == "--port" else f"{value or 'localhost'}:9092"
        parser.error(f"unknown option {option}: use --listen {address}")


def add_arguments(parser: argparse.ArgumentParser, *override_names: str) -> None:
    """Add the broker's options to a parser; ``override_names`` are additional names of ``--override``."""
    place = parser.add_argument_group("configuration")
    place.add_argument(
        "--config-file",
        metavar="FILE",
        type=Path,
        help="read settings from this file, for example Kafka's server.properties",
    )
    place.add_argument(
        "--override",
        *override_names,
        dest="overrides",
        action="append",
        type=_assignment,
        default=[],
        metavar="NAME=VALUE",
        help="set a property, for example num.partitions=6; overrides the configuration file",
    )
    place.add_argument(
        "--data-dir", metavar="FOLDER", help="store the logs in this folder; it is created if missing"
    )
    place.add_argument(
        "--ephemeral",
        action="store_true",
        help="store the logs in a new folder, remove it at the end, and use --flush os",
    )
    place.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="listen on this address; port 0 chooses a free port (default: 127.0.0.1:9092)",
    )
    place.add_argument("--port", "--host", action=_InsteadOfListen, nargs="?", help=argparse.SUPPRESS)
    place.add_argument(
        "--flush",
        choices=("ack", "os"),
        help="acknowledge records when they are on disk (ack), or written to the operating system (os) "
        "(default: ack)",
    )
    place.add_argument(
        "--allow-remote",
        action="store_true",
        default=None,
        help="allow other machines to connect without authentication",
    )
    place.add_argument(
        "--security-protocol",
        type=str.upper,
        choices=SECURITY_PROTOCOLS,
        help="use this security protocol (default: PLAINTEXT); with TLS and no configured key store, the "
        "broker creates a certificate for development; clients must trust tls/ca.pem in the data folder",
    )
    place.add_argument(
        "--user",
        dest="users",
        action="append",
        default=[],
        metavar="NAME",
        help=f"allow this user to log in; the password is read from {PASSWORD_VARIABLE} in the environment, "
        "or from the terminal",
    )
    place.add_argument(
        "--users-file",
        metavar="FILE",
        type=Path,
        help="allow the users in this file to log in; each line is NAME=PASSWORD",
    )
    place.add_argument(
        "--status-port",
        metavar="PORT",
        type=_status_port,
        help="serve the status page and metrics on this port: 0 for a free port, or off (default: 0)",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--print-config",
        action="store_true",
        help="print every property with its value and source, then exit",
    )
    output.add_argument(
        "--json", action="store_true", help="write the log and the ready message as lines of JSON"
    )
    output.add_argument(
        "--ready-file",
        metavar="FILE",
        type=Path,
        help="write the ready message to this file; remove the file when the broker stops",
    )
    output.add_argument(
        "--log-level",
        dest="broker_log_level",
        type=str.upper,
        choices=LEVELS,
        help="log messages of this level and above (default: INFO)",
    )


def _assignment(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=VALUE, for example num.partitions=6")
    return name.strip(), value


def _status_port(text: str) -> int:
    if text == "off":
        return -1
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} must be a port from 0 to 65535, or 'off'")
    return int(text)


def resolved_properties(
    arguments: argparse.Namespace, defaults: dict[str, object], ephemeral_folder: str | None
) -> ResolvedProperties:
    """Return the properties that result from the arguments and all other sources.

    Raises
    ------
    KafkaConfigurationError
        The arguments are invalid.
    """
    layers: list[tuple[str, dict[str, object]]] = [(DEFAULT, defaults)]
    if ephemeral_folder is not None:
        if arguments.data_dir is not None:
            raise KafkaConfigurationError("--ephemeral creates its own folder: remove --data-dir")
        layers.append(("--ephemeral", {"flush": "os"}))
    if arguments.config_file is not None:
        layers.append((str(arguments.config_file), dict(read_properties(arguments.config_file))))
    layers.append(("--override", dict(arguments.overrides)))
    if ephemeral_folder is not None:
        layers.append(("--ephemeral", {"log.dirs": Path(ephemeral_folder)}))
    flags = {
        "data_dir": arguments.data_dir,
        "listen": arguments.listen,
        "flush": arguments.flush,
        "allow_remote": arguments.allow_remote,
        "security_protocol": arguments.security_protocol,
        "status_port": arguments.status_port,
    }
    layers += [(_flag(name), {name: value}) for name, value in flags.items() if value is not None]
    if "SSL" in (arguments.security_protocol or "") and not _names_a_key_store(layers):
        layers.append(("--security-protocol", {"self_made_certificate": True}))
    if arguments.users_file is not None:
        layers.append(("--users-file", {"users": read_properties(arguments.users_file, "users file")}))
    if arguments.users:
        layers.append(("--user", {"users": {name: _password(name) for name in arguments.users}}))
    if not any(
        {"data_dir", "data.dir", "log.dirs", "log.dir", "log_dirs"} & layer.keys() for _, layer in layers
    ):
        raise KafkaConfigurationError(
            "no data folder: give --data-dir ./kafka, log.dirs in the configuration file, or --ephemeral for "
            "a temporary folder"
        )
    return resolve(layers)


def _names_a_key_store(layers: list[tuple[str, dict[str, object]]]) -> bool:
    return any("ssl.keystore." in name.replace("_", ".") for _, layer in layers for name in layer)


def _password(user: str) -> Secret:
    """Read a password from the environment or the terminal.

    The password is not an argument, because every user can see the command line.
    """
    given = os.environ.get(PASSWORD_VARIABLE)
    if given is None and sys.stdin.isatty():
        given = getpass.getpass(f"Password of {user}: ")
    if not given:
        raise KafkaConfigurationError(
            f"--user {user} has no password: set {PASSWORD_VARIABLE} in the environment, or use --users-file "
            "with a file of lines NAME=PASSWORD"
        )
    return Secret(given)


def _flag(field: str) -> str:
    return "--" + field.replace("_", "-")


def config_text(config: BrokerConfig, origins: dict[str, str]) -> str:
    """Return all properties as a configuration file, grouped by source."""
    shown = config.effective_properties()
    by_origin: dict[str, list[str]] = {}
    for name, value in shown.items():
        by_origin.setdefault(origins.get(name, DEFAULT), []).append(f"{name}={value}".replace("\\", "\\\\"))
    given = [origin for origin in by_origin if origin != DEFAULT]
    parts = [
        f"# {origin}\n" + "\n".join(by_origin[origin])
        for origin in [*sorted(given), DEFAULT]
        if origin in by_origin
    ]
    return "\n\n".join(parts) + "\n"


def run(
    arguments: argparse.Namespace,
    *,
    defaults: dict[str, object],
    default_level: str = "INFO",
    on_ready: Callable[[KafkaBroker], None] | None = None,
    stop_on_stdin_eof: bool = False,
) -> int:
    """Run the broker with the parsed command-line arguments, and return its exit status.

    Parameters
    ----------
    defaults:
        Default values of properties that replace the defaults of :class:`BrokerConfig`.
    default_level:
        Log level that is used if the arguments do not contain one.
    on_ready:
        Called when clients can connect, as in :func:`~kafkacore.broker.process.run.run_broker`. It is not
        called with ``--json``.

    Raises
    ------
    KafkaConfigurationError
        The arguments are invalid; the broker was not started.
    """
    folder = None
    if arguments.ephemeral:
        if arguments.print_config:
            folder = f"{tempfile.gettempdir()}/{EPHEMERAL_PREFIX}…"
        else:
            folder = tempfile.mkdtemp(prefix=EPHEMERAL_PREFIX)
    try:
        resolved = resolved_properties(arguments, defaults, folder)
        config = BrokerConfig(**resolved.arguments)
        if arguments.print_config:
            _print_config(config, resolved, as_json=arguments.json)
            return 0
        return _run(arguments, config, resolved.notes, default_level, on_ready, stop_on_stdin_eof)
    finally:
        if folder is not None:
            # The broker normally removes the folder itself. Remove it here if an error occurred before the
            # broker ran.
            shutil.rmtree(folder, ignore_errors=True)


def _print_config(config: BrokerConfig, resolved: ResolvedProperties, *, as_json: bool) -> None:
    if as_json:
        shown = config.effective_properties()
        entries = {
            name: {"value": value, "source": resolved.origins.get(name, DEFAULT)}
            for name, value in shown.items()
        }
        sys.stdout.write(json.dumps(entries, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"# {note}\n\n" for note in resolved.notes))
        sys.stdout.write(config_text(config, resolved.origins))


def _run(
    arguments: argparse.Namespace,
    config: BrokerConfig,
    notes: list[str],
    default_level: str,
    on_ready: Callable[[KafkaBroker], None] | None,
    stop_on_stdin_eof: bool,
) -> int:
    from kafkacore.broker.log_lines import logging_to
    from kafkacore.broker.process.run import run_broker

    with ExitStack() as stack:
        level = arguments.broker_log_level or default_level
        stack.enter_context(logging_to(sys.stderr, level, as_json=arguments.json))
        return run_broker(
            config,
            stop_on_stdin_eof=stop_on_stdin_eof,
            on_ready=None if arguments.json else on_ready,
            ready_file=arguments.ready_file,
            notes=notes,
            is_ephemeral=arguments.ephemeral,
            ends_process=True,
        )
