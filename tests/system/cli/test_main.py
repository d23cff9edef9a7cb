"""The command line: help, versions, exit statuses, and a clear message for each invalid argument."""

import json
import subprocess
import sys

import pytest

from kafkacore.cli.main import main

COMMANDS = [
    "demo",
    "broker",
    "topics",
    "produce",
    "consume",
    "acls",
    "users",
    "lag-exporter",
    "groups",
    "offsets",
    "configs",
    "cluster",
    "transactions",
    "quotas",
    "log-dirs",
    "elect-leaders",
    "reassign",
    "pipeline",
    "dump-log",
    "bench",
    "completion",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_shows_an_example(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "examples:" in shown
    assert f"kafkacore {command}" in shown


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--help"], 0, "usage: python -m kafkacore [-h]"),
        (["broker", "--help"], 0, "usage: python -m kafkacore broker [-h]"),
        (["--version"], 0, "kafkacore "),
        (["broker", "--qqq"], 2, "unknown option --qqq; see python -m kafkacore broker --help"),
        (["consume", "t", "--offset", "3"], 2, "kafkacore: --offset"),
    ],
)
def test_package_runs_as_the_command_does(arguments, status, sentence):
    ended = subprocess.run([sys.executable, "-m", "kafkacore", *arguments], capture_output=True, text=True)
    assert (ended.returncode, sentence in ended.stdout + ended.stderr) == (status, True), ended


def test_package_itself_loads_nothing_of_the_command():
    code = "import sys, kafkacore; print([m for m in sys.modules if m.startswith('kafkacore.cli')])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_version_is_one_line(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("kafkacore ")


def test_light_commands_load_neither_spark_nor_arrow():
    large = "('pyspark', 'pyarrow', 'pandas')"
    code = f"import sys, kafkacore.cli.main; print([m for m in {large} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("broker --dat-dir x", "broker: error: unknown option --dat-dir; did you mean --data-dir"),
        ("broker --qqq=1", "kafkacore broker: error: unknown option --qqq; see kafkacore broker --help"),
        ("topics create t --partition 3", "unknown option --partition; did you mean --partitions?"),
        ("broker --port 9999", "broker: error: unknown option --port: use --listen localhost:9999"),
        ("broker --port=9999", "broker: error: unknown option --port: use --listen localhost:9999"),
        ("broker --host db1", "broker: error: unknown option --host: use --listen db1:9092"),
        ("broker --port", "broker: error: unknown option --port: use --listen localhost:9092"),
        ("broker --prt 9", "unknown option --prt; did you mean --set?"),
        ("broker stray", "broker: error: unexpected argument 'stray'; see kafkacore broker --help"),
        ("--jsn topics list", "kafkacore: error: unknown option --jsn; see kafkacore --help"),
    ],
)  # fmt: skip
def test_option_that_there_is_not_is_named_by_its_command_with_the_one_that_was_meant(
    capsys, wrong, sentence
):
    with pytest.raises(SystemExit) as ended:
        main(wrong.split())
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["topics"], ["users"], ["acls"]])
def test_missing_command_prints_help_with_examples(words, capsys):
    assert main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("usage: kafkacore")
    assert "examples:\n  kafkacore" in shown.err


@pytest.mark.parametrize("command", ["consume", "produce", "users create", "dump-log", "completion"])
def test_command_without_its_arguments_prints_help(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"usage: kafkacore {command} ")
    assert "examples:\n" in shown.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("topcis list", "kafkacore: error: unknown command 'topcis'; did you mean 'topics'?"),
        ("consumer t", "unknown command 'consumer'; did you mean 'consume'?"),
        ("dump_log t", "unknown command 'dump_log'; did you mean 'dump-log'?"),
        ("xyzzy", "unknown command 'xyzzy'; choose from demo, broker, topics, produce, consume, acls"),
        ("topics lst", "kafkacore topics: error: unknown action 'lst'; did you mean 'list'?"),
        (
            "users add bob",
            "kafkacore users: error: unknown action 'add'; choose from list, create, delete",
        ),
        ("bench prodce", "argument mode: unknown value 'prodce'; did you mean 'produce'?"),
        ("produce t --compression lz", "argument --compression: unknown value 'lz'; did you mean 'lz4'?"),
        ("produce t --acks 2", "argument --acks: unknown value '2'; choose from 0, 1, all"),
    ],
)
def test_misspelt_word_suggests_what_was_meant(words, sentence, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


def test_offset_without_partition_is_refused(capsys):
    assert main(["consume", "t", "--offset", "3"]) == 2
    assert "--offset needs --partition" in capsys.readouterr().err


def test_demo_refuses_a_folder_that_is_not_its_own(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert main(["demo", "--dir", str(tmp_path), "--fresh"]) == 1
    assert "has files that are not from this demo" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").exists()


def test_demo_refuses_to_mix_runs_of_different_size(tmp_path, capsys):
    (tmp_path / ".kafkacore-demo.json").write_text(json.dumps({"acknowledged": 10}))
    assert main(["demo", "--dir", str(tmp_path), "--records", "20"]) == 1
    assert "add --fresh" in capsys.readouterr().err
