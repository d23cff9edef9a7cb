from typing import Protocol, final

from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer._record_appender import RecordAppender

_Headers = list[tuple[str, bytes | None]]

class _Preparer(Protocol):
    def send(
        self,
        topic: str,
        value: object,
        key: object,
        headers: _Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
        /,
    ) -> FutureRecordMetadata: ...
    def send_to_unknown(
        self,
        topic: str,
        value: object,
        key: object,
        headers: _Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
        /,
    ) -> FutureRecordMetadata: ...

@final
class RecordSender:
    def __init__(
        self, records: RecordAppender, preparer: _Preparer, is_plain: bool, owner: object = None
    ) -> None: ...
    def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        headers: _Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> FutureRecordMetadata: ...
