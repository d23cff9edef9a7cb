"""Who this broker is: its cluster id, made once and kept in Kafka's ``meta.properties``, with a note whether
there is metadata of the cluster; and a secret of its own, kept beside it.

Does not know: topics, sockets.
"""

from __future__ import annotations

import base64
import logging
import re
import secrets
from pathlib import Path

from kafkacore.broker.storage.disk import Disk
from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError

logger = logging.getLogger(__name__)

FILE_NAME = "meta.properties"
#: A property of our own there, which Apache Kafka passes over.
METADATA_KEY = "kafkacore.cluster.metadata"
SALT_KEY_NAME = "scram-salt.key"
SALT_KEY_SIZE = 32
#: A file that is larger is no such file; Kafka's have a hundred bytes or two.
_LARGEST = 1 << 20
_PROPERTY = re.compile(r"^([^#=\r\n][^=\r\n]*)=([^\r\n]*)", re.MULTILINE)


def random_id(clock: Clock) -> str:
    """A cluster id as Kafka writes one: 16 random bytes, URL-safe base64 without padding, no leading dash."""
    while True:
        text = (
            base64.urlsafe_b64encode(clock.random.getrandbits(128).to_bytes(16, "big")).rstrip(b"=").decode()
        )
        if not text.startswith("-"):
            return text


def load_or_create_cluster_id(data_dir: Path, node_id: int, clock: Clock, disk: Disk) -> str:
    """The cluster id of ``data_dir``.

    Raises
    ------
    KafkaConfigurationError
        The folder belongs to another node id, or the file is none of Kafka's.
    """
    path = data_dir / FILE_NAME
    found = _properties(path, disk)
    stored_node = found.get("node.id", str(node_id))
    if stored_node != str(node_id):
        raise KafkaConfigurationError(
            f"{path} is of node.id {stored_node}, this broker has node.id {node_id}"
        )
    cluster_id = found.get("cluster.id")
    if not cluster_id:
        cluster_id = random_id(clock)
        found |= {"cluster.id": cluster_id, "node.id": str(node_id), "version": "1"}
        disk.write_file(path, _text(found))
    return cluster_id


class KeptMetadata:
    """The note that a folder has a log of the cluster's metadata, so that it is missed when it is gone.

    Made in two steps, so that all that needs room on the disk is done before the log is touched. Without a
    file to note it in nothing is done.
    """

    def __init__(self, data_dir: Path, disk: Disk) -> None:
        self.path = data_dir / FILE_NAME
        self._disk = disk
        self._temporary = self.path.with_name(self.path.name + ".tmp")
        self._is_prepared = False

    def is_noted(self) -> bool:
        return METADATA_KEY in _properties(self.path, self._disk)

    def prepare(self) -> None:
        """Write the note under another name; an ``OSError`` leaves everything as it was."""
        found = _properties(self.path, self._disk)
        self._is_prepared = bool(found) and METADATA_KEY not in found
        if self._is_prepared:
            fd = self._disk.open(self._temporary, create=True)
            try:
                self._disk.truncate(fd, 0)
                self._disk.pwritev(fd, [_text(found | {METADATA_KEY: "kept"})], 0)
                self._disk.fdatasync(fd)
            finally:
                self._disk.close(fd)

    def set(self) -> None:
        """Let what was prepared be true. After an ``OSError``, logged, the next start does it."""
        if self._is_prepared:
            self._is_prepared = False
            try:
                self._disk.rename(self._temporary, self.path)
                self._disk.fsync_dir(self.path.parent)
            except OSError as error:
                logger.warning("%s could not be replaced: %s", self.path, error)


def _properties(path: Path, disk: Disk) -> dict[str, str]:
    data = disk.read_file(path) if disk.exists(path) else b""
    if len(data) > _LARGEST:
        raise KafkaConfigurationError(
            f"{path} has {len(data)} bytes, which no broker has written: restore it, or take another data_dir"
        )
    # One line at a time: a list of them all takes many times what the file has.
    return {line[1]: line[2] for line in _PROPERTY.finditer(data.decode("utf-8", "replace"))}


def _text(properties: dict[str, str]) -> bytes:
    return "".join(f"{name}={properties[name]}\n" for name in sorted(properties)).encode()


def load_or_create_salt_key(data_dir: Path, disk: Disk) -> bytes:
    """What the salts of users that there are not are made of, and those of configured users.

    Somebody who asks for a user's salt before and after the broker is started again would learn from one that
    has changed whether there is such a user. A file that is no such key is replaced.
    """
    path = data_dir / SALT_KEY_NAME
    if disk.exists(path):
        if disk.file_size(path) == SALT_KEY_SIZE:
            return disk.read_file(path)
        logger.warning("%s is damaged and is made anew", path)
    key = secrets.token_bytes(SALT_KEY_SIZE)
    disk.write_file(path, key)
    return key
