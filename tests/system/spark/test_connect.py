"""Spark Connect: the server finds the formats without configuration, and a separate program is its client."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_S
from model.segment_bytes import file_of
from peers.spark_home import spark_home
from peers.submitted import CONFS, Program

from kafkacore import KafkaConsumer
from kafkacore.structs import TopicPartition

SUPPORT = Path(__file__).resolve().parents[2] / "support"
CLIENT = SUPPORT / "spark" / "connect_client.py"
ORDERS = [(n % 2, b"%d" % n, b'{"id": %d}' % n) for n in range(8)]
pytestmark = pytest.mark.timeout(260)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start Spark's Connect server, and return its address."""
    folder = tmp_path_factory.mktemp("connect")
    confs = CONFS | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    command = [str(spark_home() / "sbin" / "start-connect-server.sh"), "--master", "local[2]"]
    command += [f"--conf={name}={value}" for name, value in confs.items()]
    with Program(command, folder / "server.log") as program:
        started = re.compile(r"Spark Connect server started at: \S*:(\d+)")
        program.wait_until(lambda: started.search(program.said()) is not None, "the server listens")
        yield f"sc://127.0.0.1:{started.search(program.said())[1]}"


@pytest.fixture(scope="module")
def topics(make_topic) -> tuple[str, str]:
    """Return a topic with records and an empty topic."""
    return make_topic(ORDERS), make_topic(partitions=1)


@pytest.fixture(scope="module")
def seen(server, our_broker, topics, tmp_path_factory) -> dict[str, Any]:
    """Run the client program, and return its results."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "orders-0").mkdir()
    (folder / "orders-0" / f"{0:020}.log").write_bytes(file_of([2, 1]))
    command = [
        sys.executable,
        "-W",
        "ignore",
        str(CLIENT),
        server,
        our_broker.bootstrap_servers,
        *topics,
        str(folder),
    ]
    # Hide the JVM, so that the client cannot start a local Spark and bypass the server.
    path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "JAVA_HOME": "/nowhere", "PYTHONPATH": path}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=4 * BUDGET_S, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def test_batch_read_gives_typed_rows(seen):
    assert seen["batch"] == [[n, n // 2] for n in range(8)]


def test_stream_copies_a_topic_by_the_sink(seen, topics, our_broker):
    with KafkaConsumer(
        bootstrap_servers=our_broker.bootstrap_servers, consumer_timeout_ms=20_000
    ) as consumer:
        consumer.assign([TopicPartition(topics[1], 0)])
        consumer.seek_to_beginning()
        found = [next(consumer) for _ in ORDERS]
    assert sorted((record.key, record.value) for record in found) == [
        (key, value) for _, key, value in ORDERS
    ]


def test_lag_and_monitor_work_in_the_client(seen):
    assert seen["stream"]["behind"][-1] == 0
    assert seen["stream"]["behind"][0] > 0
    assert seen["stream"]["last"]["maxOffsetsBehindLatest"] == "0"
    figures = seen["stream"]["seen"]
    assert figures == {
        "rows-total": 8,
        "batches-total": len(seen["stream"]["behind"]),
        "offsets-behind-latest-max": 0,
    }


def test_segment_files_and_raw_batches_are_decoded_by_the_server(seen):
    rows = [["orders", 0, offset] for offset in range(3)]
    assert seen["files"] == {"by_format": rows, "decoded": rows}


def test_pipeline_counts_what_it_has_written_and_refuses_sinks_that_write_from_here(seen):
    assert seen["pipeline"]["rows"] == [len(ORDERS)] * 3
    assert seen["pipeline"]["refused"].startswith("the sink console does not work with Spark Connect")


def test_refusals_are_sentences(seen):
    assert seen["refusals"]["topic"].startswith("topic 'nowhere' does not exist on ")
    assert seen["refusals"]["column"] == "the DataFrame has no column 'raw'; its columns are id"
