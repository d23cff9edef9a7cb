"""``kafkacore broker``: the embedded broker in the foreground."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafkacore.broker import arguments as broker_arguments
from kafkacore.cli.common import Commands, add_command

if TYPE_CHECKING:
    from kafkacore.broker.server import KafkaBroker

EXAMPLES = """  kafkacore broker --data-dir ./kafka
  kafkacore broker --ephemeral                        # a new folder, removed at the end
  kafkacore broker --config-file server.properties --override log.retention.hours=1
  kafkacore broker --data-dir ./kafka --listen 127.0.0.1:0 --override num.partitions=6
  kafkacore broker --data-dir ./kafka --flush os      # survives the process, not a loss of power
  kafkacore broker --config-file server.properties --print-config

One node for development, tests and one machine: it replicates nothing. Past that, point bootstrap_servers
at Apache Kafka. Ctrl-C, SIGTERM and SIGHUP stop it cleanly. All properties: docs/BROKER.md
"""


def add_parser(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add ``broker`` to the command line."""
    parser = add_command(commands, "broker", "run a durable single-node broker until Ctrl-C", EXAMPLES, run)
    broker_arguments.add_arguments(parser, "--set")


def run(arguments: argparse.Namespace) -> int:
    """Run the broker; its own exit status."""
    return broker_arguments.run(
        arguments,
        defaults={"status_port": 0},
        default_level=arguments.log_level or "INFO",
        on_ready=_say_ready,
    )


def _say_ready(broker: KafkaBroker) -> None:
    print(
        f"Listening on {broker.bootstrap_servers}, data in {broker.config.data_dir}; Ctrl-C stops it.",
        flush=True,
    )
    if broker.status_url is not None:
        print(f"Status page: {broker.status_url}", flush=True)
