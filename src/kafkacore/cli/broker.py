"""``kafkacore broker``: the embedded broker in the foreground."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafkacore.cli.common import Commands, add_command, assignment

if TYPE_CHECKING:
    from kafkacore.broker.server import KafkaBroker

EXAMPLES = """  kafkacore broker --data-dir ./kafka
  kafkacore broker --data-dir ./kafka --listen 127.0.0.1:0 --set num.partitions=6
  kafkacore broker --data-dir ./kafka --flush os      # survives the process, not a loss of power
"""


def add_parser(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add ``broker`` to the command line."""
    parser = add_command(commands, "broker", "run a durable single-node broker until Ctrl-C", EXAMPLES, run)
    parser.add_argument("--data-dir", required=True, help="folder of its logs; made if it is missing")
    parser.add_argument(
        "--listen", default="127.0.0.1:9092", metavar="HOST:PORT", help="port 0 takes a free one"
    )
    parser.add_argument(
        "--flush",
        choices=("ack", "os"),
        default="ack",
        help="on disk (ack, the default), or written to the system (os), before acknowledged",
    )
    parser.add_argument(
        "--allow-remote", action="store_true", help="listen where other machines can reach it"
    )
    parser.add_argument("--json", action="store_true", help="say that it is ready by one line of JSON")
    parser.add_argument(
        "--set",
        action="append",
        type=assignment,
        default=[],
        metavar="NAME=VALUE",
        help="a property of Kafka's",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the broker; its own exit status."""
    from kafkacore.broker.config import BrokerConfig
    from kafkacore.broker.server import run_broker

    properties = {
        "data_dir": arguments.data_dir,
        "listen": arguments.listen,
        "flush": arguments.flush,
        "allow_remote": arguments.allow_remote,
        **dict(arguments.set),
    }
    config = BrokerConfig.from_properties(properties)
    return run_broker(config, on_ready=None if arguments.json else _say_ready)


def _say_ready(broker: KafkaBroker) -> None:
    print(
        f"Listening on {broker.bootstrap_servers}, data in {broker.config.data_dir}; Ctrl-C stops it.",
        flush=True,
    )
