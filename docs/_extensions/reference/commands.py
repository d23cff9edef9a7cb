"""Generate the reference of the command line from its parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from kafkacore.cli.main import PROG, build_parser


def commands() -> str:
    """Return a section for each command, with its actions, arguments and examples."""
    parser = build_parser(PROG)
    parts = ["## All commands", "", *_arguments(parser)]
    for _, command in _sub_parsers(parser):
        parts += _command(command, 2)
    return "\n".join(parts)


def _command(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield from ("", f"{'#' * level} `{parser.prog}`", "", str(parser.description), "")
    yield from ("```text", _usage(parser), "```", "")
    yield from _arguments(parser)
    if level == 2 and parser.epilog:
        yield from ("", "```text", parser.epilog.rstrip(), "```")
    for _, action in _sub_parsers(parser):
        yield from _command(action, level + 1)


def _usage(parser: argparse.ArgumentParser) -> str:
    words = [parser.prog]
    if list(_sub_parsers(parser)):
        return " ".join([*words, "ACTION", "[OPTIONS]"])
    words.append("[OPTIONS]")
    for action in _shown(parser):
        if not action.option_strings:
            name = str(action.metavar or action.dest.upper())
            shown = {"*": f"[{name} ...]", "+": f"{name} [{name} ...]", "?": f"[{name}]"}
            words.append(shown.get(str(action.nargs), name))
    return " ".join(words)


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    actions = [action for action in _shown(parser) if "--help" not in action.option_strings]
    if not actions:
        return
    yield from ("| argument | meaning |", "|---|---|")
    for action in actions:
        yield f"| {_name(action)} | {_meaning(action)} |"


def _name(action: argparse.Action) -> str:
    metavar = action.metavar if action.metavar is not None else action.dest.upper()
    value = " ".join(metavar) if isinstance(metavar, tuple) else str(metavar)
    if action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return f"`{value}`"
    takes_value = action.nargs != 0
    return ", ".join(f"`{name} {value}`" if takes_value else f"`{name}`" for name in action.option_strings)


def _meaning(action: argparse.Action) -> str:
    text = (action.help or "") % {**vars(action), "prog": PROG} if action.help else ""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("\n", " ")


def _shown(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._SubParsersAction):
            yield action


def _sub_parsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()
