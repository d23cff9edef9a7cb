"""A stand-in for the transaction coordinator: records calls and answers them as the test says."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from kafkacore.structs import TopicPartition


class ScriptedTransactions:
    """Answers with ``code``. While ``is_holding``, added partitions are answered by :meth:`settle`."""

    def __init__(self) -> None:
        self.code = 0
        self.is_holding = False
        #: Name and arguments of each call.
        self.calls: list[tuple[Any, ...]] = []
        self._held: list[Callable[[int], None]] = []

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        node_id: int | None,
        client_version: int,
        on_done: Callable[[int], None],
    ) -> None:
        who = (transactional_id, producer_id, producer_epoch)
        self.calls.append(("add", *who, list(partitions), node_id, client_version))
        if self.is_holding:
            self._held.append(on_done)
        else:
            on_done(self.code)

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        node_id: int | None,
    ) -> dict[TopicPartition, int]:
        who = (transactional_id, producer_id, producer_epoch)
        self.calls.append(("verify", *who, list(partitions), node_id))
        return dict.fromkeys(partitions, self.code)

    def settle(self) -> None:
        """Answer all calls that were held."""
        held, self._held = self._held, []
        for on_done in held:
            on_done(self.code)
