from collections.abc import Collection

from typing_extensions import disjoint_base

from kafkacore.broker.log.producer_entries import BatchMetadata, ProducerStateEntry
from kafkacore.broker.log.transaction_index import AbortedTransaction
from kafkacore.record import BatchHeader

@disjoint_base
class ProducerBatches:
    map_end_offset: int
    first_unstable_offset: int | None
    entries: dict[int, ProducerStateEntry]
    _name: str
    def __init__(self, name: str) -> None: ...
    def restore(self, entries: Collection[ProducerStateEntry], map_end_offset: int) -> None: ...
    def check(self, header: BatchHeader) -> BatchMetadata | None: ...
    def update(self, header: BatchHeader, base_offset: int, timestamp: int) -> None: ...
    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool: ...
    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None: ...
    def aborted_by(self, producer_id: int, marker_offset: int) -> AbortedTransaction | None: ...
    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        marker_offset: int,
        timestamp: int,
    ) -> None: ...
    def on_high_watermark(self, high_watermark: int) -> None: ...

def batch_metadata(header: BatchHeader, base_offset: int, timestamp: int) -> BatchMetadata: ...
