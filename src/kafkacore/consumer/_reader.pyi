from collections.abc import Callable
from typing import Any, final

from kafkacore.consumer._memory import FetchMemory
from kafkacore.consumer._record import ConsumerRecord
from kafkacore.record import RecordBatch
from kafkacore.record._batch import BatchIterator

_Deserialize = Callable[[str, list[tuple[str, bytes | None]], bytes | None], Any]

@final
class RecordReader:
    batches: BatchIterator
    next_offset: int
    last_epoch: int
    is_consumed: bool
    failed_in_deserializer: bool
    deserialized_offset: int
    def __init__(
        self,
        records: memoryview | bytes | None,
        topic: str,
        partition: int,
        fetch_offset: int,
        memory: FetchMemory,
        is_for_user: Callable[[RecordBatch], bool],
        *,
        check_crcs: bool = True,
        max_decompressed_size: int = ...,
        read_committed: bool = False,
        key_deserializer: _Deserialize | None = None,
        value_deserializer: _Deserialize | None = None,
    ) -> None: ...
    @property
    def has_batch(self) -> bool: ...
    @property
    def has_whole_batch(self) -> bool: ...
    def moved(self, next_offset: int, last_epoch: int) -> None: ...
    def drain(self) -> None: ...
    def current_batch(self) -> RecordBatch | None: ...
    def finish_batch(self) -> None: ...
    def read(self, out: list[ConsumerRecord], limit: int) -> None: ...
    def whole_batches(self) -> tuple[int, int]: ...
    def extent(self) -> tuple[int, int, int]: ...
