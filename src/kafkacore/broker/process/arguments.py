"""The command line of a broker's process, as ``kafkacore broker`` and ``python -m kafkacore.broker`` have it.

Arguments in; a broker that has run out. Does not know: what a broker does. Of one property, a flag of its
own comes before ``--override``, that before the config file, and that before the defaults.
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
    """What other programs have, and this one by ``--listen``."""

    def __call__(
        self, parser: argparse.ArgumentParser, _: object, value: object, option: object = None
    ) -> None:
        address = f"localhost:{value or 9092}" if option == "--port" else f"{value or 'localhost'}:9092"
        parser.error(f"unknown option {option}: write --listen {address}")


def add_arguments(parser: argparse.ArgumentParser, *override_names: str) -> None:
    """Add a broker's arguments; ``override_names`` are further names of ``--override``."""
    place = parser.add_argument_group("what and where")
    place.add_argument(
        "--config-file", metavar="FILE", type=Path, help="properties, as Kafka's server.properties"
    )
    place.add_argument(
        "--override",
        *override_names,
        dest="overrides",
        action="append",
        type=_assignment,
        default=[],
        metavar="NAME=VALUE",
        help="a property by Kafka's name, as num.partitions=6; before that of the file",
    )
    place.add_argument("--data-dir", metavar="FOLDER", help="folder of its logs; made if it is missing")
    place.add_argument(
        "--ephemeral", action="store_true", help="a new folder that is removed at the end; --flush os"
    )
    place.add_argument(
        "--listen", metavar="HOST:PORT", help="port 0 takes a free one (default: 127.0.0.1:9092)"
    )
    place.add_argument("--port", "--host", action=_InsteadOfListen, nargs="?", help=argparse.SUPPRESS)
    place.add_argument(
        "--flush",
        choices=("ack", "os"),
        help="on disk (ack, the default), or written to the system (os), before acknowledged",
    )
    place.add_argument(
        "--allow-remote",
        action="store_true",
        default=None,
        help="listen where other machines can reach it; they are not asked who they are",
    )
    place.add_argument(
        "--security-protocol",
        type=str.upper,
        choices=SECURITY_PROTOCOLS,
        help="what clients speak (default: PLAINTEXT); with SSL, and no key store in the config file, a "
        "certificate for development is made, for which clients trust the file tls/ca.pem of the data folder",
    )
    place.add_argument(
        "--user",
        dest="users",
        action="append",
        default=[],
        metavar="NAME",
        help=f"may log in; the password is that of {PASSWORD_VARIABLE} in the environment, or asked for",
    )
    place.add_argument(
        "--users-file",
        metavar="FILE",
        type=Path,
        help="users that may log in, each a line NAME=PASSWORD",
    )
    place.add_argument(
        "--status-port",
        metavar="PORT",
        type=_status_port,
        help="of the status page and metrics: 0 for any, or off",
    )
    said = parser.add_argument_group("what it says")
    said.add_argument(
        "--print-config", action="store_true", help="print each property and whence it is, and end"
    )
    said.add_argument("--json", action="store_true", help="log, and say that it is ready, by lines of JSON")
    said.add_argument(
        "--ready-file",
        metavar="FILE",
        type=Path,
        help="is there, with the ready line, while clients can connect",
    )
    said.add_argument(
        "--log-level",
        dest="broker_log_level",
        type=str.upper,
        choices=LEVELS,
        help="from which on (default: INFO)",
    )


def _assignment(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} must be name=value, as num.partitions=6")
    return name.strip(), value


def _status_port(text: str) -> int:
    if text == "off":
        return -1
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} must be a port from 0 to 65535, or off")
    return int(text)


def resolved_properties(
    arguments: argparse.Namespace, defaults: dict[str, object], ephemeral_folder: str | None
) -> ResolvedProperties:
    """The properties that the arguments come to.

    Raises
    ------
    KafkaConfigurationError
        They cannot be used.
    """
    layers: list[tuple[str, dict[str, object]]] = [(DEFAULT, defaults)]
    if ephemeral_folder is not None:
        if arguments.data_dir is not None:
            raise KafkaConfigurationError("--ephemeral makes a folder of its own: leave --data-dir out")
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
            "name the folder for the broker's data: --data-dir ./kafka, log.dirs in the config file, "
            "or --ephemeral for one that is removed at the end"
        )
    return resolve(layers)


def _names_a_key_store(layers: list[tuple[str, dict[str, object]]]) -> bool:
    return any("ssl.keystore." in name.replace("_", ".") for _, layer in layers for name in layer)


def _password(user: str) -> Secret:
    """From the environment or the terminal, and never from the command line, which everybody can read."""
    given = os.environ.get(PASSWORD_VARIABLE)
    if given is None and sys.stdin.isatty():
        given = getpass.getpass(f"Password of {user}: ")
    if not given:
        raise KafkaConfigurationError(
            f"--user {user} has no password: put it into the environment as {PASSWORD_VARIABLE}, or name a "
            "file of lines NAME=PASSWORD with --users-file"
        )
    return Secret(given)


def _flag(field: str) -> str:
    return "--" + field.replace("_", "-")


def config_text(config: BrokerConfig, origins: dict[str, str]) -> str:
    """Every property, those of one source under its name; a config file again."""
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
    """Run the broker that the arguments ask for; its exit status.

    Parameters
    ----------
    defaults:
        Properties that differ from :class:`BrokerConfig`'s defaults here.
    default_level:
        From which level on it says what it does, unless the arguments say.
    on_ready:
        As for :func:`~kafkacore.broker.process.run.run_broker`; without effect where JSON is asked for.

    Raises
    ------
    KafkaConfigurationError
        The arguments cannot be used; nothing has been started.
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
            # The broker has done it while it still took signals; this is for what kept it from running.
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
