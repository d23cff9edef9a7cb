"""A model of brokers that check sequence numbers by Apache Kafka's rules, and of lost responses.

It takes the requests that a HandClient has sent, and produces logs, responses and disconnects. It follows
``ProducerAppendInfo`` and ``ProducerStateEntry`` and is a second reference beside the embedded broker.
"""

from __future__ import annotations

from collections import defaultdict, deque

from model.history import LogRecord
from model.producer_client import HandClient

from kafkacore.client._client_request import ClientRequest
from kafkacore.protocol.generated.produce import ProduceResponse
from kafkacore.record import read_batches

OK, MESSAGE_TOO_LARGE, OUT_OF_ORDER, DUPLICATE, INVALID_EPOCH = 0, 10, 45, 46, 47
NOT_LEADER, NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, FORBIDDEN = 6, 19, 20, 29
#: Error codes returned although the batch was appended.
AFTER_APPEND = {NOT_ENOUGH_REPLICAS_AFTER_APPEND}
MODULUS = 2**31


class ProducerState:
    """State of a producer in a partition: epoch, and sequences and offsets of its last five batches."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[tuple[int, int, int]] = deque(maxlen=5)


class SequencedBrokers:
    """All brokers of a cluster, which share a log for each partition.

    Parameters
    ----------
    client:
        The client whose requests are processed.
    forgets_offsets:
        Whether the error for a duplicate has no offset, as if the batch were not among the last five.
    max_records:
        Number of records above which a batch is too large.
    """

    def __init__(self, client: HandClient, *, forgets_offsets: bool = False, max_records: int = 1000) -> None:
        self._client = client
        self._forgets_offsets = forgets_offsets
        self._max_records = max_records
        self.logs: dict[int, list[bytes]] = defaultdict(list)
        self._states: dict[tuple[int, int], ProducerState] = {}
        self._answers: dict[int, ProduceResponse] = {}

    def log(self) -> list[LogRecord]:
        return [
            LogRecord(partition, offset, value)
            for partition, values in self.logs.items()
            for offset, value in enumerate(values)
        ]

    def know(self, partition: int, producer_id: int, epoch: int, next_sequence: int) -> None:
        """Act as if the producer's record just before this sequence were in the log."""
        state = self._states[partition, producer_id] = ProducerState(epoch)
        before = (next_sequence - 1) % MODULUS
        state.batches.append((before, before, -1))

    # ---- Events ----------------------------------------------------------------------------------------

    def process(self, node_id: int, code: int = OK) -> bool:
        """Let a broker process the next request; ``code`` is the error it returns for a reason of its own."""
        for request in self._to(node_id):
            if id(request) not in self._answers:
                self._answers[id(request)] = self._produce(request, code)
                return True
        return False

    def answer(self, node_id: int) -> bool:
        """Deliver the next response of a broker, if any, in the order of the requests."""
        for request in self._to(node_id):
            answer = self._answers.pop(id(request), None)
            if answer is not None:
                self._client.end(request, message=answer)
                return True
            return False
        return False

    def cut(self, node_id: int, *, timed_out: bool = False) -> None:
        """Disconnect a broker, which loses the requests it has not read and the responses."""
        for request in self._to(node_id):
            self._answers.pop(id(request), None)
            self._client.end(request, disconnected=True, timed_out=timed_out)

    def _to(self, node_id: int) -> list[ClientRequest]:
        return [request for request in self._client.in_flight if request.node_id == node_id]

    # ---- The rules -------------------------------------------------------------------------------------

    def _produce(self, request: ClientRequest, code: int) -> ProduceResponse:
        answered = []
        for topic in request.request.topic_data:
            partitions = []
            for partition in topic.partition_data:
                found, base_offset = code, -1
                if code == OK or code in AFTER_APPEND:
                    found, base_offset = self._append(partition.index, partition.records)
                    if found == OK and code in AFTER_APPEND:
                        found, base_offset = code, -1
                partitions.append(
                    ProduceResponse.PartitionProduceResponse(
                        index=partition.index, error_code=found, base_offset=base_offset
                    )
                )
            answered.append(
                ProduceResponse.TopicProduceResponse(name=topic.name, partition_responses=partitions)
            )
        return ProduceResponse(responses=answered)

    def _append(self, partition: int, records: bytes) -> tuple[int, int]:
        (batch,) = read_batches(records)
        values = [record.value for record in batch]
        if len(values) > self._max_records:
            return MESSAGE_TOO_LARGE, -1
        first, last = batch.base_sequence, (batch.base_sequence + len(values) - 1) % MODULUS
        state = self._states.get((partition, batch.producer_id))
        if state is not None and state.epoch == batch.producer_epoch:
            for known_first, known_last, offset in state.batches:
                if (known_first, known_last) == (first, last):
                    return (DUPLICATE, -1) if self._forgets_offsets else (OK, offset)
        if state is not None:
            if batch.producer_epoch < state.epoch:
                return INVALID_EPOCH, -1
            is_new = batch.producer_epoch > state.epoch
            expected = 0 if is_new else (state.batches[-1][1] + 1) % MODULUS
            if first != expected:
                return OUT_OF_ORDER, -1
        if state is None or state.epoch != batch.producer_epoch:
            # A producer unknown to the partition may start at any sequence.
            state = self._states[partition, batch.producer_id] = ProducerState(batch.producer_epoch)
        log = self.logs[partition]
        state.batches.append((first, last, len(log)))
        log += [value or b"" for value in values]
        return OK, len(log) - len(values)
