"""The parser of the command line, which imports no part of a client."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from kafkacore.text import did_you_mean

Commands = argparse._SubParsersAction


class CommandParser(argparse.ArgumentParser):
    """A parser that suggests the closest name for a misspelt option, command or choice.

    argparse would report an unknown option of a sub-command for the whole command line. The messages of
    argparse about choices differ between versions of Python.
    """

    def add_choices(self, kind: str) -> Commands[CommandParser]:
        """Add sub-commands. Without a sub-command, the parser prints the help and exits with status 2."""
        self.set_defaults(run=self._lacks_command)
        return self.add_subparsers(title=f"{kind}s", metavar=kind.upper())

    def _lacks_command(self, _: argparse.Namespace) -> int:
        self.print_help(sys.stderr)
        return 2

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [str(choice) for choice in action.choices]
        meant = did_you_mean(str(value), names, f"choose from {', '.join(names)}", show=repr)
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"unknown {str(action.metavar).lower()} {value!r}; {meant}")
        raise argparse.ArgumentError(action, f"unknown value {value!r}; {meant}")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        if args is not None and not args and any(map(_is_needed, self._actions)):
            # The command has no arguments but needs some, for example `kafkacore consume`.
            self.print_help(sys.stderr)
            self.exit(2)
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._refusal(unknown[0].partition("=")[0]))
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 and a short error. argparse would print the usage too, which hides the error."""
        hint = "" if "; " in message else f"; see {self.prog} --help"
        self.exit(2, f"{self.prog}: error: {message}{hint}\n")

    def _refusal(self, unknown: str) -> str:
        if not unknown.startswith("-"):
            return f"unexpected argument {unknown!r}; see {self.prog} --help"
        shown = [
            name for name, action in self._option_string_actions.items() if action.help != argparse.SUPPRESS
        ]
        return f"unknown option {unknown}; " + did_you_mean(unknown, shown, f"see {self.prog} --help")


def _is_needed(action: argparse.Action) -> bool:
    """Return whether a command line must have this argument."""
    # argparse marks positional arguments that may occur any number of times as required.
    return action.required and action.nargs != argparse.ZERO_OR_MORE


def add_command(
    commands: Commands[CommandParser],
    name: str,
    summary: str,
    examples: str,
    run: Callable[[argparse.Namespace], int],
    description: str | None = None,
) -> CommandParser:
    """Add the parser of a command. ``--help`` shows the description or the summary, and the examples."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=description or summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    assert isinstance(parser, CommandParser)
    return parser
