"""Arguments and job files of ``kafkacore pipeline``, without starting Spark."""

import os
import re
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies

from kafkacore.cli.main import build_parser, main
from kafkacore.cli.pipeline import EXAMPLES, Settings, config_of
from kafkacore.security.references import ALLOWED_PATHS, ALLOWED_VARIABLES
from kafkacore.settings.toml_file import MAX_FILE_BYTES
from kafkacore.spark.pipeline import Aggregate, ConsoleSink, DeltaSink, KafkaSink, ParquetSink
from kafkacore.spark.pipeline.config import DELTA_BATCH_OFFSETS
from kafkacore.spark.pipeline.file import read_settings, settings_as_toml
from kafkacore.spark.secrets import referred

TOPIC = ["--bootstrap", "localhost:9092", "--topic", "t"]
CHECKPOINT = ["--checkpoint", "c"]
PARQUET = [*TOPIC, *CHECKPOINT, "--path", "p"]
KAFKA = [*TOPIC, *CHECKPOINT, "--format", "raw", "--sink", "kafkacore"]
AGGREGATE = ["--group-by", "a", "--aggregate", "n=count(*)", "--aggregate-path", "q"]
MARK = "hunter2-zq7"


def config(*arguments):
    return config_of(Settings(build_parser().parse_args(["pipeline", *arguments])))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--path is missing: the sink parquet needs it"),
        ([*TOPIC, "--path", "p"], "--checkpoint is missing"),
        ([*CHECKPOINT, "--path", "p", "--topic", "t"], "--bootstrap is missing"),
        ([*CHECKPOINT, "--path", "p", "--bootstrap", "h:1"], "--topic is missing"),
        (PARQUET, "format json needs a schema"),
        ([*PARQUET, "--format", "avro"], "set the option value.schema to its JSON, or schema.registry"),
        ([*PARQUET, "--trigger", "sometimes"], "use available-now or an interval such as '10 seconds'"),
        ([*PARQUET, "--schema", "a INT", "--derive", "x y=1"], "--derive 'x y' is not a valid column name"),
        ([*PARQUET, "--format", "yaml"], "--format yaml is unknown: use one of raw, string, long"),
        ([*PARQUET, "--format", "raw", "--key-format", "json"], "key format must be one of raw, string"),
        (
            [*PARQUET, "--format", "raw", "--schema", "a INT"],
            "format raw has no fields: remove the schema",
        ),
        (
            [*PARQUET, "--format", "long", "--schema", "a INT"],
            "format long has no fields: remove the schema",
        ),
        ([*PARQUET, "--schema", "a INT", "--mode", "lenient"], "mode must be one of PERMISSIVE"),
        ([*PARQUET, "--schema", "@nowhere"], "No such file or directory: nowhere"),
        ([*PARQUET, "--schema", "a INT", "--keep", "colour"], "cannot keep colour"),
        ([*PARQUET, "--schema", "a INT", "--group-by", "a"], "must be given together"),
        ([*PARQUET, "--schema", "a INT", "--option", "startingOffsetz=1"], "did you mean startingOffsets?"),
        ([*PARQUET, "--schema", "a INT", "--starting-offsets", "yesterday"], "startingOffsets must be JSON"),
        (
            [*PARQUET, "--schema", "a INT", *AGGREGATE, "--trigger", "1 minute"],
            "use the trigger available-now",
        ),
        ([*PARQUET, "--schema", "a INT", *AGGREGATE, "--sink", "delta"], "use the sink parquet"),
        (
            [*PARQUET, "--sink", "paper"],
            "--sink paper is unknown: use one of parquet, delta, kafkacore, console",
        ),
        (
            [*PARQUET, "--schema", "a INT", "--to", "t2"],
            "--to works only with the sink kafkacore, not with parquet",
        ),
        (
            [*PARQUET, "--schema", "a INT", "--exactly-once"],
            "--exactly-once works only with the sink kafkacore",
        ),
        (KAFKA, "--to is missing: the sink kafkacore needs it"),
        ([*KAFKA, "--to", "t2", "--sink-option", "topc=x"], "did you mean topic?"),
        (
            [*KAFKA, "--to", "t2", "--path", "p"],
            "--path works only with the sink parquet or delta, not with kafkacore",
        ),
        ([*PARQUET, "--schema", "a INT", "--sink", "delta", "--sink-option", "mergeschem=x"], "mergeSchema"),
        (
            [*TOPIC, "--format", "raw", "--sink", "console", "--rows", "few"],
            "--rows few is not a whole number",
        ),
        ([*TOPIC, "--format", "raw", "--sink", "console", "--rows", "0"], "at least 1 row"),
        ([*PARQUET, "--format", "raw", "--timeout", "soon"], "--timeout 'soon' is not a number of seconds"),
        (["nowhere.toml"], "nowhere.toml: No such file or directory"),
    ],
)
def test_arguments_that_do_not_go_together_end_with_2(arguments, sentence, capsys):
    assert main(["pipeline", *arguments]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.startswith("kafkacore: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--derive", "to_date(at)"], "must have the form NAME=SQL"),
        (["--option", MARK], "must have the form NAME=VALUE"),
    ],
)
def test_malformed_argument_ends_with_2_and_is_not_shown(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", *arguments])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert MARK not in said


def test_arguments_become_a_configuration(tmp_path):
    (tmp_path / "schema.ddl").write_text("id BIGINT, at TIMESTAMP")
    found = config(
        *PARQUET, "--schema", f"@{tmp_path}/schema.ddl", "--derive", "day=to_date(at)", "--derive", "x=a = b",
        "--partition-by", "day", "--keep", "offset, key", "--key-format", "string", "--mode", "permissive",
        "--option", "maxOffsetsPerTrigger=10", *AGGREGATE,
    )  # fmt: skip
    assert found.schema == "id BIGINT, at TIMESTAMP"
    assert found.derive == (("day", "to_date(at)"), ("x", "a = b"))
    assert found.sink == ParquetSink(Path("p").absolute(), ("day",))
    assert found.keep == ("offset", "key")
    assert found.aggregate == Aggregate(("a",), (("n", "count(*)"),), Path("q").absolute())
    assert found.source_options() == {
        "kafka.bootstrap.servers": "localhost:9092", "subscribe": "t", "startingOffsets": "earliest",
        "value.format": "json", "key.format": "string", "mode": "PERMISSIVE", "maxOffsetsPerTrigger": "10",
    }  # fmt: skip


def test_each_sink_has_its_own_arguments():
    delta = config(*PARQUET, "--format", "raw", "--sink", "delta", "--sink-option", "mergeSchema=true")
    assert delta.sink == DeltaSink(str(Path("p").absolute()), (), {"mergeSchema": "true"})
    assert delta.source_options()["maxOffsetsPerTrigger"] == str(DELTA_BATCH_OFFSETS)
    own = config(*PARQUET, "--format", "raw", "--sink", "delta", "--option", "maxoffsetspertrigger=7")
    assert "maxOffsetsPerTrigger" not in own.source_options()
    stored = config(*TOPIC, *CHECKPOINT, "--format", "raw", "--sink", "delta", "--path", "s3://b/t")
    assert stored.sink == DeltaSink("s3://b/t")
    copied = config(*KAFKA, "--to", "t2", "--exactly-once", "--sink-option", "kafka.compression.type=lz4")
    assert copied.sink == KafkaSink("localhost:9092", "t2", True, {"kafka.compression.type": "lz4"})
    other = config(*KAFKA, "--to", "t2", "--to-bootstrap", "other:9092")
    assert other.sink == KafkaSink("other:9092", "t2")
    shown = config(*TOPIC, "--format", "string", "--sink", "console", "--rows", "3", "--json")
    assert shown.sink == ConsoleSink(3, as_json=True)


# ---- Job files ---------------------------------------------------------------------------------------------

JOB = """
bootstrap = "localhost:9092"
topic = ["a", "b"]
schema = "id BIGINT"
sink = "parquet"
path = "p"
partition-by = ["day", "hour"]
checkpoint = "c"
trigger = "10 seconds"
derive = { day = "to_date(at)", hour = "hour(at)" }
[option]
maxOffsetsPerTrigger = 1000
failOnDataLoss = false
kafka.client.id = "job"
"kafka.sasl.password" = "${env:KAFKA_PASSWORD}"
"""


@pytest.fixture
def job(tmp_path):
    def write(text):
        (tmp_path / "job.toml").write_text(text)
        return str(tmp_path / "job.toml")

    return write


def test_file_holds_a_whole_job_and_the_command_line_wins(job):
    file = job(JOB)
    found = config(file)
    assert (found.topic, found.trigger, found.schema) == ("a,b", "10 seconds", "id BIGINT")
    assert found.derive == (("day", "to_date(at)"), ("hour", "hour(at)"))
    assert found.sink == ParquetSink(Path("p").absolute(), ("day", "hour"))
    assert found.options == {
        "maxOffsetsPerTrigger": "1000", "failOnDataLoss": "false", "kafka.client.id": "job",
        "kafka.sasl.password": "${env:KAFKA_PASSWORD}",
    }  # fmt: skip
    won = config(file, "--trigger", "available-now", "--option", "maxOffsetsPerTrigger=5", "--derive", "x=1")
    assert won.trigger == "available-now"
    assert won.options["maxOffsetsPerTrigger"] == "5"
    assert won.derive == (*found.derive, ("x", "1"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('boostrap = "h:1"', "unknown setting 'boostrap': did you mean bootstrap?"),
        ('colour = "red"', "unknown setting 'colour': the settings are aggregate, aggregate-path, bootstrap"),
        ("topic = true", "topic must be a string"),
        ("topic = {a = 1}", "topic must be a string"),
        ('option = "x=1"', "option must be a table of strings"),
        ("derive = {x = 2026-01-01}", "derive must be a table of strings"),
        ('exactly-once = "yes"', "exactly-once must be true or false"),
        (f'topic = "{MARK}', "is not valid TOML: error at end of document"),
        (f'topic = "{MARK}"\n{MARK} = ?\n', "is not valid TOML: error at line 2"),
        ("#" * (MAX_FILE_BYTES + 1), "is not a job file"),
        ("a = " + "[" * 5_000, "is not valid TOML"),
    ],
)
def test_file_that_is_no_job_is_a_sentence_without_its_values(job, capsys, text, sentence):
    assert main(["pipeline", job(text)]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert MARK not in said
    assert said.count("\n") == 1


def test_file_that_is_no_text_is_refused(tmp_path, capsys):
    (tmp_path / "job.toml").write_bytes(b"\xff\xfe")
    assert main(["pipeline", str(tmp_path / "job.toml")]) == 2
    assert "it is not UTF-8 text" in capsys.readouterr().err


def test_missing_secret_is_told_before_spark_starts(job, capsys, monkeypatch):
    monkeypatch.delenv("KAFKA_PASSWORD", raising=False)
    file = job(f'timeout = "1"\n{JOB}kafka.security.protocol = "SASL_SSL"\n')
    assert main(["pipeline", file]) == 2
    said = capsys.readouterr().err
    assert (
        "kafka.sasl.password refers to the environment variable 'KAFKA_PASSWORD', which is not allo" in said
    )
    monkeypatch.setenv(ALLOWED_VARIABLES, "KAFKA_PASSWORD")
    assert main(["pipeline", file]) == 2
    assert "environment variable 'KAFKA_PASSWORD', which is not set" in capsys.readouterr().err


def test_job_file_allows_no_password_file_by_itself(job, tmp_path, capsys, monkeypatch):
    """A job file from another user must not choose which file is sent to its brokers; an argument may."""
    monkeypatch.setenv(ALLOWED_PATHS, "")
    (tmp_path / "password").write_text(MARK)
    texts = {"timeout": "1", "username": "a", "password-file": f"{tmp_path}/password"}
    more = "".join(f'{name} = "{text}"\n' for name, text in texts.items())
    file = job(JOB.partition("[option]")[0] + more)
    assert main(["pipeline", file]) == 2
    assert "password', which is not allowed" in capsys.readouterr().err
    assert os.environ[ALLOWED_PATHS] == ""


def test_configuration_shows_no_option(job):
    found = config(
        *KAFKA,
        "--to",
        "t2",
        "--option",
        f"kafka.sasl.password={MARK}",
        "--sink-option",
        f"kafka.client.id={MARK}",
    )
    assert "t2" in repr(found)
    assert MARK not in repr(found)


# ---- --print-config ----------------------------------------------------------------------------------------


@pytest.fixture
def printed(capsys):
    """Return a function that runs ``--print-config``, which contacts no broker and starts no Spark."""

    def run(*arguments):
        assert main(["pipeline", *arguments, "--print-config"]) == 0
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    "arguments",
    [
        [*PARQUET, "--schema", 'id BIGINT, `a "b"` STRING', *AGGREGATE, "--derive", "day=to_date('2026\\n')"],
        [*PARQUET, "--format", "raw", "--sink", "delta", "--sink-option", "storage.region=x", "--json"],
        [*PARQUET, "--format", "raw", "--sink", "delta", "--option", "maxoffsetspertrigger=7"],
        [*KAFKA, "--to", "t2", "--exactly-once", "--keep", "key", "--option", "kafka.client.id=é \x7f"],
        [*TOPIC, "--format", "string", "--sink", "console", "--rows", "3", "--mode", "permissive"],
    ],
)
def test_configuration_is_printed_as_a_file_that_is_the_same_job(printed, job, arguments):
    file = job(printed(*arguments))
    again, first = config(file), config(*arguments)
    assert again.source_options() == first.source_options()
    assert replace(again, options={}) == replace(first, options={})
    assert printed(file) == printed(*arguments)


def test_all_that_holds_is_printed_and_what_the_command_line_says_wins(printed, job):
    shown = tomllib.loads(printed(job(JOB), "--topic", "c", "--option", "maxOffsetsPerTrigger=5"))
    assert shown == {
        "bootstrap": "localhost:9092", "timeout": "10", "topic": "c", "format": "json", "key-format": "raw",
        "schema": "id BIGINT", "mode": "FAILFAST", "partition-by": ["day", "hour"], "sink": "parquet",
        "path": "p", "checkpoint": "c", "trigger": "10 seconds", "starting-offsets": "earliest",
        "json": False,
        "derive": {"day": "to_date(at)", "hour": "hour(at)"},
        "option": {
            "maxOffsetsPerTrigger": "5", "failOnDataLoss": "false", "kafka.client.id": "job",
            "kafka.sasl.password": "${env:KAFKA_PASSWORD}",
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("option", "text", "shown"),
    [
        ("kafka.sasl.password", MARK, "${env:KAFKA_SASL_PASSWORD}"),
        ("kafka.ssl.key.password", f"${{env:HOME}}{MARK}", "${env:KAFKA_SSL_KEY_PASSWORD}"),
        ("kafka.sasl.jaas.config", f'x required password="{MARK}";', "${env:KAFKA_SASL_JAAS_CONFIG}"),
        (
            "kafka.sasl.jaas.config",
            f'x username="${{env:HOME}}" password={MARK};',
            "${env:KAFKA_SASL_JAAS_CONFIG}",
        ),
        ("kafka.sasl.jaas.config", 'x username="u" password="${env:P}";', None),
        ("schema.registry.auth", f"user:{MARK}", "${env:SCHEMA_REGISTRY_AUTH}"),
        ("schema.registry.auth", "user:${file:/run/secrets/registry}", None),
        ("value.schema.registry.url", f"https://u:{MARK}@h:1,http://i", "https://***@h:1,http://i"),
        ("kafka.sasl.oauthbearer.token.endpoint.url", "https://i.example/token", None),
        ("kafka.other.password", MARK, "${env:KAFKA_OTHER_PASSWORD}"),
        ("storage.account_key", MARK, "${env:STORAGE_ACCOUNT_KEY}"),
        ("kafka.security.protocol", "PLAINTEXT", None),
        ("key.format", "string", None),
    ],
)
def test_secret_that_is_written_out_becomes_a_reference(option, text, shown):
    assert referred(text, option) == (text if shown is None else shown)


def test_no_secret_is_printed(printed):
    shown = printed(
        *TOPIC, *CHECKPOINT, "--format", "raw", "--sink", "delta", "--path", f"s3://me:{MARK}@bucket/table",
        "--option", f"kafka.sasl.password={MARK}", "--sink-option", f"storage.secret={MARK}",
    )  # fmt: skip
    assert MARK not in shown
    assert 'path = "s3://***@bucket/table"' in shown
    assert '"kafka.sasl.password" = "${env:KAFKA_SASL_PASSWORD}"' in shown


def test_configuration_that_does_not_go_together_is_refused_and_not_printed(capsys):
    assert main(["pipeline", *TOPIC, "--path", "p", "--print-config"]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)


TEXT = strategies.text(strategies.characters(exclude_categories=["Cs"]), min_size=1)


@given(strategies.dictionaries(TEXT, TEXT, max_size=3), TEXT, strategies.lists(TEXT, max_size=3))
def test_any_text_comes_back_out_of_the_file(tmp_path_factory, table, text, names):
    file = tmp_path_factory.mktemp("job") / "job.toml"
    file.write_text(settings_as_toml({"text": text, "names": names, "flag": True, "table": table}))
    found = read_settings(file, ["text", "names"], ["table"], ["flag"])
    assert found == {"text": text, "names": ",".join(names), "flag": True, "table": list(table.items())}


# ---- Commands in the documentation -------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[3]
GUIDE = "docs/guides/spark-pipeline.md"
SHOWN = {"--help": EXAMPLES, GUIDE: (ROOT / GUIDE).read_text()}


def commands(text):
    """Return the arguments of each ``kafkacore pipeline`` command on a page, except elided ones ("...")."""
    whole = text.replace("\\\n", " ")
    lines = [line.strip() for line in whole.splitlines() if re.match(r" *kafkacore pipeline ", line)]
    return [shlex.split(line)[2:] for line in lines if "..." not in line]


@pytest.mark.parametrize("page", SHOWN)
def test_every_command_that_is_shown_is_understood(page, job, monkeypatch):
    monkeypatch.setenv("KAFKA_PASSWORD", "x")
    found = commands(SHOWN[page])
    assert found, "the page shows no pipeline command"
    for arguments in found:
        config(*(job(JOB) if argument == "job.toml" else argument for argument in arguments))


def test_files_that_are_shown_are_jobs(job):
    blocks = re.findall(r"```toml\n(.*?)```", SHOWN[GUIDE], re.DOTALL)
    blocks.append(EXAMPLES.split("job.toml, with the names of the arguments:")[1])
    for block in blocks:
        assert config(job(block)).derive == (("day", "to_date(at)"),)
    assert len(blocks) == 2


# ---- Secure connections ------------------------------------------------------------------------------------

SECURE = ["--username", "alice", "--cafile", "/etc/ca.pem"]
COPY = [*KAFKA, "--to", "copy"]


def test_source_and_sink_of_a_secure_cluster_are_told_where_the_password_is(monkeypatch):
    monkeypatch.setenv("KAFKACORE_PASSWORD", MARK)
    monkeypatch.setenv(ALLOWED_VARIABLES, "KAFKACORE_PASSWORD")
    copied = config(*COPY, *SECURE)
    wanted = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.username": "alice",
        "kafka.sasl.password": "${env:KAFKACORE_PASSWORD}",
        "kafka.ssl.ca.location": "/etc/ca.pem",
    }
    assert copied.options == copied.sink.options == wanted
    elsewhere = config(*COPY, *SECURE, "--to-bootstrap", "b:1")
    assert (elsewhere.options, elsewhere.sink.options) == (wanted, {})


def test_client_properties_are_options_and_their_references_stay(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\nssl.key.password=${env:KEY}\nssl.keystore.location=k.pem\n")
    shown = [*TOPIC, "--format", "raw", "--sink", "console"]
    made = config(*shown, "--command-config", str(file), "--option", "kafka.ssl.keystore.type=PEM")
    assert made.options == {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.key.password": "${env:KEY}",
        "kafka.ssl.keystore.location": "k.pem",
        "kafka.ssl.keystore.type": "PEM",
    }
