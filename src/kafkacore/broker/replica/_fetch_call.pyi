from typing import final

from kafkacore.broker.replica.fetch_partition import PartitionResults
from kafkacore.broker.topics.topic_catalog import TopicCatalog
from kafkacore.protocol import ZERO_UUID as ZERO_UUID
from kafkacore.structs import TopicPartition
from kafkacore.wire import Cursor, Uuid

@final
class FetchPartition:
    topic_id: Uuid
    partition: int
    topic_partition: TopicPartition | None
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int
    def __init__(
        self,
        name: str | None,
        topic_id: Uuid,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
    ) -> None: ...
    @property
    def name(self) -> str: ...

@final
class FetchTopic:
    topic: str
    topic_id: Uuid
    partitions: list[FetchPartition] | list[int]
    def __init__(self, topic: str, partitions: list[FetchPartition]) -> None: ...

@final
class FetchCall:
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten_topics_data: list[FetchTopic]
    def __init__(
        self,
        *,
        replica_id: int,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        topics: list[FetchTopic],
    ) -> None: ...
    def asked(self, topics: TopicCatalog) -> dict[tuple[bytes | str, int], FetchPartition]: ...
    def forgotten(self) -> list[tuple[bytes | str, int]]: ...

@final
class FetchAnswer:
    throttle_time_ms: int
    session_id: int
    included: PartitionResults
    read_committed: bool
    error_code: int
    responses: tuple[()]
    def __init__(self, session_id: int, included: PartitionResults, read_committed: bool) -> None: ...

def is_plain(included: PartitionResults) -> bool: ...
def read_fetch(cursor: Cursor, version: int) -> FetchCall: ...
def encode_fetch_answer(
    answer: FetchAnswer, version: int, correlation_id: int
) -> list[bytes | memoryview]: ...
