"""A transactional producer on a virtual clock, and a coordinator that answers as the test requests.

:class:`TransactionHarness` is a SenderHarness whose manager uses transactions of version 1 or 2. Its requests
wait in ``client.asked``. :meth:`expect` returns the next request and :meth:`answer` answers it; :meth:`serve`
answers all requests as a healthy coordinator does. The transaction coordinator is node 2, the group
coordinator is node 1.
"""

from __future__ import annotations

from typing import Any, TypeVar

from model.producer_cluster import NODES
from model.producer_harness import SenderHarness

from kafkacore.client import ApiVersions, NodeApiVersions
from kafkacore.producer.transaction_manager import TransactionManager
from kafkacore.producer.transaction_result import TransactionalRequestResult
from kafkacore.producer.transaction_state import State
from kafkacore.protocol import ApiKey
from kafkacore.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafkacore.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kafkacore.protocol.generated.api_versions import ApiVersionsResponse
from kafkacore.protocol.generated.end_txn import EndTxnRequest, EndTxnResponse
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacore.protocol.generated.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kafkacore.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from kafkacore.testing import VirtualClock

ID = "pay"
PRODUCER_ID = 7
#: Coordinator types of FindCoordinator.
GROUP, TRANSACTION = 0, 1
COORDINATORS = {GROUP: 1, TRANSACTION: 2}
#: Maximum iterations before a missing request fails the test.
MAX_TURNS = 20
Asked = TypeVar("Asked")


def node_versions(transaction_version: int, init_producer_id_max: int) -> NodeApiVersions:
    return NodeApiVersions(
        ApiVersionsResponse(
            api_keys=[
                ApiVersionsResponse.ApiVersion(
                    api_key=ApiKey.INIT_PRODUCER_ID, min_version=0, max_version=init_producer_id_max
                )
            ],
            finalized_features_epoch=transaction_version,
            finalized_features=[
                ApiVersionsResponse.FinalizedFeatureKey(
                    name="transaction.version", max_version_level=transaction_version, min_version_level=0
                )
            ],
        )
    )


