"""A cluster that stops during a benchmark, and output files that cannot be written."""

from __future__ import annotations

import pytest

from kafkacore.bench import cluster as bench_cluster
from kafkacore.bench.children import WorkerError
from kafkacore.bench.cluster import BenchCluster, ClusterGoneError
from kafkacore.bench.options import BenchOptions
from kafkacore.bench.runner import run_bench
from kafkacore.cli.main import main
from kafkacore.cli.report import Reporter
from kafkacore.errors import KafkaConfigurationError
from kafkacore.testing import EmbeddedBroker


@pytest.fixture
def broker():
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def kill(broker, monkeypatch):
    """Return a function that kills the broker. Later contacts with it fail soon."""

    def kill():
        broker.kill()
        monkeypatch.setattr(bench_cluster, "FIRST_CONTACT_MS", 1_000)

    return kill


def test_cluster_that_answers_is_there(broker):
    with BenchCluster(broker.bootstrap_servers, pytest.fail) as cluster:
        cluster.check_alive()


def test_cluster_that_went_away_is_named_and_so_are_the_topics_that_remain(broker, kill):
    said = []
    with BenchCluster(broker.bootstrap_servers, said.append) as cluster:
        topic = cluster.create_topic(1)
        kill()
        with pytest.raises(ClusterGoneError, match="stopped responding during the benchmark"):
            cluster.check_alive()
        cluster.delete_topic(topic)
    assert said == [f"topics that were not deleted: {topic}"]


def test_client_that_fails_because_the_broker_is_gone_ends_the_benchmark(broker, kill, monkeypatch):
    def dies(*_):
        kill()
        raise WorkerError("some client's own words")

    monkeypatch.setattr("kafkacore.bench.runner.Worker.answer", dies)
    options = BenchOptions(
        modes=("produce",), bootstrap=broker.bootstrap_servers, peers=(), records=100, rounds=50
    )
    with pytest.raises(ClusterGoneError, match=f"broker at {broker.bootstrap_servers} stopped responding"):
        run_bench(options, Reporter(quiet=True))


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--chart", "{}/bench.svg"], 2, "the name of the chart must end in .png"),
        (["--chart", "{}"], 2, "the name of the chart must end in .png"),
        (["--output", "{}"], 1, "Is a directory"),
        (["--linger-ms", "-1"], 2, "--linger-ms must be at least 0"),
    ],
)
def test_what_cannot_be_written_at_the_end_is_refused_before_the_start(
    tmp_path, monkeypatch, capsys, arguments, status, sentence
):
    monkeypatch.setattr("kafkacore.bench.runner.run_bench", lambda *_: pytest.fail("it was started"))
    assert main(["bench", *(argument.format(tmp_path) for argument in arguments)]) == status
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_chart_without_matplotlib_is_refused_with_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["bench", "--chart", str(tmp_path / "bench.png")]) == 2
    assert "pip install 'kafkacore[bench]'" in capsys.readouterr().err


def test_arrow_without_pyarrow_is_refused_with_what_to_install(monkeypatch):
    monkeypatch.setattr("kafkacore.bench.machine.find_spec", lambda name: None)
    with pytest.raises(KafkaConfigurationError, match=r"pyarrow and numpy: pip install 'kafkacore\[bench\]'"):
        run_bench(BenchOptions(modes=("arrow",), peers=()), Reporter(quiet=True))
