"""``python -m kafkacore.broker``: the broker as a process, without the rest of the command line."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from kafkacore.broker.config import BrokerConfig
from kafkacore.broker.server import run_broker
from kafkacore.errors import KafkaConfigurationError

EXIT_USAGE = 2


def parse_arguments(arguments: Sequence[str] | None = None) -> tuple[BrokerConfig, argparse.Namespace]:
    """Command line → configuration; exits with status 2 and a sentence if it cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m kafkacore.broker", description=__doc__)
    parser.add_argument("--data-dir", required=True, help="folder of the logs; made if missing")
    parser.add_argument("--listen", default="127.0.0.1:9092", help="host:port; port 0 takes a free one")
    parser.add_argument("--flush", choices=("ack", "os"), default="ack", help="what acknowledged means")
    parser.add_argument(
        "--config", metavar="NAME=VALUE", action="append", default=[], help="a property, num.partitions=6"
    )
    parser.add_argument(
        "--stop-on-stdin-eof",
        action="store_true",
        help="stop when standard input ends (for a parent process)",
    )
    parser.add_argument("--log-level", default="INFO", help="DEBUG, INFO, WARNING …")
    parsed = parser.parse_args(arguments)
    properties: dict[str, str] = {"data_dir": parsed.data_dir, "listen": parsed.listen, "flush": parsed.flush}
    for setting in parsed.config:
        name, equals, value = setting.partition("=")
        if not equals:
            parser.error(f"--config {setting}: must be name=value")
        properties[name] = value
    try:
        return BrokerConfig.from_properties(properties), parsed
    except KafkaConfigurationError as error:
        parser.error(str(error))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a broker; its exit status."""
    config, parsed = parse_arguments(arguments)
    logging.basicConfig(
        level=parsed.log_level,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s",
    )
    return run_broker(config, stop_on_stdin_eof=parsed.stop_on_stdin_eof)


if __name__ == "__main__":
    sys.exit(main())
