"""The identity of a data folder: Kafka's ``meta.properties``, and the key of SCRAM salts."""

from __future__ import annotations

import base64
import re
import secrets
from pathlib import Path

from kafkacore.broker.storage.disk import Disk
from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.logs import logger_of

logger = logger_of(__name__)

FILE_NAME = "meta.properties"
#: Property that is set if the data folder contains cluster metadata. Apache Kafka ignores the property.
METADATA_KEY = "kafkacore.cluster.metadata"
SALT_KEY_NAME = "scram-salt.key"
SALT_KEY_SIZE = 32
#: Maximum size of ``meta.properties`` in bytes. Kafka writes at most about 200 bytes.
_LARGEST = 1 << 20
_PROPERTY = re.compile(r"^([^#=\r\n][^=\r\n]*)=([^\r\n]*)", re.MULTILINE)


def random_id(clock: Clock) -> str:
    """Return a new cluster id in Kafka's format: 16 random bytes in URL-safe base64, without padding.

    As in Kafka, the id does not begin with a dash.
    """
    while True:
        text = (
            base64.urlsafe_b64encode(clock.random.getrandbits(128).to_bytes(16, "big")).rstrip(b"=").decode()
        )
        if not text.startswith("-"):
            return text


def load_or_create_cluster_id(data_dir: Path, node_id: int, clock: Clock, disk: Disk) -> str:
    """Return the cluster id of ``data_dir``. If the folder has no id, create and store a new id.

    Parameters
    ----------
    data_dir:
        The data folder.
    node_id:
        Id of this broker.
    clock:
        Source of random ids.
    disk:
        File system to use.

    Raises
    ------
    KafkaConfigurationError
        The folder belongs to a broker with another node id, or ``meta.properties`` is too large.
    """
    path = data_dir / FILE_NAME
    found = _properties(path, disk)
    stored_node = found.get("node.id", str(node_id))
    if stored_node != str(node_id):
        raise KafkaConfigurationError(
            f"{path} has node.id {stored_node}, but this broker has node.id {node_id}: "
            "set node.id to the stored id, or use another data folder"
        )
    cluster_id = found.get("cluster.id")
    if not cluster_id:
        cluster_id = random_id(clock)
        found |= {"cluster.id": cluster_id, "node.id": str(node_id), "version": "1"}
        disk.write_file(path, _text(found))
    return cluster_id


class KeptMetadata:
    """A property in ``meta.properties`` that is set if the data folder contains a metadata log.

    The property allows a starting broker to detect that the metadata log was lost. It is set in two steps:
    :meth:`prepare` uses disk space and is called before the log is changed, and :meth:`set` is called
    afterwards. If ``meta.properties`` does not exist, the property is not set.

    Parameters
    ----------
    data_dir:
        The data folder.
    disk:
        File system to use.
    """

    def __init__(self, data_dir: Path, disk: Disk) -> None:
        self.path = data_dir / FILE_NAME
        self._disk = disk
        self._temporary = self.path.with_name(self.path.name + ".tmp")
        self._is_prepared = False

    def is_noted(self) -> bool:
        """Whether the property is set."""
        return METADATA_KEY in _properties(self.path, self._disk)

    def prepare(self) -> None:
        """Write the new file under a temporary name. After an ``OSError`` nothing has changed."""
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
        """Rename the prepared file. An ``OSError`` is logged, and the next start sets the property again."""
        if self._is_prepared:
            self._is_prepared = False
            try:
                self._disk.rename(self._temporary, self.path)
                self._disk.fsync_dir(self.path.parent)
            except OSError as error:
                logger.warning("failed to replace %s: %s", self.path, error)


def _properties(path: Path, disk: Disk) -> dict[str, str]:
    data = disk.read_file(path) if disk.exists(path) else b""
    if len(data) > _LARGEST:
        raise KafkaConfigurationError(
            f"{path} has {len(data)} bytes, which is too large for this file: restore it, or use another "
            "data folder"
        )
    # Lines are parsed one at a time, because a list of all lines takes many times the size of the file.
    return {line[1]: line[2] for line in _PROPERTY.finditer(data.decode("utf-8", "replace"))}


def _text(properties: dict[str, str]) -> bytes:
    return "".join(f"{name}={properties[name]}\n" for name in sorted(properties)).encode()


def load_or_create_salt_key(data_dir: Path, disk: Disk) -> bytes:
    """Return the key from which the SCRAM salts of unknown and of configured users are derived.

    The key is stored, because a salt that changes with each start would reveal that the user does not exist.
    A damaged file is replaced by a new key.

    Parameters
    ----------
    data_dir:
        The data folder.
    disk:
        File system to use.
    """
    path = data_dir / SALT_KEY_NAME
    if disk.exists(path):
        if disk.file_size(path) == SALT_KEY_SIZE:
            return disk.read_file(path)
        logger.warning("%s is damaged; replacing it by a new key", path)
    key = secrets.token_bytes(SALT_KEY_SIZE)
    disk.write_file(path, key)
    return key
