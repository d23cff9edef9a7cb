"""A run that lost or duplicated a record is void, and the exit status shows it."""

from __future__ import annotations

import json

import pytest
from eventually import BUDGET_MS

from kafkacore.admin import KafkaAdminClient
from kafkacore.bench import cluster as bench_cluster
from kafkacore.bench import runner
from kafkacore.bench.cluster import BenchCluster
from kafkacore.bench.options import BenchOptions
from kafkacore.bench.sequence import read_values, write_values
from kafkacore.bench.verify import read_back
from kafkacore.cli.main import main
from kafkacore.cli.report import Reporter
from kafkacore.errors import KafkaError
from kafkacore.producer import KafkaProducer

SIZE, COUNT = 32, 300


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Let a busy broker take longer to delete topics than a user would wait."""
    monkeypatch.setattr(bench_cluster, "DELETE_TIMEOUT_MS", int(BUDGET_MS))


@pytest.fixture
def cluster(our_broker):
    with BenchCluster(our_broker.bootstrap_servers, pytest.fail) as cluster:
        yield cluster


def written(cluster, values):
    topic = cluster.create_topic(3)
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in values:
            producer.send(topic, value)
    return topic


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda values: values, None),
        (lambda values: values[:-1], "1 lost"),
        (lambda values: values + values[:2], "2 duplicated"),
        (lambda values: [*values, b"stray"], "1 never sent"),
    ],
)
def test_topic_is_read_back_and_every_record_counted(cluster, tmp_path, monkeypatch, change, reason):
    if reason == "1 lost":
        monkeypatch.setattr("kafkacore.bench.verify.ARRIVAL_LIMIT_MS", 50.0)
    write_values(tmp_path / "values", COUNT, SIZE, 0.5)
    topic = written(cluster, change(read_values(tmp_path / "values", SIZE)))
    assert read_back(cluster.bootstrap, topic, 3, SIZE, COUNT, COUNT, 0).reason == reason


def test_lost_record_voids_the_run_and_fails_the_command(our_broker, monkeypatch, capsys):
    monkeypatch.setattr(runner, "read_back", lambda *_: runner_verdict())
    arguments = ["bench", "produce", "--bootstrap", our_broker.bootstrap_servers, "--peers", "none"]
    status = main([*arguments, "--records", "500", "--rounds", "1", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert status == 1
    assert result["void"] is True
    assert result["results"][0]["void"] == "1 lost"
    assert result["results"][0]["median"] == {}


def runner_verdict():
    from kafkacore.bench.sequence import Verdict

    return Verdict(1, 0, 0)


def test_topics_are_gone_at_the_end_also_of_a_run_that_fails(our_broker):
    address = our_broker.bootstrap_servers
    with pytest.raises(KeyboardInterrupt), BenchCluster(address, pytest.fail) as cluster:
        interrupted(cluster.create_topic(1))
    with KafkaAdminClient(bootstrap_servers=address) as admin:
        assert not [name for name in admin.list_topics() if name.startswith("kafkacore-bench")]


def interrupted(_topic):
    raise KeyboardInterrupt


def test_topic_that_cannot_be_deleted_is_named(our_broker):
    said: list[str] = []
    with BenchCluster(our_broker.bootstrap_servers, said.append) as cluster:
        topic = cluster.create_topic(1)
        with KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers) as admin:
            admin.delete_topics([topic])
    assert len(said) == 1
    assert topic in said[0]


def test_missing_peer_is_named_and_the_others_run(our_broker, monkeypatch):
    monkeypatch.setattr(
        runner, "missing_peer", lambda peer: "not installed: pip install it" if peer == "confluent" else None
    )
    options = BenchOptions(
        modes=("produce",),
        bootstrap=our_broker.bootstrap_servers,
        peers=("confluent", "kafka-python"),
        records=200,
        rounds=1,
        warm_up_records=10,
    )
    result = runner.run_bench(options, Reporter(quiet=True))
    assert result["missing"] == {"confluent": "not installed: pip install it"}
    assert [entry["peer"] for entry in result["results"]] == ["kafkacore", "kafka-python"]
    assert not result["void"]


def test_cluster_that_is_not_there_fails_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr("kafkacore.bench.cluster.FIRST_CONTACT_MS", 300)
    with pytest.raises(KafkaError), BenchCluster("127.0.0.1:1", pytest.fail):
        pytest.fail("entered")
