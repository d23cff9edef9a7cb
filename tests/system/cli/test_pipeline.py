"""``kafkacore pipeline`` in this process: its output, and its messages for a job that cannot run."""

import json
import re
import shutil
from pathlib import Path

import pytest

from kafkacore import KafkaConsumer
from kafkacore.cli.main import main
from kafkacore.structs import TopicPartition


@pytest.fixture
def pipeline(spark, our_broker, tmp_path, capsys):
    """Return a function that runs the command on a topic and returns its status, output and errors."""

    def run(topic, *arguments):
        places = ["--path", str(tmp_path / "sink"), "--checkpoint", str(tmp_path / "checkpoint")]
        connection = ["--bootstrap", our_broker.bootstrap_servers, "--topic", topic]
        status = main(["pipeline", *connection, *places, *arguments])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def test_result_is_a_line_or_json(pipeline, make_topic):
    topic = make_topic([b'{"id": 1}', b'{"id": 2}'])
    status, shown, said = pipeline(topic, "--schema", "id INT")
    assert (status, shown[:13]) == (0, "2 records in ")
    assert f"{topic} to sink: done, 2 records" in said
    status, shown, said = pipeline(topic, "--schema", "id INT", "--json")
    assert (status, json.loads(shown)["records"], said) == (0, 0, "")


def test_each_batch_is_a_line_of_json_with_rate_and_lag(pipeline, make_topic):
    topic = make_topic([b"a", b"b", b"c"])
    limit = ["--option", "maxOffsetsPerTrigger=2", "--format", "string", "--json"]
    status, shown, said = pipeline(topic, *limit)
    first, second, result = map(json.loads, shown.splitlines())
    assert (status, said) == (0, "")
    assert (first["batch"], first["records"], first["behind"]) == (0, 2, 1)
    assert (second["batch"], second["records"], second["behind"]) == (1, 1, 0)
    assert first["records_per_second"] == round(2_000 / first["milliseconds"], 1)
    assert (result["records"], result["batches"], result["stopped"]) == (3, 2, False)


def test_console_shows_rows_and_leaves_nothing(spark, our_broker, make_topic, capsys):
    topic = make_topic([b"tea", b"milk"])
    console = ["--topic", topic, "--format", "string", "--keep", "offset", "--sink", "console"]
    assert main(["pipeline", "--bootstrap", our_broker.bootstrap_servers, *console]) == 0
    assert "|tea  |0     |\n|milk |1     |" in capsys.readouterr().out
    assert (
        main(["pipeline", "--bootstrap", our_broker.bootstrap_servers, *console, "--json", "--rows", "1"])
        == 0
    )
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == {"value": "tea", "offset": 0}


def test_job_from_a_file_writes_to_a_topic(spark, our_broker, make_topic, tmp_path, capsys):
    source = make_topic([b'{"id": 1, "name": "tea"}'])
    (tmp_path / "job.toml").write_text(
        f"""
        topic = "{source}"
        schema = "id INT, name STRING"
        key-format = "string"
        sink = "kafkacore"
        to = "{source}-copy"
        checkpoint = "{tmp_path}/checkpoint"
        derive = {{ twice = "id * 2" }}
        """
    )
    connection = ["--bootstrap", our_broker.bootstrap_servers]
    assert main(["pipeline", str(tmp_path / "job.toml"), *connection]) == 0
    assert capsys.readouterr().out.startswith("1 records in ")
    with KafkaConsumer(
        bootstrap_servers=our_broker.bootstrap_servers, consumer_timeout_ms=60_000
    ) as consumer:
        consumer.assign([TopicPartition(f"{source}-copy", 0)])
        consumer.seek_to_beginning()
        assert json.loads(next(consumer).value) == {"id": 1, "name": "tea", "twice": 2}


@pytest.mark.parametrize(("derived", "is_kept"), [("v=upper(value)", False), ("v=nosuch(value)", True)])
def test_log_of_spark_stays_where_a_job_failed(spark, our_broker, make_topic, capsys, derived, is_kept):
    topic = make_topic([b"tea"], name="said")
    arguments = ["--topic", topic, "--format", "string", "--derive", derived, "--sink", "console"]
    main(["pipeline", "--bootstrap", our_broker.bootstrap_servers, *arguments])
    log = Path(re.search("Spark writes its log to (.*)", capsys.readouterr().err)[1])
    # The job shares the session of the tests, whose log is elsewhere, so check only the folder.
    assert log.parent.exists() == is_kept
    shutil.rmtree(log.parent, ignore_errors=True)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--schema", "id INTT"], 2, 'schema: [UNSUPPORTED_DATATYPE] Unsupported data type "INTT"'),
        (["--schema", "id INT", "--derive", "x=nosuch(id)"], 2, "derived column x: [UNRESOLVED_ROUTINE]"),
        (["--schema", "id INT", "--derive", "x=id +"], 2, "derived column x: [PARSE_SYNTAX_ERROR] Syntax"),
        (["--schema", "id INT", "--partition-by", "colour"], 2, "the columns are id"),
    ],
)
def test_job_that_cannot_run_is_one_sentence(pipeline, make_topic, arguments, status, words):
    found, _, said = pipeline(make_topic([b'{"id": 1}']), *arguments)
    sentences = [line for line in said.splitlines() if line.startswith("kafkacore: ")]
    assert (found, len(sentences)) == (status, 1), said
    assert words in sentences[0]
    assert not any(sign in said for sign in ("Traceback", '"stacktrace"'))


@pytest.mark.parametrize(
    ("bootstrap", "words"), [(None, "create it, or correct --topic"), ("127.0.0.1:1", "within 1000 ms")]
)
def test_topic_that_is_not_there_is_told_before_spark_starts(our_broker, tmp_path, capsys, bootstrap, words):
    where = ["--bootstrap", bootstrap or our_broker.bootstrap_servers, "--topic", "nowhere"]
    # Allow a running broker much time, so that a slow machine does not time out.
    where += ["--timeout", "1" if bootstrap else "60"]
    places = ["--path", str(tmp_path / "sink"), "--checkpoint", str(tmp_path / "checkpoint")]
    assert main(["pipeline", *where, *places, "--format", "raw"]) != 0
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_brokers_of_the_sink_that_do_not_answer_are_told_before_spark_starts(
    our_broker, make_topic, tmp_path, capsys
):
    where = ["--bootstrap", our_broker.bootstrap_servers, "--topic", make_topic([b"1"]), "--timeout", "5"]
    sink = ["--sink", "kafkacore", "--to", "copies", "--to-bootstrap", "127.0.0.1:1"]
    sink += ["--checkpoint", str(tmp_path / "checkpoint")]
    assert main(["pipeline", *where, *sink, "--format", "raw"]) != 0
    said = capsys.readouterr().err
    assert "127.0.0.1:1" in said
    assert "within 5000 ms" in said
    assert said.count("\n") == 1
