"""The small text files beside the logs, in Kafka's formats.

Offsets by partition, leader epochs and topic ids in and out. Does not know: logs. Sources: Kafka's
``OffsetCheckpointFile``, ``LeaderEpochCheckpointFile``, ``PartitionMetadataFile``,
``CleanShutdownFileHandler``.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from uuid import UUID

from kafkacore.broker.storage.disk import Disk
from kafkacore.structs import INT32_MAX, INT64_MAX, TopicPartition, printable

logger = logging.getLogger(__name__)

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_FILE = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
LEADER_EPOCH_FILE = "leader-epoch-checkpoint"
BOOT_FILE = ".kafkacore_boot"
PARTITION_METADATA_FILE = "partition.metadata"

_VERSION = "0"
#: One line at a time: a list of them all takes many times what the file has.
_LINE = re.compile(r"[^\r\n]+")


def _lines(data: bytes) -> Iterator[str]:
    return (found[0] for found in _LINE.finditer(data.decode()))


def _entries(data: bytes, fields: int) -> Iterator[list[str]]:
    """The fields of each entry of a checkpoint; ``ValueError``, at the end perhaps, if it is none."""
    lines = _lines(data)
    version, count = next(lines, ""), next(lines, "")
    if version != _VERSION:
        raise ValueError(f"version {version[:40]}")
    expected, found = _number(count, INT32_MAX), 0
    for line in lines:
        found += 1
        if found > expected or len(entry := line.split(" ", fields)) != fields:
            raise ValueError(f"entry {found} of {expected} is {line[:40]!r}")
        yield entry
    if found != expected:
        raise ValueError(f"{found} of {expected} entries")


def _number(text: str, most: int) -> int:
    """A number that has a place in a message; ``ValueError`` for any other."""
    # Not of Java's digits alone, nor of as many as Python would take its time for.
    if len(text) > len(str(most)) + 1 or not -1 <= (number := int(text)) <= most:
        raise ValueError(f"{text[:40]} is no number from -1 to {most}")
    return number


def write_offsets(disk: Disk, path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the checkpoint; durable on return."""
    lines = [_VERSION, str(len(offsets))]
    lines += [f"{tp.topic} {tp.partition} {offset}" for tp, offset in sorted(offsets.items())]
    disk.write_file(path, ("\n".join(lines) + "\n").encode())


def read_offsets(disk: Disk, path: Path) -> dict[TopicPartition, int]:
    """The checkpoint; empty if it is missing or broken, which only makes recovery longer."""
    try:
        return {
            TopicPartition(topic, _number(partition, INT32_MAX)): _number(offset, INT64_MAX)
            for topic, partition, offset in _entries(disk.read_file(path), 3)
        }
    except FileNotFoundError:
        return {}
    except ValueError as error:
        logger.warning("%s is broken (%s); passed over", path, printable(str(error)))
        return {}


def leader_epochs(entries: Sequence[tuple[int, int]]) -> bytes:
    """Content of a ``leader-epoch-checkpoint``: leader epochs, and the offsets that they begin at."""
    lines = [_VERSION, str(len(entries)), *(f"{epoch} {start_offset}" for epoch, start_offset in entries)]
    return ("\n".join(lines) + "\n").encode()


def parse_leader_epochs(data: bytes) -> list[tuple[int, int]]:
    """The entries of a ``leader-epoch-checkpoint``, both numbers of which grow.

    Raises
    ------
    ValueError
        It is none.
    """
    entries = []
    previous = (-1, -1)
    for epoch_text, start_text in _entries(data, 2):
        epoch, start_offset = _number(epoch_text, INT32_MAX), _number(start_text, INT64_MAX)
        if epoch <= previous[0] or start_offset <= previous[1]:
            raise ValueError(f"epoch {epoch} at {start_offset} is not behind epoch {previous[0]}")
        previous = epoch, start_offset
        entries.append(previous)
    return entries


def partition_metadata(topic_id: UUID) -> bytes:
    """Content of a ``partition.metadata``: the topic's id as Kafka's ``Uuid`` writes it, URL-safe base64."""
    text = base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
    return f"version: {_VERSION}\ntopic_id: {text}\n".encode()


def write_topic_id(disk: Disk, folder: Path, topic_id: UUID) -> None:
    """Write ``partition.metadata`` if it is missing; not synced."""
    path = folder / PARTITION_METADATA_FILE
    if not disk.exists(path):
        fd = disk.open(path, create=True)
        try:
            disk.pwritev(fd, [partition_metadata(topic_id)], 0)
        finally:
            disk.close(fd)


def read_topic_id(disk: Disk, folder: Path) -> UUID | None:
    """The topic id that a partition's folder says it belongs to; ``None`` if it does not say."""
    try:
        for line in _lines(disk.read_file(folder / PARTITION_METADATA_FILE)):
            name, _, value = line.partition(": ")
            if name == "topic_id":
                return UUID(bytes=base64.urlsafe_b64decode(value + "=="))
        raise ValueError("no topic_id")
    except FileNotFoundError:
        return None
    except (ValueError, binascii.Error):
        logger.warning("%s is broken; passed over", folder / PARTITION_METADATA_FILE)
        return None


def write_clean_shutdown(disk: Disk, data_dir: Path) -> None:
    content = json.dumps({"version": _VERSION, "broker_epoch": "-1"})
    disk.write_file(data_dir / CLEAN_SHUTDOWN_FILE, content.encode())


def take_clean_shutdown(disk: Disk, data_dir: Path) -> bool:
    """Whether the last owner of the folder has closed it; the marker is gone for good when this returns."""
    path = data_dir / CLEAN_SHUTDOWN_FILE
    if not disk.exists(path):
        return False
    disk.unlink(path)
    disk.fsync_dir(data_dir)
    return True


def is_same_boot(disk: Disk, data_dir: Path) -> bool:
    """Whether the machine has been up since :func:`write_boot`: files are as they were written then."""
    try:
        written = disk.read_file(data_dir / BOOT_FILE)
    except FileNotFoundError:
        return False
    return bool(written) and written == disk.boot_id().encode()


def write_boot(disk: Disk, data_dir: Path) -> None:
    """Remember since when the machine is up; not synced, because it is of no use after a loss of power."""
    fd = disk.open(data_dir / BOOT_FILE, create=True)
    try:
        disk.truncate(fd, 0)
        disk.pwritev(fd, [disk.boot_id().encode()], 0)
    finally:
        disk.close(fd)
