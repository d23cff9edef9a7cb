"""``kafkacore completion``: print a completion script for a shell."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.errors import KafkaConfigurationError

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = """  kafkacore completion bash > ~/.local/share/bash-completion/completions/kafkacore
  kafkacore completion zsh > ~/.zfunc/_kafkacore       # in ~/.zshrc, before compinit: fpath+=~/.zfunc
  kafkacore completion fish > ~/.config/fish/completions/kafkacore.fish
"""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``completion`` to the command line."""
    parser = add_command(
        commands,
        "completion",
        COMMANDS["completion"].summary,
        EXAMPLES,
        run,
        description="Print a script that completes commands, options, choices and files. The shell runs only "
        "the script, so write it again after an upgrade. It needs shtab: pip install 'kafkacore[cli]'.",
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that loads the script")


def run(arguments: argparse.Namespace) -> int:
    """Print the completion script for a shell."""
    if importlib.util.find_spec("shtab") is None:
        raise KafkaConfigurationError("completion needs shtab: pip install 'kafkacore[cli]'")
    import shtab

    # Imported here, because main imports the modules of all commands, including this one.
    from kafkacore.cli.main import PROG, build_parser

    parser = build_parser(PROG)
    _complete_files(parser)
    print(shtab.complete(parser, shell=arguments.shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Mark arguments that are paths, so that the shell completes the names of files."""
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command)
        elif action.type is Path or str(action.metavar).startswith(("FILE", "FOLDER", "PATH")):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
