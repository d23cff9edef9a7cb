"""Kafka's DumpLogSegments reads every file that our broker writes, without complaint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from model.log_oracle import make_log
from model.transaction_log import TransactionalProducer
from peers.clients import CODECS
from peers.jars import run_java
from peers.java_peer import JavaPeer
from peers.samples import edge_samples, sized_samples

from kafkacore.broker.log import LogManager
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.testing.embedded_broker import EmbeddedBroker

DUMP = "org.apache.kafka.tools.DumpLogSegments"
#: Small enough for several segments, and for more than one entry in an index.
SMALL_SEGMENTS = {"segment.bytes": str(1 << 20), "index.interval.bytes": "1024"}
ROUNDS = 4
COMPLAINT = re.compile(
    r"mismatch|invalid|corrupt|isvalid: false|not .*(ordered|sorted)|exception|error|fail|non-consecutive",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, java_peer: JavaPeer) -> dict[str, list[Path]]:
    """Return files of our broker by kind, written with all codecs, a crash, more records and a clean stop."""
    folder = tmp_path_factory.mktemp("broker")
    with EmbeddedBroker(folder, log_retention_ms=-1) as broker:
        java_peer.create_topic(broker.bootstrap_servers, "dumped", 1, SMALL_SEGMENTS)
        fill(broker, java_peer)
        broker.kill()
        broker.start()
        fill(broker, java_peer)
        broker.stop()
        files = sorted(folder.rglob("dumped-0/*"))
    return {kind: [file for file in files if file.suffix == kind] for kind in {file.suffix for file in files}}


def fill(broker: EmbeddedBroker, peer: JavaPeer) -> None:
    """Write all codecs in small batches and large ones, by the Java client, whose producer is idempotent."""
    samples = edge_samples(1) + sized_samples((1, 1_000, 50_000, 300_000)) + edge_samples(1) * 20
    for codec in CODECS:
        config = {"compression.type": codec, "linger.ms": "5", "batch.size": "2000"}
        peer.produce(broker.bootstrap_servers, "dumped", samples, config)


def dump(files: list[Path], *options: str) -> str:
    """Return the output of DumpLogSegments for the files."""
    return run_java(DUMP, *options, "--files", ",".join(map(str, files))).decode()


def test_log_has_rolled_and_left_every_kind_of_file(written: dict[str, list[Path]]) -> None:
    assert len(written[".log"]) > 2
    assert len(written[".index"]) == len(written[".timeindex"]) == len(written[".log"])
    assert len(written[".snapshot"]) > 0


def test_every_record_of_every_segment_is_read(written: dict[str, list[Path]]) -> None:
    output = dump(written[".log"], "--deep-iteration")
    assert COMPLAINT.search(output) is None
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", output, re.MULTILINE)]
    assert offsets == list(range(2 * len(CODECS) * (14 + 4 + 14 * 20)))
    assert set(re.findall(r"compresscodec: (\w+)", output)) == set(CODECS)


def test_offset_indexes_agree_with_their_segments(written: dict[str, list[Path]]) -> None:
    output = dump(written[".index"])
    assert COMPLAINT.search(output) is None
    assert len(re.findall(r"^offset: \d+ position: \d+", output, re.MULTILINE)) > len(written[".index"])


@pytest.mark.parametrize("option", ["--index-sanity-check", "--verify-index-only"])
def test_indexes_pass_kafkas_checks(written: dict[str, list[Path]], option: str) -> None:
    output = dump(written[".index"] + written[".timeindex"], option)
    assert COMPLAINT.search(output) is None
    if option == "--index-sanity-check":
        assert output.count("passed sanity check") == len(written[".index"] + written[".timeindex"])


def test_time_indexes_agree_with_their_segments(written: dict[str, list[Path]]) -> None:
    output = dump(written[".timeindex"])
    assert COMPLAINT.search(output) is None
    assert len(re.findall(r"^timestamp: \d+ offset: \d+", output, re.MULTILINE)) >= len(written[".timeindex"])


def test_producer_snapshots_are_read(written: dict[str, list[Path]]) -> None:
    output = dump(written[".snapshot"])
    assert COMPLAINT.search(output) is None
    assert "producerId: " in output


def test_transactions_are_read(tmp_path: Path) -> None:
    """The files of a partition with committed, aborted and open transactions."""
    with LogManager(tmp_path / "data", clock=SYSTEM_CLOCK, background=False) as manager:
        log = make_log(manager)
        producers = [TransactionalProducer(log, number, version=1 + number % 2) for number in range(4)]
        for producer in producers:
            producer.send(b"value", b"another")
        for producer, commit in zip(producers[:3], (True, False, True), strict=False):
            producer.end(commit=commit)
    files = sorted((tmp_path / "data" / "flights-0").iterdir())
    read = {file.suffix: dump([file], "--deep-iteration") for file in files if file.name.startswith("0")}
    assert all(COMPLAINT.search(output) is None for output in read.values())
    assert re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: (\d+)", read[".log"]) == [
        ("COMMIT", "0"),
        ("ABORT", "0"),
        ("COMMIT", "0"),
    ]
    assert re.findall(r"producerId: 1 firstOffset: 2 lastOffset: 9 lastStableOffset: 4", read[".txnindex"])
    assert re.findall(r"currentTxnFirstOffset: (?:OptionalLong\[)?(\d+)", read[".snapshot"]) == ["6"]
