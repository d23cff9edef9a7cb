"""Damaged, empty, missing and replaced files of a data folder.

A start rebuilds the file, or fails with an error that names it. An acknowledged record is never lost
silently.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from model.broker_in_hand import BrokerInHand
from model.dose import dose, new_seed, note
from model.log_oracle import NOW_MS, batch, open_manager, read_all
from model.power_rights import CONFIG as GUARDED
from model.power_rights import Rights, found_in

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.log import LogManager
from kafkacore.errors import KafkaConfigurationError, KafkaError, KafkaStorageError
from kafkacore.structs import TopicPartition
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.disk import SimulatedDisk

DATA = Path("/data")
CONFIG = {
    "log_segment_bytes": 900,
    "log_index_interval_bytes": 150,
    "port": 0,
    "log_retention_ms": -1,
    **GUARDED,
}
TRIMMED, START = TopicPartition("a", 0), 9
PARTITIONS = [TopicPartition(topic, partition) for topic in "ab" for partition in (0, 1)]
#: Outcomes that damage to a file may have, besides "ok". Kafka's text files have no checksum, so a damaged
#: log start offset may look valid.
ALLOWED = {
    "topics.json": {"refused"},
    "producer-ids.json": {"refused"},
    "meta.properties": {"refused"},
    "partition.metadata": {"offline"},
    "log-start-offset-checkpoint": {"begins elsewhere"},
    "cluster-metadata.log": {"refused"},
    "cluster-metadata.end": {"refused"},
}
SAMPLES = dose(25, 2_000)


def started(disk: SimulatedDisk, folder: Path) -> BrokerInHand:
    config = BrokerConfig.from_properties({"data_dir": folder, **CONFIG})
    broker = BrokerInHand(config, background=False, clock=VirtualClock(start_ms=NOW_MS), disk=disk)
    broker.start()
    return broker


def values_of(tp: TopicPartition) -> list[bytes]:
    return [b"%d of %s" % (number, str(tp).encode()) for number in range(29)]


def used_folder(folder: Path, rights: Rights, *, is_clean: bool) -> SimulatedDisk:
    """Return the disk of a broker with four partitions of several segments.

    All records are acknowledged. The last ones are above the recovery points.
    """
    disk = SimulatedDisk()
    broker = started(disk, folder)
    producer_id = broker.services.producer_ids.next_producer_id()
    for topic in "ab":
        broker.services.topics.create(topic, 2, {})
    for _ in range(9):
        assert rights.change(broker) == []
    for tp in PARTITIONS:
        values, log = values_of(tp), broker.logs.log(tp)
        assert log is not None
        for first in range(0, 28, 2):
            sent = batch(values[first : first + 2], NOW_MS + first, producer=(producer_id, 0, first))
            log.append(sent, now_ms=NOW_MS)
    broker.flush()
    broker.logs.delete_records(TRIMMED, START)
    for tp in PARTITIONS:
        log = broker.logs.log(tp)
        assert log is not None
        log.append(batch(values_of(tp)[28:], NOW_MS + 99, producer=(producer_id, 0, 28)), now_ms=NOW_MS)
    broker.flush()
    if is_clean:
        broker.stop()
    broker.abandon()
    return disk.kill_process()


def outcome(disk: SimulatedDisk, folder: Path, rights: Rights) -> str:
    """Start a broker. Return "ok", or how its state differs from the acknowledged one."""
    try:
        broker = started(disk, folder)
    except KafkaError as error:
        return "refused" if str(folder) in str(error) else f"refused, and says {error}"
    found = {outcome_of(broker, tp) for tp in PARTITIONS} - {"ok"}
    if found_in(broker) != rights.answered:
        found.add("other rights")
    broker.abandon()
    return ", ".join(sorted(found)) or "ok"


def outcome_of(broker: BrokerInHand, tp: TopicPartition) -> str:
    try:
        log = broker.logs.log(tp)
    except KafkaStorageError as error:
        return "offline" if tp.topic in str(error) else f"offline, and says {error}"
    if log is None:
        return "gone"
    expected = list(enumerate(values_of(tp)))
    records = [(record.offset, record.value) for record in read_all(log)]
    if records == expected[START if tp == TRIMMED else 0 :]:
        return "ok"
    return "begins elsewhere" if records == expected[log.log_start_offset :] and records else "lost"


def files_of(disk: SimulatedDisk, folder: Path) -> Iterator[Path]:
    """Return the files of one partition and of the data folder, without the ``.log`` files.

    ``log/test_damage.py`` damages the ``.log`` files.
    """
    for name in disk.listdir(folder):
        path = folder / name
        if not disk.is_dir(path):
            yield path
        elif name == "a-0":
            yield from (each for each in files_of(disk, path) if each.suffix != ".log")


def damages(data: bytes, chance: random.Random) -> Iterator[tuple[str, bytes | None]]:
    yield "missing", None
    yield "empty", b""
    yield "junk", b"\xff\xfe\0junk" * 9
    yield "another version", b"9" + data[1:]
    yield "doubled", data * 2
    for size in range(0, len(data), max(len(data) * 2 // SAMPLES, 1)):
        yield f"cut at {size}", data[:size]
    for bit in chance.sample(range(len(data) * 8), min(SAMPLES, len(data) * 8)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        yield f"bit {bit} flipped", bytes(flipped)


@pytest.mark.timeout(dose(120, 1_800))
@pytest.mark.parametrize("is_clean", [False, True], ids=["killed", "stopped"])
def test_damaged_file_is_rebuilt_or_refused_and_no_record_is_out_of_sight(
    tmp_path: Path, is_clean: bool
) -> None:
    seed = new_seed()
    chance = random.Random(seed)
    rights = Rights(random.Random(seed))
    disk = used_folder(tmp_path, rights, is_clean=is_clean)
    assert outcome(disk.copy(), tmp_path, rights) == "ok"
    names = set()
    counts: Counter[str] = Counter()
    for path in files_of(disk, tmp_path):
        names.add(path.name)
        for what, data in damages(disk.read_file(path), chance):
            damaged = disk.copy()
            if data is None:
                damaged.unlink(path)
            else:
                fd = damaged.open(path)
                damaged.truncate(fd, 0)
                damaged.pwritev(fd, [data], 0)
                damaged.close(fd)
            found = outcome(damaged, tmp_path, rights)
            assert found in {"ok"} | ALLOWED.get(path.name, set()), f"{path.name} {what}"
            counts["rebuilt" if found == "ok" else "refused"] += 1
    note(f"damaged files of a broker that was {'stopped' if is_clean else 'killed'}", seed,
         files=len(names), **counts)  # fmt: skip
    assert names >= set(ALLOWED)
    assert names >= {"recovery-point-offset-checkpoint", "leader-epoch-checkpoint", ".lock"}


def test_deleting_a_topic_whose_folder_is_a_link_leaves_what_it_points_to(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("kept")
    with LogManager(tmp_path / "data", clock=VirtualClock(), background=False) as manager:
        topic = manager.create_topic("a", 1, UUID(int=5), {})
        assert topic.partition_count == 1
        folder = tmp_path / "data" / "a-0"
        folder.rename(tmp_path / "data" / "moved")
        folder.symlink_to(elsewhere, target_is_directory=True)
        manager.delete_topic("a")
        manager.flush_dirty()
        assert not folder.is_symlink()
    assert (elsewhere / "mine").read_text() == "kept"


def test_folder_of_a_partition_that_is_a_link_stops_the_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with LogManager(data, clock=VirtualClock(), background=False) as manager:
        manager.create_topic("a", 1, UUID(int=5), {})
    (data / "a-0").rename(tmp_path / "elsewhere")
    (data / "a-0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KafkaConfigurationError, match=r"/data/a-0 is a symbolic link"):
        LogManager(data, clock=VirtualClock(), background=False)
    (data / "a-0").unlink()
    (tmp_path / "elsewhere").rename(data / "a-0")
    with LogManager(data, clock=VirtualClock(), background=False) as manager:
        assert manager.was_clean, "the refused start must not change any file"


@pytest.mark.parametrize("name", [f"{0:020}.log", "leader-epoch-checkpoint"])
def test_file_of_a_partition_that_is_a_link_takes_it_offline(tmp_path: Path, name: str) -> None:
    data, partition = tmp_path / "data", TopicPartition("a", 0)
    with LogManager(data, clock=VirtualClock(), background=False) as manager:
        manager.create_topic("a", 1, UUID(int=5), {})
    path, target = data / "a-0" / name, tmp_path / "target"
    target.write_text("other data")
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    with LogManager(data, clock=VirtualClock(), background=False) as manager:
        assert "it is a symbolic link" in manager.offline[partition]
        assert str(path) in manager.offline[partition]
    assert target.read_text() == "other data"


def test_folder_of_a_partition_that_no_topic_could_have_is_not_believed() -> None:
    disk = SimulatedDisk()
    open_manager(disk).close()
    disk.unlink(DATA / "topics.json")
    for number in (2**31, 99_999_999_999):
        disk.mkdir(DATA / f"flights-{number}")
    manager = open_manager(disk)
    assert dict(manager.topics()) == {}
