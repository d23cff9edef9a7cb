from typing import Final, final

from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.log_structs import RecordError as RecordError
from kafkacore.broker.log.log_structs import ValidatedBatch
from kafkacore.errors import InvalidRecordError, InvalidTimestampError
from kafkacore.structs import TopicPartition

MAX_RECORD_ERRORS: Final[int]

class RefusedRecordsError(InvalidRecordError):
    record_errors: list[RecordError]
    def __init__(self, message: str, record_errors: list[RecordError]) -> None: ...

class RefusedTimestampsError(InvalidTimestampError):
    record_errors: list[RecordError]
    def __init__(self, message: str, record_errors: list[RecordError]) -> None: ...

@final
class ValidationBudget: ...

def validate_append(
    records: memoryview,
    config: LogConfig,
    now_ms: int,
    topic_partition: TopicPartition,
    budget: ValidationBudget | None = None,
) -> ValidatedBatch | None: ...
def validate_coordinator_append(
    records: memoryview, config: LogConfig, topic_partition: TopicPartition
) -> ValidatedBatch: ...
