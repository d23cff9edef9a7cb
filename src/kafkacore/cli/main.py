"""The ``kafkacore`` command: arguments in, exit status out.

Each command is a module of this package with ``add_parser(commands)``; what it imports that is large
(Spark, Arrow), it imports when it runs. Exit status: 0 done; 1 failed, the reason on standard error; 2
wrong arguments; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import metadata
from types import FrameType
from typing import NoReturn

from kafkacore.cli import broker, consume, demo, dump_log, pipeline, produce, topics
from kafkacore.errors import KafkaConfigurationError, KafkaError

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130

EPILOG = """examples:
  kafkacore broker --data-dir ./kafka --listen 127.0.0.1:9092
  kafkacore topics create flights --partitions 6
  echo '{"hello": "world"}' | kafkacore produce flights
  kafkacore consume flights --from-beginning --json | head -n 3
  kafkacore demo

exit status: 0 done, 1 failed, 2 wrong arguments, 130 interrupted
"""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="kafkacore",
        description="Apache Kafka from the command line: broker, producer, consumer, and Spark pipelines.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"kafkacore {metadata.version('kafkacore')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (demo, broker, topics, produce, consume, pipeline, dump_log):
        module.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the console script ``kafkacore``."""
    arguments = build_parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        print("kafkacore: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): that is its way of saying enough. What is still
        # buffered goes nowhere, so that the interpreter does not complain as it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KafkaConfigurationError as error:
        print(f"kafkacore: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (KafkaError, OSError) as error:
        print(f"kafkacore: {error}", file=sys.stderr)
        return EXIT_FAILED


def _interrupt(signum: int, frame: FrameType | None) -> NoReturn:
    """A polite kill ends the same way as Ctrl-C: everything started is stopped."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
