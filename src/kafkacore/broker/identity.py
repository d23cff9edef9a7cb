"""Who this broker is: its cluster id, made once and kept in Kafka's ``meta.properties``.

Does not know: topics, sockets.
"""

from __future__ import annotations

import base64
from pathlib import Path

from kafkacore.broker.disk import Disk
from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError

FILE_NAME = "meta.properties"


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
        The folder belongs to another node id.
    """
    path = data_dir / FILE_NAME
    text = disk.read_file(path).decode("utf-8", "replace") if disk.exists(path) else ""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    found = dict(line.split("=", 1) for line in lines if "=" in line)
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
