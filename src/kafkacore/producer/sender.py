"""What becomes of a batch: to the broker, and again if need be, until it is acknowledged or has failed.

Batches of the accumulator in, produce requests to the NetworkClient out, answers to the batches. One
``run_once`` is one turn of the network thread; it reads no clock that is not handed in. Does not know:
records, threads.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

from kafkacore.client import ClientRequest, ClientResponse, Cluster, Metadata, NetworkClient
from kafkacore.clock import Clock
from kafkacore.errors import (
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NetworkExceptionError,
    RecordListTooLargeError,
    RequestTimedOutError,
    UnknownError,
    UnsupportedVersionError,
)
from kafkacore.producer.batch import ProducerBatch
from kafkacore.producer.produce_outcome import may_be_written, produce_error
from kafkacore.producer.produce_request import (
    BatchesRequest,
    PartitionAnswer,
    answers_of,
    leader_hints,
    produce_request,
)
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.sender_metrics import SenderMetrics

log = logging.getLogger("kafkacore.producer")


class Sender:
    """Apache Kafka's ``Sender``, without idempotence.

    Parameters
    ----------
    client, metadata, accumulator, clock:
        What it works with. The client's callbacks run inside its ``poll``, on the thread of ``run_once``.
    acks:
        0, 1, or -1 for all in-sync replicas.
    retries:
        How often a batch is sent again at most.
    request_timeout_ms:
        Also how long the leader waits for its replicas.
    max_request_size:
        Bytes of the batches of one request.
    guarantee_message_order:
        Hold a partition back while a batch of it is on its way.
    metrics:
        Told of what is sent and what becomes of it.
    """

    def __init__(
        self,
        client: NetworkClient,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        clock: Clock,
        *,
        acks: int,
        retries: float,
        request_timeout_ms: int,
        max_request_size: int,
        guarantee_message_order: bool,
        metrics: SenderMetrics | None = None,
    ) -> None:
        self._client = client
        self._metadata = metadata
        self._accumulator = accumulator
        self._clock = clock
        self._acks = acks
        self._retries = retries
        self._request_timeout_ms = request_timeout_ms
        self._max_request_size = max_request_size
        self._guarantee_message_order = guarantee_message_order
        #: Batches on their way; in the order in which they were sent.
        self._in_flight: dict[ProducerBatch, None] = {}
        #: None of those expires earlier.
        self._no_expiry_before_ms = math.inf
        self._cluster: Cluster | None = None
        self.metrics = metrics or SenderMetrics()

    # ---- One turn ----------------------------------------------------------------------------------------

    def run_once(self, now_ms: float) -> None:
        """Send what is ready, fail what has expired, and wait in ``poll`` for the next thing to happen."""
        self._accumulator.sender_looks()
        timeout_ms = self._send_producer_data(now_ms)
        self._accumulator.sender_sleeps(now_ms + timeout_ms)
        self._client.poll(timeout_ms, now_ms)

    @property
    def has_work(self) -> bool:
        """Whether a batch is waiting or on its way."""
        return bool(self._accumulator.incomplete or self._in_flight)

    def abort(self, *, unsent_only: bool = False) -> None:
        """Fail what is incomplete, because the close does not wait for it."""

        def error_of(batch: ProducerBatch) -> KafkaError:
            written = batch.possibly_persisted or batch.in_flight
            self.metrics.failed(batch)
            error = KafkaError("the producer was closed before this record was acknowledged")
            return produce_error(error, written)

        self._accumulator.abort(error_of, unsent_only=unsent_only)

    def _send_producer_data(self, now_ms: float) -> float:
        """Milliseconds for which there is nothing to do but wait for the network."""
        cluster = self._current_cluster()
        if not self._accumulator.active:
            # A turn that only looks for answers: every other one, where requests follow each other closely.
            self._expire(now_ms)
            return max(self._next_expiry_ms() - now_ms, 0.0)
        ready = self._accumulator.ready(cluster, now_ms)
        if ready.unknown_leader_topics:
            self._ask_for_leaders(ready.unknown_leader_topics)
        not_ready_ms = math.inf
        for node in list(ready.nodes.values()):
            if not self._client.ready(node, now_ms):
                del ready.nodes[node.node_id]
                not_ready_ms = min(not_ready_ms, self._client.poll_delay_ms(node, now_ms))
        drained = self._accumulator.drain(cluster, ready.nodes.values(), self._max_request_size, now_ms)
        for batch, error in self._accumulator.take_unsealable():
            self._fail(batch, KafkaError(f"the batch could not be made: {error!r}"))
        for batches in drained.values():
            for batch in batches:
                batch.in_flight = True
                self._in_flight[batch] = None
                deadline_ms = self._accumulator.deadline_ms(batch)
                if deadline_ms < self._no_expiry_before_ms:
                    self._no_expiry_before_ms = deadline_ms
                if self._guarantee_message_order:
                    self._accumulator.mute(batch.topic_partition, True)
        self._expire(now_ms)
        for node_id, batches in drained.items():
            self._send_produce_request(node_id, batches, cluster, now_ms)
        if ready.nodes:
            # There may be more for them, or room in their connections, at once.
            return 0.0
        return max(min(ready.next_check_delay_ms, not_ready_ms, self._next_expiry_ms() - now_ms), 0.0)

    def _current_cluster(self) -> Cluster:
        cluster = self._metadata.fetch()
        if cluster is not self._cluster:
            self._cluster = cluster
            self._accumulator.update_cluster(cluster)
        return cluster

    def _ask_for_leaders(self, topics: set[str]) -> None:
        for topic in topics:
            self._metadata.add_topic(topic)
        self._metadata.request_update()

    # ---- Expiry ------------------------------------------------------------------------------------------

    def _expire(self, now_ms: float) -> None:
        if now_ms >= self._accumulator.no_expiry_before_ms:
            for batch in self._accumulator.expired_batches(now_ms):
                self._fail(batch, self._expired(batch, now_ms))
        if now_ms < self._no_expiry_before_ms:
            return
        for batch in list(self._in_flight):
            if not batch.done and self._accumulator.deadline_ms(batch) <= now_ms:
                # Its memory stays taken until the request has ended: the socket may hold half of it.
                batch.possibly_persisted = True
                self._fail(batch, self._expired(batch, now_ms))
        in_flight = (self._accumulator.deadline_ms(batch) for batch in self._in_flight if not batch.done)
        self._no_expiry_before_ms = min(in_flight, default=math.inf)

    def _expired(self, batch: ProducerBatch, now_ms: float) -> KafkaTimeoutError:
        return KafkaTimeoutError(
            f"{batch.record_count} record(s) for {batch.topic_partition} expired: not acknowledged "
            f"{now_ms - batch.created_ms:.0f} ms (delivery_timeout_ms) after the first of them, "
            f"and {batch.attempts} retries"
        )

    def _next_expiry_ms(self) -> float:
        return min(self._no_expiry_before_ms, self._accumulator.no_expiry_before_ms)

    # ---- Requests ----------------------------------------------------------------------------------------

    def _send_produce_request(
        self, node_id: int, batches: list[ProducerBatch], cluster: Cluster, now_ms: float
    ) -> None:
        batches = [batch for batch in batches if not self._ended_before_request(batch)]
        if not batches:
            return
        request, max_version = produce_request(batches, cluster, self._acks, self._request_timeout_ms)

        def on_response(response: ClientResponse) -> None:
            self._handle_produce_response(batches, request, response)

        client_request: ClientRequest = self._client.new_client_request(
            node_id,
            request,
            now_ms,
            expect_response=self._acks != 0,
            request_timeout_ms=self._request_timeout_ms,
            callback=on_response,
            max_version=max_version,
        )
        self.metrics.sent(batches, now_ms)
        try:
            self._client.send(client_request, now_ms)
        except Exception as error:
            log.exception("a produce request to node %d could not be made", node_id)
            failure = KafkaError(f"the produce request could not be made: {error!r}")
            for batch in batches:
                self._request_ended(batch)
                self._fail(batch, failure)

    def _ended_before_request(self, batch: ProducerBatch) -> bool:
        if batch.done:
            self._request_ended(batch)
        return batch.done

    def _handle_produce_response(
        self, batches: list[ProducerBatch], request: BatchesRequest, response: ClientResponse
    ) -> None:
        """The request of ``batches`` has ended: answered, or never to be."""
        now_ms = self._clock.monotonic_ms()
        answers: Mapping[tuple[str, int], PartitionAnswer] = {}
        missing: KafkaError | None = None
        if response.version_mismatch is not None:
            missing = UnsupportedVersionError(str(response.version_mismatch))
        elif response.disconnected:
            missing = (
                RequestTimedOutError(f"no answer within {self._request_timeout_ms} ms, connection closed")
                if response.timed_out
                else NetworkExceptionError("the connection was closed before the answer came")
            )
        elif response.message is not None:
            answers = answers_of(response.message, request)
            leaders, nodes = leader_hints(answers, response.message)
            if leaders:
                self._metadata.update_partition_leadership(leaders, nodes)
        for batch in batches:
            if missing is None and self._acks == 0:
                answer = PartitionAnswer()
            elif missing is None:
                answer = answers.get(batch.topic_partition) or PartitionAnswer(
                    error=UnknownError("the broker's answer leaves the partition out")
                )
            else:
                answer = PartitionAnswer(error=missing)
            try:
                self._complete_batch(batch, answer, now_ms)
            except Exception as failure:
                # A bug of ours with one batch shall leave no future of any without an outcome.
                log.exception("the answer for %s could not be worked in", batch)
                if not batch.done:
                    self._fail(batch, KafkaError(f"the broker's answer could not be worked in: {failure!r}"))

    def _complete_batch(self, batch: ProducerBatch, answer: PartitionAnswer, now_ms: float) -> None:
        error = answer.error
        if batch.done:
            # Expired or aborted meanwhile: the answer comes too late, but the memory is free now.
            self._request_ended(batch)
            return
        if error is None:
            self._request_ended(batch, release=False)
            self.metrics.acknowledged(batch)
            self._accumulator.release(batch)
            batch.complete(answer.base_offset, answer.log_append_time_ms)
            # Last, for a flush that begins meanwhile has to find it.
            self._accumulator.incomplete.pop(batch, None)
            return
        batch.possibly_persisted |= may_be_written(error, self._acks)
        if error.invalid_metadata:
            self._metadata.request_update()
        self._request_ended(batch, release=False)
        if isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError) and batch.record_count > 1:
            log.warning("%s is too large for its broker (%s) and is sent in halves", batch, error)
            self.metrics.split(batch)
            self._accumulator.split_and_reenqueue(batch)
        elif self._can_retry(batch, error, now_ms):
            log.debug("%s is sent again: %s", batch, error)
            self.metrics.retried(batch)
            self._accumulator.reenqueue(batch, now_ms)
        else:
            self._fail(batch, error, answer.record_errors)

    def _can_retry(self, batch: ProducerBatch, error: KafkaError, now_ms: float) -> bool:
        return (
            error.retriable
            and batch.attempts < self._retries
            and self._accumulator.deadline_ms(batch) > now_ms
        )

    def _request_ended(self, batch: ProducerBatch, *, release: bool = True) -> None:
        self._in_flight.pop(batch, None)
        batch.in_flight = False
        if self._guarantee_message_order:
            self._accumulator.mute(batch.topic_partition, False)
        if release:
            self._accumulator.release(batch)

    def _fail(
        self, batch: ProducerBatch, error: KafkaError, record_errors: dict[int, KafkaError] | None = None
    ) -> None:
        self.metrics.failed(batch)
        if not batch.in_flight:
            self._accumulator.release(batch)
        for record_error in (record_errors or {}).values():
            produce_error(record_error, batch.possibly_persisted)
        batch.fail(produce_error(error, batch.possibly_persisted), record_errors or None)
        self._accumulator.incomplete.pop(batch, None)
