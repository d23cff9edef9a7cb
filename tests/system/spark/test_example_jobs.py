"""The examples of whole jobs and the notebook run unchanged, in the session that the tests share."""

import json
import logging
import runpy
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkacore import KafkaConsumer
from kafkacore.structs import TopicPartition

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
pytestmark = pytest.mark.timeout(240)
ORDERS = [
    (n % 2, None, json.dumps({"id": n, "item": "ab"[n % 2], "price": n / 2}).encode()) for n in range(10)
]


@pytest.fixture
def as_a_program(spark, monkeypatch):
    """Protect the shared session: ignore its stop, and restore the settings that an example changes."""
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    monkeypatch.setattr(SparkSession, "stop", lambda session: None)
    yield
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    logging.getLogger("kafkacore.spark.monitor").setLevel(logging.NOTSET)


@pytest.fixture
def run(as_a_program, our_broker, monkeypatch, capsys):
    """Return a function that runs an example and returns its output lines and global names."""

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, our_broker.bootstrap_servers, *map(str, arguments)])
        names = runpy.run_path(str(EXAMPLES / name))
        return capsys.readouterr().out.splitlines(), names

    return run


def test_lakehouse_example_holds_each_record_once_whatever_runs_again(run, make_topic, tmp_path):
    topic = make_topic(ORDERS)
    places = (topic, tmp_path / "orders.delta", tmp_path / "checkpoint")
    shown, _ = run("spark_lakehouse.py", *places)
    assert shown == ["batch 0: 10 rows", "10 records written, the table has 10"]
    shown, _ = run("spark_lakehouse.py", *places)
    assert shown == ["0 records written, the table has 10"]


def test_etl_example_writes_what_it_has_computed(run, spark, our_broker, make_topic, tmp_path):
    source, target = make_topic([*ORDERS, (0, None, b"{damaged")]), make_topic(partitions=1)
    shown, names = run("spark_etl.py", source, target, tmp_path / "checkpoint")
    spark.streams.removeListener(names["monitor"])
    assert shown == ["10 orders read, 0 left"]
    with KafkaConsumer(
        bootstrap_servers=our_broker.bootstrap_servers, consumer_timeout_ms=20_000
    ) as consumer:
        consumer.assign([TopicPartition(target, 0)])
        consumer.seek_to_beginning()
        found = [next(consumer) for _ in range(8)]
    gross = {invoice["id"]: invoice["gross"] for invoice in (json.loads(record.value) for record in found)}
    assert gross == {n: pytest.approx(n / 2 * 1.19, abs=0.006) for n in range(2, 10)}
    assert {record.key for record in found} == {b"a", b"b"}


def test_notebook_runs_from_cell_to_cell(as_a_program, capsys):
    cells = json.loads((EXAMPLES / "spark_notebook.ipynb").read_text())["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            exec("".join(cell["source"]), names)
    assert names["seen"] == 1_000
    assert "|     0|" in capsys.readouterr().out
