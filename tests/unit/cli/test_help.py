"""The help of every command."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from kafkacore.cli.main import build_parser


def arguments(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.Action]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from arguments(command, f"{path} {name}")
        else:
            yield path, action


def test_every_argument_has_a_help_text():
    found = list(arguments(build_parser()))
    assert len(found) > 100
    assert [(path, action.dest) for path, action in found if not action.help] == []
