"""Run a Kafka broker.

This is ``kafkacore broker`` without the rest of the command line. The broker prints its address as a line of
JSON. It serves a status page only if a status port is configured.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from kafkacore.broker.process import arguments as broker_arguments
from kafkacore.errors import KafkaConfigurationError

EXIT_USAGE, EXIT_INTERRUPTED = 2, 130


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m kafkacore.broker", description=__doc__, allow_abbrev=False
    )
    broker_arguments.add_arguments(parser, "--config")
    parser.add_argument(
        "--stop-on-stdin-eof",
        action="store_true",
        help="stop when standard input is closed, so that the broker stops with its parent process",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a broker and return its exit status."""
    parser = build_parser()
    parsed = parser.parse_args(arguments)
    # Until the broker handles signals itself, SIGTERM raises KeyboardInterrupt, so that cleanup code runs.
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return broker_arguments.run(parsed, defaults={}, stop_on_stdin_eof=parsed.stop_on_stdin_eof)
    except KafkaConfigurationError as error:
        parser.error(str(error.args[0]))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    finally:
        if signal.getsignal(signal.SIGTERM) is signal.default_int_handler:
            signal.signal(signal.SIGTERM, former)


if __name__ == "__main__":
    sys.exit(main())
