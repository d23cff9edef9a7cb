"""Reads and writes the checkpoint and marker files of a data folder, in Kafka's formats.

The code follows Kafka's ``OffsetCheckpointFile``, ``LeaderEpochCheckpointFile``, ``PartitionMetadataFile``
and ``CleanShutdownFileHandler``.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kafkacore.broker.storage.disk import Disk
from kafkacore.logs import logger_of
from kafkacore.structs import INT32_MAX, INT64_MAX, TopicPartition, printable
from kafkacore.wire import Uuid

logger = logger_of(__name__)

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_FILE = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
LEADER_EPOCH_FILE = "leader-epoch-checkpoint"
BOOT_FILE = ".kafkacore_boot"
PARTITION_METADATA_FILE = "partition.metadata"

_VERSION = "0"
#: Lines are parsed one at a time, because a list of all lines takes many times the size of the file.
_LINE = re.compile(r"[^\r\n]+")


def _lines(data: bytes) -> Iterator[str]:
    return (found[0] for found in _LINE.finditer(data.decode()))


def _entries(data: bytes, fields: int) -> Iterator[list[str]]:
    """Yield the fields of each entry of a checkpoint file.

    Raises
    ------
    ValueError
        The file is invalid. Some entries may have been yielded before the error.
    """
    lines = _lines(data)
    version, count = next(lines, ""), next(lines, "")
    if version != _VERSION:
        raise ValueError(f"unknown version {version[:40]!r}")
    expected, found = _number(count, INT32_MAX), 0
    for line in lines:
        found += 1
        if found > expected or len(entry := line.split(" ", fields)) != fields:
            raise ValueError(f"entry {found} of {expected} is invalid: {line[:40]!r}")
        yield entry
    if found != expected:
        raise ValueError(f"found {found} of {expected} entries")


def _number(text: str, most: int) -> int:
    """Parse a number from -1 to ``most``.

    Raises
    ------
    ValueError
        The text is not such a number.
    """
    # The length is checked first, because int() is slow for very long texts.
    if len(text) > len(str(most)) + 1 or not -1 <= (number := int(text)) <= most:
        raise ValueError(f"{text[:40]} is not a number from -1 to {most}")
    return number


def write_offsets(disk: Disk, path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace a checkpoint file of offsets. On return, the file is durable."""
    lines = [_VERSION, str(len(offsets))]
    lines += [f"{tp.topic} {tp.partition} {offset}" for tp, offset in sorted(offsets.items())]
    disk.write_file(path, ("\n".join(lines) + "\n").encode())


def read_offsets(disk: Disk, path: Path) -> dict[TopicPartition, int]:
    """Read a checkpoint file of offsets. A missing or damaged file counts as empty, which slows recovery."""
    return known_offsets(disk, path) or {}


def known_offsets(disk: Disk, path: Path) -> dict[TopicPartition, int] | None:
    """Read a checkpoint file of offsets. Return ``None`` if the file is missing or damaged."""
    try:
        return {
            TopicPartition(topic, _number(partition, INT32_MAX)): _number(offset, INT64_MAX)
            for topic, partition, offset in _entries(disk.read_file(path), 3)
        }
    except FileNotFoundError:
        return None
    except ValueError as error:
        logger.warning("ignoring the damaged checkpoint %s: %s", path, printable(str(error)))
        return None


def leader_epochs(entries: Sequence[tuple[int, int]]) -> bytes:
    """Return the content of a ``leader-epoch-checkpoint`` file with these pairs of epoch and start offset."""
    lines = [_VERSION, str(len(entries)), *(f"{epoch} {start_offset}" for epoch, start_offset in entries)]
    return ("\n".join(lines) + "\n").encode()


def parse_leader_epochs(data: bytes) -> list[tuple[int, int]]:
    """Parse a ``leader-epoch-checkpoint`` file into pairs of epoch and start offset.

    Raises
    ------
    ValueError
        The file is invalid, or its epochs or offsets are not increasing.
    """
    entries = []
    previous = (-1, -1)
    for epoch_text, start_text in _entries(data, 2):
        epoch, start_offset = _number(epoch_text, INT32_MAX), _number(start_text, INT64_MAX)
        if epoch <= previous[0] or start_offset <= previous[1]:
            raise ValueError(
                f"epoch {epoch} at offset {start_offset} is not after epoch {previous[0]} at {previous[1]}"
            )
        previous = epoch, start_offset
        entries.append(previous)
    return entries


def partition_metadata(topic_id: Uuid) -> bytes:
    """Return the content of a ``partition.metadata`` file. Kafka writes the topic id in URL-safe base64."""
    text = base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
    return f"version: {_VERSION}\ntopic_id: {text}\n".encode()


def write_topic_id(disk: Disk, folder: Path, topic_id: Uuid) -> None:
    """Write ``partition.metadata`` if it is missing. The file is not synced."""
    path = folder / PARTITION_METADATA_FILE
    if not disk.exists(path):
        fd = disk.open(path, create=True)
        try:
            disk.pwritev(fd, [partition_metadata(topic_id)], 0)
        finally:
            disk.close(fd)


def read_topic_id(disk: Disk, folder: Path) -> Uuid | None:
    """Return the topic id in ``partition.metadata``, or ``None`` if the file is missing or damaged."""
    try:
        for line in _lines(disk.read_file(folder / PARTITION_METADATA_FILE)):
            name, _, value = line.partition(": ")
            if name == "topic_id":
                return Uuid(base64.urlsafe_b64decode(value + "=="))
        raise ValueError("no topic_id")
    except FileNotFoundError:
        return None
    except (ValueError, binascii.Error):
        logger.warning("ignoring the damaged file %s", folder / PARTITION_METADATA_FILE)
        return None


def write_clean_shutdown(disk: Disk, data_dir: Path) -> None:
    """Write the marker of a clean shutdown. On return, the file is durable."""
    content = json.dumps({"version": _VERSION, "broker_epoch": "-1"})
    disk.write_file(data_dir / CLEAN_SHUTDOWN_FILE, content.encode())


def take_clean_shutdown(disk: Disk, data_dir: Path) -> bool:
    """Remove the marker of a clean shutdown durably, and return whether there was one."""
    path = data_dir / CLEAN_SHUTDOWN_FILE
    if not disk.exists(path):
        return False
    disk.unlink(path)
    disk.fsync_dir(data_dir)
    return True


def is_same_boot(disk: Disk, data_dir: Path) -> bool:
    """Whether the machine has been running since :func:`write_boot`. If so, no write was lost."""
    try:
        written = disk.read_file(data_dir / BOOT_FILE)
    except FileNotFoundError:
        return False
    return bool(written) and written == disk.boot_id().encode()


def write_boot(disk: Disk, data_dir: Path) -> None:
    """Write the boot id of the machine without a sync, because the id is useless after a loss of power."""
    fd = disk.open(data_dir / BOOT_FILE, create=True)
    try:
        disk.truncate(fd, 0)
        disk.pwritev(fd, [disk.boot_id().encode()], 0)
    finally:
        disk.close(fd)
