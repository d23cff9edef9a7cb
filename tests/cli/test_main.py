"""The command line: help, versions, exit statuses, and a sentence for each wrong argument."""

import json
import subprocess
import sys

import pytest

from kafkacore.cli.main import build_parser, main
from kafkacore.cli.pipeline import config_of

COMMANDS = ["demo", "broker", "topics", "produce", "consume", "pipeline", "dump-log", "bench"]
AGGREGATE = ["--group-by", "a", "--aggregate", "n=count(*)", "--aggregate-path", "x"]
PIPELINE = ["pipeline", "--bootstrap", "h:1", "--topic", "t", "--path", "p", "--checkpoint", "c"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_shows_an_example(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "examples:" in shown
    assert f"kafkacore {command}" in shown


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
    ("arguments", "sentence"),
    [
        (["--trigger", "sometimes"], "neither available-now nor an interval such as '10 seconds'"),
        (["--derive", "to_date(at)"], "is not NAME=SQL"),
        (["--option", "x"], "is not NAME=VALUE"),
        (["--format", "avro"], "invalid choice: 'avro'"),
    ],
)
def test_malformed_argument_ends_with_2_and_says_what_it_may_be(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*PIPELINE, *arguments])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "format json needs a schema"),
        (["--format", "raw", "--schema", "a INT"], "leave out the schema"),
        (["--schema", "@nowhere"], "No such file or directory: nowhere"),
        (["--schema", "a INT", "--keep", "colour"], "Kafka has no column colour"),
        (["--schema", "a INT", "--group-by", "a"], "go together"),
        (["--schema", "a INT", "--option", "startingOffsetz=1"], "did you mean startingOffsets?"),
        (["--schema", "a INT", "--starting-offsets", "yesterday"], "startingOffsets must be JSON"),
        (["--schema", "a INT", *AGGREGATE, "--trigger", "1 minute"], "use available-now"),
    ],
)
def test_arguments_that_do_not_go_together_end_with_2(arguments, sentence, capsys):
    assert main([*PIPELINE, *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_pipeline_arguments_become_its_configuration(tmp_path):
    schema = tmp_path / "schema.ddl"
    schema.write_text("id BIGINT, at TIMESTAMP")
    arguments = [
        "--schema",
        f"@{schema}",
        "--derive",
        "day=to_date(at)",
        "--partition-by",
        "day",
        "--keep",
        "offset,key",
    ]
    config = config_of(
        build_parser().parse_args([*PIPELINE, *arguments, "--option", "maxOffsetsPerTrigger=10"])
    )
    assert config.schema == "id BIGINT, at TIMESTAMP"
    assert config.derive == (("day", "to_date(at)"),)
    assert (config.partition_by, config.keep) == (("day",), ("offset", "key"))
    assert config.options == {"maxOffsetsPerTrigger": "10"}


def test_offset_without_partition_is_refused(capsys):
    assert main(["consume", "t", "--offset", "3"]) == 2
    assert "add --partition" in capsys.readouterr().err


def test_demo_refuses_a_folder_that_is_not_its_own(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert main(["demo", "--dir", str(tmp_path), "--fresh"]) == 1
    assert "not a folder of this demo" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").exists()


def test_demo_refuses_to_mix_runs_of_different_size(tmp_path, capsys):
    (tmp_path / ".kafkacore-demo.json").write_text(json.dumps({"acknowledged": 10}))
    assert main(["demo", "--dir", str(tmp_path), "--records", "20"]) == 1
    assert "add --fresh" in capsys.readouterr().err
