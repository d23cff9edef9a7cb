"""Who this broker is: its cluster id, made once and kept in Kafka's ``meta.properties``; and a secret of its
own, kept beside it.

Does not know: topics, sockets.
"""

from __future__ import annotations

import base64
import logging
import re
import secrets
from pathlib import Path

from kafkacore.broker.disk import Disk
from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError

logger = logging.getLogger(__name__)

FILE_NAME = "meta.properties"
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
    data = disk.read_file(path) if disk.exists(path) else b""
    if len(data) > _LARGEST:
        raise KafkaConfigurationError(
            f"{path} has {len(data)} bytes, which no broker has written: restore it, or take another data_dir"
        )
    # One line at a time: a list of them all takes many times what the file has.
    found = {line[1]: line[2] for line in _PROPERTY.finditer(data.decode("utf-8", "replace"))}
    stored_node = found.get("node.id", str(node_id))
    if stored_node != str(node_id):
        raise KafkaConfigurationError(
            f"{path} is of node.id {stored_node}, this broker has node.id {node_id}"
        )
    cluster_id = found.get("cluster.id")
    if not cluster_id:
        cluster_id = random_id(clock)
        found |= {"cluster.id": cluster_id, "node.id": str(node_id), "version": "1"}
        disk.write_file(path, "".join(f"{name}={found[name]}\n" for name in sorted(found)).encode())
    return cluster_id


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
