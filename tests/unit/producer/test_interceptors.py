"""The headers of a record reach the interceptors that take them (KIP-512)."""

from __future__ import annotations

from typing import Any

from kafkacore.errors import NotLeaderForPartitionError
from kafkacore.producer import ProducerInterceptor, ProducerRecord, RecordMetadata
from kafkacore.producer._future import FutureRecordMetadata, ProduceResult
from kafkacore.producer.interceptors import ProducerInterceptors
from kafkacore.structs import TopicPartition

TP = TopicPartition("t", 0)
HEADERS: list[tuple[str, bytes | None]] = [("h", b"x")]


class Plain(ProducerInterceptor):
    def __init__(self) -> None:
        self.offsets: list[int] = []

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        self.offsets.append(metadata.offset)


class TakesHeaders(ProducerInterceptor):
    def __init__(self) -> None:
        self.seen: list[tuple[int, type[Exception] | None, Any]] = []

    def on_acknowledgement(
        self, metadata: RecordMetadata, error: Exception | None, headers: Any = None
    ) -> None:
        self.seen.append((metadata.offset, type(error) if error else None, headers))


def test_headers_reach_the_interceptors_that_take_them() -> None:
    plain, takes = Plain(), TakesHeaders()
    interceptors = ProducerInterceptors([plain, takes])
    acknowledged, failed = ProduceResult(TP), ProduceResult(TP)
    for result in (acknowledged, failed):
        interceptors.notify_when_done(FutureRecordMetadata(result), HEADERS)
    acknowledged.complete(base_offset=7)
    failed.complete(error=NotLeaderForPartitionError())
    interceptors.notify_failed(ProducerRecord("t"), TypeError("not bytes"))
    assert plain.offsets == [7, -1, -1]
    assert takes.seen == [
        (7, None, HEADERS),
        (-1, NotLeaderForPartitionError, HEADERS),
        (-1, TypeError, None),
    ]
