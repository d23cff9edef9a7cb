from typing_extensions import disjoint_base

from kafkacore.broker.handlers.services import ProduceServices
from kafkacore.broker.log import UnifiedLog
from kafkacore.broker.log.log_structs import ValidatedBatch
from kafkacore.broker.replica._produce_call import ProduceCall, ProducePartition
from kafkacore.broker.requests._request import Request
from kafkacore.broker.topics.internal_topics import INTERNAL_TOPICS as INTERNAL_TOPICS
from kafkacore.structs import TopicPartition

ADMIN_CLIENT_ID: str

@disjoint_base
class ProduceAppend:
    request: Request
    services: ProduceServices
    call: ProduceCall
    first_error: str
    unvalidated: list[tuple[ProducePartition, TopicPartition, UnifiedLog]]
    refused: dict[TopicPartition, int]
    waiting: list[tuple[ProducePartition, TopicPartition, UnifiedLog, int]]
    def __init__(self, request: Request, services: ProduceServices) -> None: ...
    def refuse_all(self, error: Exception) -> None: ...
    def transactional(self) -> list[tuple[TopicPartition, int, int, int]]: ...
    def append_all(self) -> None: ...
    def validate(
        self,
        some: list[tuple[ProducePartition, TopicPartition, UnifiedLog]],
        outcomes: list[ValidatedBatch | Exception],
    ) -> None: ...
    def append_validated(
        self,
        partition: ProducePartition,
        topic_partition: TopicPartition,
        log: UnifiedLog,
        outcome: ValidatedBatch | Exception,
    ) -> None: ...
