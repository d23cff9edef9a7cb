from typing import Any

from typing_extensions import disjoint_base

from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer._record_appender import RecordAppender

_Headers = list[tuple[str, bytes | None]]

@disjoint_base
class RecordSender:
    _is_plain: bool
    def _bind(self, appender: RecordAppender, is_plain: bool) -> None: ...
    def _send_slowly(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: _Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> FutureRecordMetadata: ...
    def _send_to_unknown(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: _Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> FutureRecordMetadata: ...
    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: _Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> FutureRecordMetadata: ...
