"""``kafkacore pipeline`` in this process: what it prints, and what it says about a job that cannot run."""

import json

import pytest

from kafkacore.cli.main import main


@pytest.fixture
def pipeline(spark, our_broker, tmp_path, capsys):
    """Run it on a topic; its exit status, output and errors."""

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


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--schema", "id INTT"], 2, "INTT"),
        (["--schema", "id INT", "--derive", "x=nosuch(id)"], 2, "nosuch"),
        (["--schema", "id INT", "--derive", "x=id +"], 2, "Syntax error"),
        (["--schema", "id INT", "--partition-by", "colour"], 2, "the columns are id"),
    ],
)
def test_job_that_cannot_run_is_one_sentence(pipeline, make_topic, arguments, status, words):
    found, _, said = pipeline(make_topic([b'{"id": 1}']), *arguments)
    sentences = [line for line in said.splitlines() if line.startswith("kafkacore: ")]
    assert (found, len(sentences)) == (status, 1), said
    assert words in sentences[0]
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("bootstrap", "words"), [(None, "topic 'nowhere' does not exist"), ("127.0.0.1:1", "within 1000 ms")]
)
def test_topic_that_is_not_there_is_told_before_spark_starts(our_broker, tmp_path, capsys, bootstrap, words):
    where = ["--bootstrap", bootstrap or our_broker.bootstrap_servers, "--topic", "nowhere", "--timeout", "1"]
    places = ["--path", str(tmp_path / "sink"), "--checkpoint", str(tmp_path / "checkpoint")]
    assert main(["pipeline", *where, *places, "--format", "raw"]) != 0
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