class TransactionHarness(SenderHarness):
    """A Sender with a TransactionManager.

    Parameters
    ----------
    version:
        Finalized transaction version of the cluster.
    init_producer_id_max:
        Highest InitProducerId version of the coordinator; below 3 it bumps no epochs.
    """

    def __init__(self, version: int = 2, *, init_producer_id_max: int = 5, **changes: Any) -> None:
        clock = VirtualClock()
        self.api_versions = ApiVersions()
        self.finalize(version, init_producer_id_max)
        self.manager = TransactionManager(
            ID, clock, self.api_versions, transaction_timeout_ms=60_000, max_block_ms=1000.0
        )
        super().__init__(idempotence=self.manager, clock=clock, **changes)
        self.manager.attach(self.accumulator)
        #: The producer epoch that the coordinator last returned.
        self.epoch = -1

    def finalize(self, version: int, init_producer_id_max: int = 5) -> None:
        """Finalize a transaction version in the cluster."""
        for node_id in NODES:
            self.api_versions.update(node_id, node_versions(version, init_producer_id_max))

    # ---- The coordinator -----------------------------------------------------------------------------------

    @property
    def question(self) -> Any:
        """Return the oldest unanswered request, or ``None``."""
        return self.client.asked[0].request if self.client.asked else None

    def expect(self, kind: type[Asked], *, within_ms: float = 0.0) -> Asked:
        """Return the next request, which must be of this kind.

        Parameters
        ----------
        within_ms:
            Maximum time until the request is sent.
        """
        for _ in range(MAX_TURNS):
            if self.client.asked:
                break
            self.run()
        if not self.client.asked and within_ms:
            self.after(within_ms)
            return self.expect(kind)
        assert isinstance(self.question, kind), f"asked is {self.question!r}"
        return self.question

    def expect_nothing(self) -> None:
        """Check that no request is sent, however often the sender runs."""
        self.run(MAX_TURNS)
        assert self.client.asked == []

    def answer(self, error: int | dict[TopicPartition, int] = 0, **fields: Any) -> None:
        """Answer the oldest request, with an error code for all partitions or for each; run the sender."""
        self.client.answer(message=self.answer_to(self.question, error, **fields))
        self.run(2)

    def disconnect_coordinator(self) -> None:
        """Disconnect before the response."""
        self.client.answer(disconnected=True)
        self.run(2)

    def serve(self, kinds: tuple[type, ...] = (), *, within_ms: float = 0.0) -> list[Any]:
        """Answer all requests until none is left or the next one is not of ``kinds``."""
        served: list[Any] = []
        if within_ms:
            self.after(within_ms)
        for _ in range(MAX_TURNS):
            self.run()
            if not self.client.asked:
                continue
            if kinds and not isinstance(self.question, kinds):
                break
            served.append(self.question)
            self.answer()
        return served

    def answer_to(self, question: Any, error: int | dict[TopicPartition, int], **fields: Any) -> Any:
        code = error if isinstance(error, int) else 0

        def code_of(topic: str, partition: int) -> int:
            return error.get(TopicPartition(topic, partition), 0) if isinstance(error, dict) else error

        match question:
            case FindCoordinatorRequest():
                return self._coordinator(question, code)
            case InitProducerIdRequest():
                self.epoch += 0 if code else 1
                fields = {"producer_id": PRODUCER_ID, "producer_epoch": self.epoch} | fields
                return InitProducerIdResponse(error_code=code, **fields)
            case AddPartitionsToTxnRequest():
                return added_partitions(question, code_of)
            case AddOffsetsToTxnRequest():
                return AddOffsetsToTxnResponse(error_code=code)
            case TxnOffsetCommitRequest():
                return committed_offsets(question, code_of)
            case EndTxnRequest():
                if self.client.asked[0].max_version is None and not code:
                    self.epoch += 1
                    fields = {"producer_id": PRODUCER_ID, "producer_epoch": self.epoch} | fields
                return EndTxnResponse(error_code=code, **fields)
        raise AssertionError(f"no response is defined for {question!r}")

    @staticmethod
    def _coordinator(question: FindCoordinatorRequest, code: int) -> FindCoordinatorResponse:
        node = NODES[COORDINATORS[question.key_type]]
        return FindCoordinatorResponse(
            coordinators=[
                FindCoordinatorResponse.Coordinator(
                    key=question.coordinator_keys[0],
                    node_id=node.node_id,
                    host=node.host,
                    port=node.port,
                    error_code=code,
                    error_message=None,
                )
            ]
        )

    # ---- The application -----------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self.manager._state.current

    def has_added(self, topic_partition: TopicPartition) -> bool:
        """Return whether the partition is part of the transaction, so that its batches may be sent."""
        return topic_partition in self.manager._partitions

    def initialize(self) -> None:
        result = self.manager.init_transactions()
        self.serve()
        result.wait(0)

    def begin(self) -> None:
        """Begin a transaction, after initializing the producer if necessary."""
        if self.state is State.UNINITIALIZED:
            self.initialize()
        self.manager.begin_transaction()

    def send_offsets(
        self, offset: int = 5, group: ConsumerGroupMetadata | None = None
    ) -> TransactionalRequestResult:
        return self.manager.send_offsets(
            {TopicPartition("t", 0): OffsetAndMetadata(offset)}, group or ConsumerGroupMetadata("readers")
        )

    def acknowledge(self, **how: Any) -> None:
        """Acknowledge all produce requests."""
        self.run(2)
        while self.client.in_flight:
            self.client.respond(**how)
            self.run(2)


def added_partitions(question: AddPartitionsToTxnRequest, code_of: Any) -> AddPartitionsToTxnResponse:
    topic_class = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    partition_class = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            topic_class(
                name=topic.name,
                results_by_partition=[
                    partition_class(partition_index=number, partition_error_code=code_of(topic.name, number))
                    for number in topic.partitions
                ],
            )
            for topic in question.v3_and_below_topics
        ]
    )


def committed_offsets(question: TxnOffsetCommitRequest, code_of: Any) -> TxnOffsetCommitResponse:
    topic_class = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    partition_class = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
    return TxnOffsetCommitResponse(
        topics=[
            topic_class(
                name=topic.name,
                partitions=[
                    partition_class(
                        partition_index=partition.partition_index,
                        error_code=code_of(topic.name, partition.partition_index),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in question.topics
        ]
    )
