"""The ``kafkacore`` command: arguments in, exit status out.

Each command is a module of this package with ``add_parser(commands)``; what it imports that is large
(Spark, Arrow), it imports when it runs. Exit status: 0 done; 1 failed, the reason on standard error; 2
wrong arguments; 130 interrupted.
"""

from __future__ import annotations

import _thread
import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import NoReturn

from kafkacore.cli.common import CommandParser
from kafkacore.errors import KafkaConfigurationError, KafkaError

PROG = "kafkacore"
COMMANDS = (
    "demo",
    "broker",
    "topics",
    "produce",
    "consume",
    "acls",
    "users",
    "pipeline",
    "dump_log",
    "bench",
)
EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130

EPILOG = """examples:
  kafkacore broker --data-dir ./kafka --listen 127.0.0.1:9092
  kafkacore topics create flights --partitions 6
  echo '{"hello": "world"}' | kafkacore produce flights
  kafkacore consume flights --from-beginning --json | head -n 3
  kafkacore topics list --security-protocol SASL_SSL --username alice --cafile ca.pem
  kafkacore demo

exit status: 0 done (also a broker that was asked to stop), 1 failed (the reason on standard error),
2 wrong arguments, 130 interrupted by Ctrl-C or SIGTERM
"""
#: How long what we have started may take to end after an interrupt, before it is killed.
GRACE_MS = 5_000.0
#: How long after an interrupt that was lost in a finalizer it is raised again.
AGAIN_S = 0.05


class _Version(argparse.Action):
    """Looks the version up when it is asked for: that takes as long as everything else at the start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib import metadata

        print(f"kafkacore {metadata.version('kafkacore')}")
        parser.exit()


def build_parser(prog: str = PROG) -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = CommandParser(
        prog=prog,
        description="Apache Kafka from the command line: broker, producer, consumer, and Spark pipelines.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.add_argument(
        "--log-level",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        help="write log messages of this level to standard error (default: ERROR; broker: INFO)",
    )
    commands = parser.add_choices("command")
    for name in COMMANDS:
        import_module(f"kafkacore.cli.{name}").add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None, prog: str = PROG) -> int:
    """Run the command; the console script ``kafkacore``, and what else it is called."""
    with suppress(KeyboardInterrupt), _interruptible():
        return _run(argv, prog)
    # Not in an except clause: the traceback would keep what was at work, such as the pipe to a JVM that
    # ends when the pipe does.
    return _interrupted()


def _run(argv: Sequence[str] | None, prog: str) -> int:
    """The command's exit status, with a sentence for what failed."""
    try:
        return _run_command(argv, prog)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): that is its way of saying enough. What is still
        # buffered goes nowhere, so that the interpreter does not complain as it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KafkaConfigurationError as error:
        return _failed(str(error), EXIT_USAGE)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _failed(f"{place}{error.strerror}" if error.strerror else str(error), EXIT_FAILED)
    except ImportError as error:
        return _failed(
            f"{error}: the installation is not whole; pip install --force-reinstall 'kafkacore[demo]'",
            EXIT_FAILED,
        )
    except KafkaError as error:
        return _failed(str(error), EXIT_FAILED)


def _run_command(argv: Sequence[str] | None, prog: str) -> int:
    arguments = build_parser(prog).parse_args(argv)
    with _logging_at(arguments.log_level or "ERROR"):
        status = int(arguments.run(arguments))
    sys.stdout.flush()
    return status


@contextmanager
def _logging_at(level: str) -> Iterator[None]:
    """What failed is said in one sentence at the end: a logger's warnings are for who asks, and those of
    others' libraries (the bridge to Spark's JVM shows an interrupt's traceback) for nobody.
    """
    logging.basicConfig(level=logging.CRITICAL, format="%(levelname)s %(name)s: %(message)s")
    ours = logging.getLogger("kafkacore")
    former = ours.level
    ours.setLevel(level)
    try:
        yield
    finally:
        ours.setLevel(former)


def _failed(sentence: str, status: int) -> int:
    print(f"kafkacore: {sentence}", file=sys.stderr)
    return status


def _interrupted() -> int:
    """Everything has been told to end; make sure that it has. A further Ctrl-C changes nothing."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    from kafkacore.cli.processes import end_descendants

    end_descendants(GRACE_MS)
    # An interrupt that came while Python ran code from a text, as making a dataclass does, is remembered, and
    # `python -m` would end by the signal in spite of our status: the next such run forgets it.
    exec("")  # noqa: S102 - nothing at all
    return _failed("interrupted", EXIT_INTERRUPTED)


@contextmanager
def _interruptible() -> Iterator[None]:
    """A polite kill ends the same way as Ctrl-C: everything started is stopped."""
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    former_hook, sys.unraisablehook = sys.unraisablehook, _not_to_be_lost
    try:
        yield
    finally:
        sys.unraisablehook = former_hook
        # What has been told to ignore signals, because the process is at its end, goes on ignoring them.
        if signal.getsignal(signal.SIGTERM) is signal.default_int_handler:
            signal.signal(signal.SIGTERM, former)


def _not_to_be_lost(unraisable: sys.UnraisableHookArgs) -> None:
    """An interrupt that comes while a finalizer runs is dropped by the interpreter: raise it once more."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        threading.Timer(AGAIN_S, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(unraisable)


if __name__ == "__main__":
    sys.exit(main())
