"""``kafkacore broker``: the embedded broker in the foreground."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafkacore.broker.listeners.own_certificate import own_authority
from kafkacore.broker.process import arguments as broker_arguments
from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path

    from kafkacore.broker.config.listeners import Listener
    from kafkacore.broker.process.server import KafkaBroker

EXAMPLES = """  kafkacore broker --data-dir ./kafka
  kafkacore broker --ephemeral                        # temporary data, removed when the broker stops
  kafkacore broker --config-file server.properties --override log.retention.hours=1
  kafkacore broker --data-dir ./kafka --listen 127.0.0.1:0 --override num.partitions=6
  kafkacore broker --data-dir ./kafka --flush os      # records survive a crash, but not a power loss
  kafkacore broker --config-file server.properties --print-config
  KAFKACORE_PASSWORD=… kafkacore broker --data-dir ./kafka --security-protocol SASL_SSL --user alice

The broker is one node for development, tests and single machines. It does not replicate records: for a
replicated cluster, run Apache Kafka. Ctrl-C, SIGTERM and SIGHUP stop the broker cleanly. --print-config lists
all properties.
"""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``broker`` to the command line."""
    parser = add_command(commands, "broker", COMMANDS["broker"].summary, EXAMPLES, run)
    broker_arguments.add_arguments(parser, "--set")


def run(arguments: argparse.Namespace) -> int:
    """Run the broker until it is stopped, and return its exit status."""
    return broker_arguments.run(
        arguments,
        defaults={"status_port": 0},
        default_level=arguments.log_level or "INFO",
        on_ready=_print_ready,
    )


def _print_ready(broker: KafkaBroker) -> None:
    print(
        f"Listening on {broker.bootstrap_servers}, data in {broker.config.data_dir}. Press Ctrl-C to stop.",
        flush=True,
    )
    config = broker.config
    for listener in config.node_listeners:
        if listener.protocol != "PLAINTEXT" or len(config.node_listeners) > 1:
            print(
                _for_clients(listener, broker.addresses()[listener.name], own_authority(config)), flush=True
            )
    if broker.status_url is not None:
        print(f"Status page: {broker.status_url}", flush=True)


def _for_clients(listener: Listener, address: str, authority: Path | None) -> str:
    """Return the settings that a client needs for a listener, as one line."""
    settings = [f"bootstrap_servers={address}", f"security_protocol={listener.protocol}"]
    if listener.has_tls and authority is not None:
        settings.append(f"ssl_cafile={authority}")
    if listener.has_sasl:
        settings.append(f"sasl_mechanism={listener.mechanisms[0]}")
    return f"For clients: {' '.join(settings)}"
