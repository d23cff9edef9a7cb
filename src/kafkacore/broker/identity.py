"""Who this broker is: its cluster id, made once and kept in Kafka's ``meta.properties``.

Does not know: topics, sockets.
"""

from __future__ import annotations

import base64
from pathlib import Path

from kafkacore.broker.state_file import StateFile
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


def load_or_create_cluster_id(data_dir: Path, node_id: int, clock: Clock) -> str:
    """The cluster id of ``data_dir``.

    Raises
    ------
    KafkaConfigurationError
        The folder belongs to another node id.
    """
    file = StateFile(data_dir / FILE_NAME)
    lines = [line for line in (file.read() or "").splitlines() if line and not line.startswith("#")]
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    stored_node = found.get("node.id", str(node_id))
    if stored_node != str(node_id):
        raise KafkaConfigurationError(
            f"{file.path} is of node.id {stored_node}, this broker has node.id {node_id}"
        )
    cluster_id = found.get("cluster.id")
    if not cluster_id:
        cluster_id = random_id(clock)
        found |= {"cluster.id": cluster_id, "node.id": str(node_id), "version": "1"}
        file.write("".join(f"{name}={found[name]}\n" for name in sorted(found)))
    return cluster_id
