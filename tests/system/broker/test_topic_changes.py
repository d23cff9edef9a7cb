"""Topics with many partitions: the broker serves other clients while it creates or deletes them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from eventually import BUDGET_S
from model.broker_harness import batch
from model.held_disk import HeldDisk
from model.raw_line import Line

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.handlers import create_topics
from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.broker.log import LogManager
from kafkacore.broker.log.log_manager import FOLDERS_PER_ROUND
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import (
    CoordinatorNotAvailableError,
    KafkaStorageError,
    NoError,
    TopicAlreadyExistsError,
    UnknownError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.create_partitions import CreatePartitionsRequest
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.produce import ProduceRequest

#: Partitions of the topic that takes long to create or delete.
PARTITIONS = 200
LATEST = -1


class Client(Line):
    """A connection that uses the latest version of each API by default."""

    def say(self, message: Any, version: int = LATEST) -> None:
        if version == LATEST:
            version = next(h.max_version for h in HANDLERS if h.request_class is type(message))
        super().say(message, version)

    def ask(self, message: Any, version: int = LATEST) -> Any:
        return super().ask(message, version)


class Scene:
    """A broker with a topic ``t`` and a disk whose calls can be blocked, and clients of it."""

    def __init__(self, folder: Path, **config: Any) -> None:
        self.disk = HeldDisk()
        self.broker = KafkaBroker(BrokerConfig(data_dir=folder, port=0, **config), disk=self.disk)
        self.broker.start()
        self.slow, self.other = Client(self.broker.bootstrap_servers), Client(self.broker.bootstrap_servers)
        self.topic_id = self.create("t", 1).topic_id

    def find_coordinator(self) -> Any:
        return self.other.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])).coordinators[0]

    def create(self, name: str, partitions: int) -> Any:
        return self.other.ask(created(name, partitions)).topics[0]

    def describe(self, name: str) -> Any:
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
        )
        return self.other.ask(request).topics[0]

    def close(self) -> None:
        self.disk.may_go.set()
        self.slow.close()
        self.other.close()
        self.broker.stop()

    def check_others_are_served(self) -> None:
        """Check that Produce, Fetch and Heartbeat of another client succeed."""
        data = ProduceRequest.PartitionProduceData(index=0, records=batch(b"value"))
        topic = ProduceRequest.TopicProduceData(topic_id=self.topic_id, partition_data=[data])
        produced = self.other.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic]))
        partition = produced.responses[0].partition_responses[0]
        assert partition.error_code == NoError.errno
        wanted = FetchRequest.FetchPartition(
            partition=0, fetch_offset=partition.base_offset, partition_max_bytes=1 << 20
        )
        fetched = self.other.ask(
            FetchRequest(
                max_wait_ms=30_000,
                min_bytes=1,
                max_bytes=1 << 20,
                session_epoch=-1,
                topics=[FetchRequest.FetchTopic(topic_id=self.topic_id, partitions=[wanted])],
            )
        )
        assert len(fetched.responses[0].partitions[0].records) > 0
        assert self.other.ask(HeartbeatRequest(group_id="g", generation_id=1, member_id="m")).error_code > 0


def created(name: str, partitions: int) -> CreateTopicsRequest:
    wanted = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)


def grown(name: str, partitions: int) -> CreatePartitionsRequest:
    wanted = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    return CreatePartitionsRequest(topics=[wanted], timeout_ms=30_000)


def deleted(name: str) -> DeleteTopicsRequest:
    wanted = DeleteTopicsRequest.DeleteTopicState(name=name)
    return DeleteTopicsRequest(topics=[wanted], timeout_ms=30_000)


@contextmanager
def scene_on(folder: Path, **config: Any) -> Iterator[Scene]:
    made = Scene(folder, **config)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with scene_on(tmp_path) as made:
        assert made.find_coordinator().error_code == NoError.errno
        yield made


@pytest.fixture
def making(scene: Scene) -> Scene:
    """Return a scene in which half of the partitions of the topic ``big`` exist."""
    scene.disk.hold("mkdir", f"big-{PARTITIONS // 2}")
    scene.slow.say(created("big", PARTITIONS))
    assert scene.disk.is_held.wait(BUDGET_S)
    return scene


def test_others_are_served_while_a_topic_is_made(making: Scene) -> None:
    making.check_others_are_served()
    making.disk.may_go.set()
    assert making.slow.hear().topics[0].error_code == NoError.errno
    assert len(making.describe("big").partitions) == PARTITIONS


def test_topic_in_the_making_is_unknown_and_its_name_is_taken(making: Scene) -> None:
    assert making.describe("big").error_code == UnknownTopicOrPartitionError.errno
    assert making.create("big", 1).error_code == TopicAlreadyExistsError.errno
    assert "big" not in {topic.name for topic in making.other.ask(MetadataRequest(topics=None)).topics}
    making.disk.may_go.set()
    assert making.slow.hear().topics[0].error_code == NoError.errno


def test_changes_that_are_asked_for_meanwhile_follow_in_their_order(making: Scene) -> None:
    making.other.say(created("small", 1))
    making.disk.may_go.set()
    assert making.slow.hear().topics[0].error_code == NoError.errno
    assert making.other.hear().topics[0].error_code == NoError.errno
    assert len(making.describe("small").partitions) == 1


def test_a_topic_that_is_deleted_in_the_making_is_made_and_then_removed(making: Scene) -> None:
    making.other.say(deleted("big"))
    making.disk.may_go.set()
    assert making.slow.hear().topics[0].error_code == NoError.errno
    assert making.other.hear().responses[0].error_code == NoError.errno
    assert "big" not in {topic.name for topic in making.other.ask(MetadataRequest(topics=None)).topics}


def test_nothing_is_left_of_a_topic_that_could_not_be_made(making: Scene, tmp_path: Path) -> None:
    making.disk.failure = OSError("no more")
    making.disk.may_go.set()
    assert making.slow.hear().topics[0].error_code == KafkaStorageError.errno
    assert not list(tmp_path.glob("big-*"))
    making.disk.failure = None
    assert making.create("big", 2).error_code == NoError.errno
    assert len(making.describe("big").partitions) == 2


def test_client_whose_answer_cannot_be_made_is_told_so(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(create_topics, "topic_entries", lambda *_: 1 // 0)
    created_topic = scene.create("new", 1)
    assert created_topic.error_code == UnknownError.errno
    scene.check_others_are_served()
    assert "failed to answer a request after its change was done" in caplog.text


def test_client_whose_answer_cannot_be_written_down_is_hung_up_on_and_others_are_served(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    unfit = SimpleNamespace(name="n", value="v" * 40_000, source=5)
    monkeypatch.setattr(create_topics, "topic_entries", lambda *_: [unfit])
    scene.slow.say(created("new", 1))
    with pytest.raises(AssertionError, match="the broker closed the connection"):
        scene.slow.hear()
    scene.check_others_are_served()
    assert "failed to answer a request after its change was done" in caplog.text


def test_stop_in_the_midst_leaves_the_topic_whole(tmp_path: Path) -> None:
    with scene_on(tmp_path) as making:
        making.disk.hold("mkdir", f"big-{PARTITIONS // 2}")
        making.slow.say(created("big", PARTITIONS))
        assert making.disk.is_held.wait(BUDGET_S)
    with LogManager(tmp_path, clock=SYSTEM_CLOCK) as logs:
        assert logs.topics()["big"].partition_count == PARTITIONS


def test_death_in_the_midst_leaves_nothing_of_the_topic(making: Scene, tmp_path: Path) -> None:
    found = sorted(path.name for path in tmp_path.glob("big-*"))
    assert len(found) == PARTITIONS // 2
    # Copy the folders as they are now: the state that a restart finds if the process dies here.
    other = tmp_path / "other"
    other.mkdir()
    for name in found:
        (other / name).mkdir()
        for path in (tmp_path / name).iterdir():
            (other / name / path.name).write_bytes(path.read_bytes())
    (other / "topics.json").write_bytes((tmp_path / "topics.json").read_bytes())
    with LogManager(other, clock=SYSTEM_CLOCK, background=False) as logs:
        assert "big" not in logs.topics()
        for _ in range(0, len(found), FOLDERS_PER_ROUND):
            logs.flush_dirty()
        assert not list(other.glob("big-*"))


def test_others_are_served_while_a_topic_grows_and_the_old_count_holds(scene: Scene) -> None:
    scene.disk.hold("mkdir", f"t-{PARTITIONS // 2}")
    scene.slow.say(grown("t", PARTITIONS))
    assert scene.disk.is_held.wait(BUDGET_S)
    scene.check_others_are_served()
    assert len(scene.describe("t").partitions) == 1
    scene.disk.may_go.set()
    assert scene.slow.hear().results[0].error_code == NoError.errno
    assert len(scene.describe("t").partitions) == PARTITIONS


def test_others_are_served_while_a_topic_goes_and_it_may_come_back(scene: Scene) -> None:
    assert scene.create("big", PARTITIONS).error_code == NoError.errno
    scene.disk.hold("rename", f"big-{PARTITIONS // 2}")
    scene.slow.say(deleted("big"))
    assert scene.disk.is_held.wait(BUDGET_S)
    scene.check_others_are_served()
    # Until the folders are renamed, the broker must not create the topic again in their place.
    assert scene.describe("big").error_code == UnknownTopicOrPartitionError.errno
    scene.other.say(created("big", 3))
    scene.disk.may_go.set()
    assert scene.slow.hear().responses[0].error_code == NoError.errno
    assert scene.other.hear().topics[0].error_code == NoError.errno
    assert len(scene.describe("big").partitions) == 3


def test_configs_that_change_meanwhile_hold_for_the_new_partitions(scene: Scene) -> None:
    scene.disk.hold("mkdir", "t-5")
    scene.slow.say(grown("t", 10))
    assert scene.disk.is_held.wait(BUDGET_S)
    services = scene.broker.services
    assert services is not None
    scene.broker.call(lambda: services.topics.replace_configs("t", {"segment.bytes": "4321"}) or True)
    scene.disk.may_go.set()
    assert scene.slow.hear().results[0].error_code == NoError.errno
    logs = scene.broker._log_manager
    assert logs is not None
    assert {log.config.segment_bytes for place, log in logs.logs().items() if place.topic == "t"} == {4321}
    topic = services.topics.get("t")
    assert topic is not None
    assert (topic.partition_count, dict(topic.configs)) == (10, {"segment.bytes": "4321"})


def test_topic_of_many_partitions_that_is_asked_for_is_there_for_who_asks_again(tmp_path: Path) -> None:
    with scene_on(tmp_path, num_partitions=PARTITIONS) as scene:
        scene.disk.hold("mkdir", f"wanted-{PARTITIONS // 2}")
        for _ in range(3):
            assert scene.describe("wanted").error_code == UnknownTopicOrPartitionError.errno
        assert scene.disk.is_held.wait(BUDGET_S)
        scene.check_others_are_served()
        scene.disk.may_go.set()
        # Topic changes run one after the other, so "wanted" exists once this one is complete.
        assert scene.create("last", 1).error_code == NoError.errno
        assert len(scene.describe("wanted").partitions) == PARTITIONS


def test_topic_of_offsets_with_many_partitions_is_made_while_others_are_served(tmp_path: Path) -> None:
    with scene_on(tmp_path, offsets_topic_num_partitions=PARTITIONS) as scene:
        scene.disk.hold("mkdir", f"__consumer_offsets-{PARTITIONS // 2}")
        for _ in range(3):
            assert scene.find_coordinator().error_code == CoordinatorNotAvailableError.errno
        assert scene.disk.is_held.wait(BUDGET_S)
        scene.check_others_are_served()
        scene.disk.may_go.set()
        assert scene.create("last", 1).error_code == NoError.errno
        assert scene.find_coordinator().error_code == NoError.errno


def test_folders_of_deleted_partitions_go_some_at_a_time_so_that_syncs_come_between(tmp_path: Path) -> None:
    with LogManager(tmp_path, clock=SYSTEM_CLOCK, background=False) as logs:
        logs.create_topic("t", 2 * FOLDERS_PER_ROUND + 1, UUID(int=1), {})
        logs.delete_topic("t")
        left = []
        for _ in range(3):
            logs.flush_dirty()
            left.append(len(list(tmp_path.glob("*-delete"))))
    assert left == [FOLDERS_PER_ROUND + 1, 1, 0]


def test_a_start_leaves_the_folders_of_deleted_partitions_to_the_time_after_it(tmp_path: Path) -> None:
    with LogManager(tmp_path, clock=SYSTEM_CLOCK, background=False) as logs:
        logs.create_topic("t", 2 * FOLDERS_PER_ROUND + 1, UUID(int=1), {})
        logs.delete_topic("t")
        kept = tmp_path.parent / f"{tmp_path.name}-killed"
        shutil.copytree(tmp_path, kept)
    # Undo some renames, as if the broker had been killed before it made them.
    for number in range(FOLDERS_PER_ROUND):
        (kept / f"t-{number}.{UUID(int=1).hex}-delete").rename(kept / f"t-{number}")
    with LogManager(kept, clock=SYSTEM_CLOCK, background=False) as logs:
        assert not logs.topics()
        left = [len(list(kept.glob("t-*-delete")))]
        for _ in range(3):
            logs.flush_dirty()
            left.append(len(list(kept.glob("t-*"))))
    assert left == [2 * FOLDERS_PER_ROUND + 1, FOLDERS_PER_ROUND + 1, 1, 0]
