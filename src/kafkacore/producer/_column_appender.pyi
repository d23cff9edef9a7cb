from typing import final

from kafkacore.producer._batch_future import BatchFuture
from kafkacore.producer._record_appender import RecordAppender
from kafkacore.record._source import RecordSource

@final
class ColumnAppender:
    def __init__(self, records: RecordAppender) -> None: ...
    def append_source(
        self,
        topic: str,
        source: RecordSource,
        partition: int | None,
        max_block_ms: float | None = None,
        allow_empty: bool = False,
    ) -> BatchFuture | None: ...
    def failed_source(self, topic: str, source: RecordSource, error: BaseException) -> BatchFuture: ...

def partition_range(source: RecordSource) -> tuple[int, int]: ...
