"""Our broker continues with the data folder of an Apache Kafka that was stopped or killed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from eventually import BUDGET_S
from model.new_topics import create_topics
from peers.apache_kafka import ApacheKafka, started_in_scratch_folder

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.admin import NewTopic
from kafkacore.broker.log import LogManager
from kafkacore.broker.metadata.kafkas_epochs import leader_epochs
from kafkacore.broker.storage.disk import Disk
from kafkacore.clock import Clock
from kafkacore.testing.embedded_broker import EmbeddedBroker

TOPICS = {"orders": 3, "flights": 1}
TP = TopicPartition("flights", 0)
LINES = 500


class Folders(NamedTuple):
    """Copies of Kafka's ``log.dirs``, and the number of records in each partition there."""

    closed: Path
    killed: Path
    in_closed: dict[TopicPartition, int]
    in_killed: dict[TopicPartition, int]


def send(kafka: ApacheKafka, counts: dict[TopicPartition, int]) -> None:
    """Send more records to each partition; their values are their offsets."""
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, compression_type="lz4") as producer:
        for tp in counts:
            for _ in range(LINES):
                producer.send(tp.topic, b"%d" % counts[tp], partition=tp.partition)
                counts[tp] += 1


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    made = tmp_path_factory.mktemp("folders")
    counts = {TopicPartition(name, index): 0 for name, count in TOPICS.items() for index in range(count)}
    with started_in_scratch_folder() as kafka:
        create_topics(kafka.bootstrap_servers, *(NewTopic(name, count, 1) for name, count in TOPICS.items()))
        send(kafka, counts)
        # Each start begins a new leader epoch.
        kafka.restart()
        send(kafka, counts)
        kafka.stop()
        shutil.copytree(kafka.segments_dir, made / "closed")
        in_closed = dict(counts)
        kafka.start()
        send(kafka, counts)
        kafka.kill()
        shutil.copytree(kafka.segments_dir, made / "killed")
    return Folders(made / "closed", made / "killed", in_closed, counts)


def node_id_of(folder: Path) -> int:
    lines = (folder / "meta.properties").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("node.id=")).removeprefix("node.id="))


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_folder_of_apache_kafka_is_served_with_all_its_topics_and_records(
    folders: Folders, how: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(getattr(folders, how), tmp_path / how)
    counts: dict[TopicPartition, int] = getattr(folders, f"in_{how}")
    metadata_log = {path.name: path.read_bytes() for path in (folder / "__cluster_metadata-0").iterdir()}
    with EmbeddedBroker(folder, node_id=node_id_of(folder)) as broker:
        with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
            assert consumer.topics() == set(TOPICS)
            consumer.assign(list(counts))
            consumer.seek_to_beginning()
            found: dict[TopicPartition, list[int]] = {tp: [] for tp in counts}
            while sum(map(len, found.values())) < sum(counts.values()):
                polled = consumer.poll(timeout_ms=60_000)
                assert polled, "records are missing"
                for tp, records in polled.items():
                    found[tp] += [int(record.value) for record in records]
            assert found == {tp: list(range(count)) for tp, count in counts.items()}
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for tp, count in counts.items():
                assert producer.send(tp.topic, b"next", partition=tp.partition).get(BUDGET_S).offset == count
    # The topic of Kafka's controller is ignored, and its files stay unchanged.
    after = {path.name: path.read_bytes() for path in (folder / "__cluster_metadata-0").iterdir()}
    assert after == metadata_log


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_folder_of_apache_kafka_goes_on_in_its_latest_leader_epoch(folders: Folders, how: str) -> None:
    folder: Path = getattr(folders, how)
    written = (folder / "flights-0" / "leader-epoch-checkpoint").read_text().split()
    epochs = [(int(epoch), int(start)) for epoch, start in zip(written[2::2], written[3::2], strict=True)]
    assert len(epochs) == {"closed": 2, "killed": 3}[how]
    with LogManager(folder, clock=Clock()) as manager:
        log = manager.log(TP)
        assert log is not None
        assert log.leader_epoch == epochs[-1][0]
        assert [log.epoch_at(start) for _, start in epochs] == [epoch for epoch, _ in epochs]
        assert log.end_offset_for_epoch(epochs[0][0]) == (epochs[0][0], epochs[1][1])


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_latest_leader_epoch_is_that_of_the_metadata(folders: Folders, how: str) -> None:
    """A broker that was closed has begun an epoch without a leader, which no record has."""
    folder: Path = getattr(folders, how)
    *_, epoch, _ = (folder / "flights-0" / "leader-epoch-checkpoint").read_text().split()
    found = set(leader_epochs(folder / "__cluster_metadata-0", Disk()).values())
    assert found == {int(epoch) + {"closed": 1, "killed": 0}[how]}
