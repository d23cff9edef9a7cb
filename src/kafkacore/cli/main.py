"""The ``kafkacore`` command.

Each command is a module of this package with a function ``add_parser(commands)``. Only the module of the
command that runs is imported. A command imports large packages (Spark, Arrow) only when it runs. The exit
status is 0 for success, 1 for a failure with the reason on standard error, 2 for wrong arguments, and 130
after an interrupt.
"""

from __future__ import annotations

import _thread
import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import NoReturn

from kafkacore.cli.command_parser import CommandParser
from kafkacore.cli.commands import COMMANDS
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.installed_version import installed_version

PROG = "kafkacore"
EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130

EPILOG = """examples:
  kafkacore broker --data-dir ./kafka --listen 127.0.0.1:9092
  kafkacore topics create flights --partitions 6
  echo '{"hello": "world"}' | kafkacore produce flights
  kafkacore consume flights --from-beginning --json | head -n 3
  kafkacore topics list --security-protocol SASL_SSL --username alice --cafile ca.pem
  kafkacore demo

exit status: 0 success (also of a broker that was stopped), 1 failure (the reason is on standard error),
2 wrong arguments, 130 interrupted by Ctrl-C or SIGTERM
"""
#: Time for child processes to exit after an interrupt, before they are killed.
GRACE_MS = 5_000.0
#: Delay after which an interrupt that was lost in a finalizer is raised again.
AGAIN_S = 0.05


class _Version(argparse.Action):
    """Prints the version."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"kafkacore {installed_version()}")
        parser.exit()


def build_parser(prog: str = PROG, complete: Collection[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser of the whole command line.

    Parameters
    ----------
    prog:
        Name of the program in messages.
    complete:
        Commands whose arguments the parser knows. Of other commands it knows only the name and the summary,
        because the modules of all commands take much longer to import than to run most commands.
    """
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
        help="write log messages of this level and above to standard error (default: ERROR; broker: INFO)",
    )
    commands = parser.add_choices("command")
    for name, command in COMMANDS.items():
        if name in complete:
            import_module(f"kafkacore.cli.{command.module}").add_parser(commands)
        else:
            commands.add_parser(name, help=command.summary, add_help=False)
    return parser


def _named_commands(argv: Sequence[str]) -> list[str]:
    """Return the command that a command line names, or none."""
    words = iter(argv)
    for word in words:
        if word == "--log-level":
            next(words, None)
        elif not word.startswith("-"):
            return [word]
    return []


def main(argv: Sequence[str] | None = None, prog: str = PROG) -> int:
    """Run a command; the entry point of the console script ``kafkacore``."""
    _open_closed_streams()
    with suppress(KeyboardInterrupt), _interruptible():
        return _run(argv, prog)
    # Call _interrupted() outside of any except clause. Within an except clause, the traceback would keep
    # objects alive, for example the pipe whose closing stops a JVM.
    return _interrupted()


def _open_closed_streams() -> None:
    """Open standard streams that the parent process has closed, such as with ``>&-``, on the null device.

    Python sets a closed stream to ``None``. Without this function, the next socket or file would get the
    number of the closed stream.
    """
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open until the process ends
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _run(argv: Sequence[str] | None, prog: str) -> int:
    """Run a command, print the reason if it fails, and return the exit status."""
    try:
        return _run_command(argv, prog)
    except BrokenPipeError:
        # The reader of the output, such as `head` in a pipe, has exited. Discard the buffered output, so that
        # the interpreter reports no error when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KafkaConfigurationError as error:
        return _failed(str(error), EXIT_USAGE)
    except UnicodeEncodeError as error:
        # Python keeps bytes of arguments that are not UTF-8 as surrogates.
        return _failed(f"{error.object!r} is not valid UTF-8", EXIT_USAGE)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _failed(f"{place}{error.strerror}" if error.strerror else str(error), EXIT_FAILED)
    except ImportError as error:
        return _failed(
            f"{error}: the installation is incomplete; run pip install --force-reinstall 'kafkacore[demo]'",
            EXIT_FAILED,
        )
    except KafkaError as error:
        return _failed(str(error), EXIT_FAILED)


def _run_command(argv: Sequence[str] | None, prog: str) -> int:
    argv = sys.argv[1:] if argv is None else argv
    arguments = build_parser(prog, _named_commands(argv)).parse_args(argv)
    with _logging_at(arguments.log_level or "ERROR"):
        status = int(arguments.run(arguments))
    sys.stdout.flush()
    return status


@contextmanager
def _logging_at(level: str) -> Iterator[None]:
    """Log messages of kafkacore at this level and above, and only critical messages of other libraries.

    The command reports a failure in one sentence at the end. Without the limit for other libraries, the
    bridge to Spark's JVM, for example, would also log the traceback of an interrupt.
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
    """Make sure that all child processes exit. A further Ctrl-C has no effect."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    from kafkacore.cli.processes import end_descendants

    end_descendants(GRACE_MS)
    # If the interrupt arrived during exec(), which dataclasses use, Python records it, and `python -m` would
    # exit by the signal instead of with our status. Another exec() clears this record.
    exec("")  # noqa: S102 - empty code
    if sys.stderr.isatty():
        # End the line on which the terminal has printed ^C or the command has asked for a password.
        print(file=sys.stderr)
    return _failed("interrupted", EXIT_INTERRUPTED)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that all child processes are stopped."""
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    former_hook, sys.unraisablehook = sys.unraisablehook, _not_to_be_lost
    try:
        yield
    finally:
        sys.unraisablehook = former_hook
        # Restore the former handler only if this function's handler is still set. Otherwise the process is
        # exiting, and must keep ignoring signals.
        if signal.getsignal(signal.SIGTERM) is signal.default_int_handler:
            signal.signal(signal.SIGTERM, former)


def _not_to_be_lost(unraisable: sys.UnraisableHookArgs) -> None:
    """If an interrupt arrived while a finalizer ran, raise it again, because the interpreter drops it."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        threading.Timer(AGAIN_S, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(unraisable)


if __name__ == "__main__":
    sys.exit(main())
