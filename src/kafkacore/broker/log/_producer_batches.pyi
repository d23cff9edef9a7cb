from typing_extensions import disjoint_base

from kafkacore.broker.log.producer_entries import BatchMetadata, ProducerStateEntry
from kafkacore.record import BatchHeader

@disjoint_base
class ProducerBatches:
    map_end_offset: int
    entries: dict[int, ProducerStateEntry]
    _name: str
    def __init__(self, name: str) -> None: ...
    def check(self, header: BatchHeader) -> BatchMetadata | None: ...
    def update(self, header: BatchHeader, base_offset: int, timestamp: int) -> None: ...

def batch_metadata(header: BatchHeader, base_offset: int, timestamp: int) -> BatchMetadata: ...
