"""Allocates producer ids that are unique even after a crash, like Kafka's ``RPCProducerIdManager``.

The end of a block of ids is written to disk before the first id of the block is used. After a restart,
allocation continues after the block, and the unused ids of the block are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path

from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import KafkaStorageError
from kafkacore.structs import INT64_MAX

BLOCK_SIZE = 1000
FILE_NAME = "producer-ids.json"
_LAST_ID = INT64_MAX


class ProducerIdManager:
    """Allocates producer ids. Only the network thread may use it.

    Parameters
    ----------
    data_dir:
        Data folder, which contains the end of the last allocated block.
    disk:
        File system to use.

    Raises
    ------
    KafkaStorageError
        The file is damaged.
    """

    def __init__(self, data_dir: Path, disk: Disk) -> None:
        self._path = data_dir / FILE_NAME
        self._disk = disk
        self._next = self._block_end = self._load()

    def _load(self) -> int:
        try:
            text = self._disk.read_file(self._path)
        except FileNotFoundError:
            return 0
        try:
            block_end = json.loads(text)["next_block_start"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise KafkaStorageError(f"{self._path} cannot be read: {error}") from None
        if not isinstance(block_end, int) or not 0 <= block_end <= _LAST_ID - BLOCK_SIZE:
            raise KafkaStorageError(f"{self._path}: invalid next_block_start {block_end!r}")
        return block_end

    def next_producer_id(self) -> int:
        """Return a producer id that was never returned before.

        Raises
        ------
        OSError
            A new block cannot be written.
        """
        if self._next == self._block_end:
            state = {"next_block_start": self._block_end + BLOCK_SIZE}
            self._disk.write_file(self._path, json.dumps(state).encode() + b"\n")
            self._block_end += BLOCK_SIZE
        producer_id = self._next
        self._next += 1
        return producer_id
