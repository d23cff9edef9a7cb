"""Completion scripts contain the commands, options and choices of the parser."""

import argparse
import importlib.util

import pytest
import shtab

from kafkacore.cli.completion import SHELLS, _complete_files
from kafkacore.cli.main import build_parser, main


@pytest.mark.parametrize("shell", SHELLS)
def test_script_has_commands_options_and_choices(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("consume", "dump-log", "compression", "SASL_SSL"):
        assert word in script


def test_paths_are_completed_as_files():
    parser = build_parser()
    _complete_files(parser)
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    files = {
        name
        for action in commands.choices["produce"]._actions
        for name in action.option_strings
        if getattr(action, "complete", None) is shtab.FILE
    }
    assert files == {"--file", "--cafile", "--password-file", "--command-config"}


def test_missing_library_is_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert main(["completion", "bash"]) == 2
    assert capsys.readouterr().err == ("kafkacore: completion needs shtab: pip install 'kafkacore[cli]'\n")


def test_misspelt_shell_is_suggested(capsys):
    with pytest.raises(SystemExit):
        main(["completion", "bsh"])
    assert "unknown value 'bsh'; did you mean 'bash'?" in capsys.readouterr().err
