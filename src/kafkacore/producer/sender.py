"""Send the accumulator's batches to the brokers, and pass on the responses.

``run_once`` is one iteration of the network thread. It sends produce requests and the control requests of the
ProducerManager, and passes responses to ``BatchCompletion``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from kafkacore.client import ClientRequest, ClientResponse, Cluster, Metadata, NetworkClient
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.clock import Clock
from kafkacore.errors import (
    KafkaError,
    NetworkExceptionError,
    RequestTimedOutError,
    UnknownError,
    UnsupportedVersionError,
)
from kafkacore.logs import logger_of
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._direct_sender import DirectSender
from kafkacore.producer.batch_completion import BatchCompletion
from kafkacore.producer.control_channel import ControlChannel
from kafkacore.producer.produce_request import (
    BatchesRequest,
    PartitionResponse,
    leader_hints,
    partition_responses,
    produce_request,
)
from kafkacore.producer.producer_manager import ProducerManager
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.sender_metrics import NoSenderMetrics, SenderMetrics

logger = logger_of("kafkacore.producer")


class Sender:
    """The work of the producer's network thread, like Apache Kafka's ``Sender``.

    Parameters
    ----------
    client, metadata, accumulator, clock:
        Shared with the other objects of the producer. The client runs callbacks inside its ``poll``, in the
        thread that calls ``run_once``. If the accumulator has a ProducerManager, each iteration first calls
        the manager's ``begin_turn``.
    acks:
        0, 1, or -1 for all in-sync replicas.
    retries:
        Maximum number of retries of a batch.
    request_timeout_ms:
        How long to wait for a response. The leader waits for its replicas for the same time.
    max_request_size:
        Maximum bytes of the batches in one request.
    guarantee_message_order:
        Whether to keep at most one batch of a partition in flight.
    retry_backoff_ms, retry_backoff_max_ms:
        Initial and maximum pause before a request of the manager is retried. The pause doubles each time.
    metrics:
        Counts requests and their outcomes.
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
        retry_backoff_ms: float = 100.0,
        retry_backoff_max_ms: float = 1000.0,
        metrics: SenderMetrics | None = None,
    ) -> None:
        self._client = client
        self._metadata = metadata
        self._accumulator = accumulator
        self._clock = clock
        self.acks = acks
        self.request_timeout_ms = request_timeout_ms
        self._max_request_size = max_request_size
        self._idempotence = accumulator.idempotence
        self._control: ControlChannel | None = None
        if self._idempotence is not None:
            backoff = ExponentialBackoff(clock, retry_backoff_ms, retry_backoff_max_ms)
            self._control = ControlChannel(client, self._idempotence, backoff, request_timeout_ms)
        self.metrics: SenderMetrics = metrics or NoSenderMetrics()
        #: Decides what happens to the batches in flight.
        self.outcomes = BatchCompletion(
            accumulator,
            clock,
            acks=acks,
            retries=retries,
            guarantee_message_order=guarantee_message_order,
            metrics=self.metrics,
        )
        #: Sends a batch that is the only waiting one; ``None`` if the settings do not allow it.
        self.direct: DirectSender | None = None
        #: The metadata with which the last iteration began.
        self.cluster: Cluster | None = None
        #: Ids of nodes that have waiting batches, but accept no further request until they have responded.
        self._busy_nodes: list[int] = []

    # ---- One iteration -----------------------------------------------------------------------------------

    def run_once(self, now_ms: float) -> None:
        """Send batches that are ready, fail batches that have expired, and wait in ``poll`` for an event."""
        self._accumulator.sender_wakeup.sender_runs()
        control_ms = math.inf
        if self._control is not None:
            self._settle(self._control.manager, now_ms)
            control_ms = self._control.turn(now_ms)
        timeout_ms = min(self._send_producer_data(now_ms), control_ms)
        if self._idempotence is not None:
            timeout_ms = min(timeout_ms, self._idempotence.next_turn_ms(now_ms))
        self._accumulator.sender_wakeup.sender_sleeps(now_ms + timeout_ms, self._busy_nodes)
        has_unsent = bool(self._accumulator.active) or (
            self._control is not None and self._control.has_unsent
        )
        self._client.poll(timeout_ms, now_ms, has_unsent=has_unsent)

    @property
    def has_work(self) -> bool:
        """Whether there are incomplete batches, or ``close()`` has to wait for the manager's requests."""
        return bool(
            self._accumulator.incomplete
            or self.outcomes.has_in_flight
            or (self._idempotence is not None and self._idempotence.has_work)
        )

    @property
    def is_idle(self) -> bool:
        """Whether the next iteration would only wait for an event or a deadline."""
        return (
            self.direct is not None
            and not self._accumulator.active
            and not self._metadata.update_requested
            and (self._control is None or not (self._control.is_busy or self._control.has_unsent))
            and (self._idempotence is None or self._idempotence.next_turn_ms(math.inf) > 0)
        )

    def begin_close(self, now_ms: float) -> None:
        """Begin to close the producer. An open transaction is aborted."""
        if self._idempotence is not None:
            self._idempotence.begin_close(now_ms)

    def abort(self) -> None:
        """Fail every incomplete batch, at the end of ``close()``."""
        if self._idempotence is not None:
            self._idempotence.close()
        closed = KafkaError("the producer was closed before this record was acknowledged")
        self.outcomes.abort(closed)

    def _settle(self, manager: ProducerManager, now_ms: float) -> None:
        """Call the manager's ``begin_turn``. If the manager has an error, fail the affected batches."""
        manager.begin_turn(now_ms, bool(self._accumulator.active))
        if manager.error is not None:
            self._accumulator.fail_appends(manager.error)
            self.outcomes.abort(manager.error)
        elif manager.abortable_error is not None:
            error, manager.abortable_error = manager.abortable_error, None
            if manager.is_transactional:
                # Still send batches that have sequence numbers, so that the numbers of the next transaction
                # have no gap.
                self.outcomes.abort_undrained(error)
            else:
                manager.reset_sequences()
                self.outcomes.abort(error)

    def _send_producer_data(self, now_ms: float) -> float:
        """Send batches. Return the milliseconds until the next call is due without a network event."""
        cluster = self._current_cluster()
        outcomes = self.outcomes
        if not self._accumulator.active:
            self._busy_nodes = []
            outcomes.expire(now_ms)
            return max(outcomes.next_expiry_ms() - now_ms, 0.0)
        if self.direct is not None:
            node_id = self.direct.send_waiting(now_ms)
            if node_id >= 0:
                is_busy = not self._client.is_below_in_flight_limit(node_id)
                self._busy_nodes = [node_id] if is_busy else []
                outcomes.expire(now_ms)
                return 0.0 if self._accumulator.active else max(outcomes.next_expiry_ms() - now_ms, 0.0)
        ready = self._accumulator.ready(cluster, now_ms)
        wanted = list(ready.nodes)
        if ready.unknown_leader_topics:
            self._request_leaders(ready.unknown_leader_topics)
        not_ready_ms = math.inf
        for node in list(ready.nodes.values()):
            if not self._client.ready(node, now_ms):
                del ready.nodes[node.node_id]
                not_ready_ms = min(not_ready_ms, self._client.poll_delay_ms(node, now_ms))
        drained = self._accumulator.drain(cluster, ready.nodes.values(), self._max_request_size, now_ms)
        has_drained = False
        for batches in drained.values():
            for batch in batches:
                has_drained = True
                outcomes.begin(batch)
        for batch, error in self._accumulator.take_unsealable():
            has_drained = True
            outcomes.fail(batch, KafkaError(f"failed to compress the batch: {error!r}"))
        outcomes.expire(now_ms)
        for node_id, batches in drained.items():
            self._send_produce_request(node_id, batches, cluster, now_ms)
        self._busy_nodes = [
            node_id for node_id in wanted if not self._client.is_below_in_flight_limit(node_id)
        ]
        if has_drained and self._accumulator.active and len(self._busy_nodes) < len(wanted):
            # There may be more batches for a node that is not busy, so do not wait.
            return 0.0
        return max(min(ready.next_check_delay_ms, not_ready_ms, outcomes.next_expiry_ms() - now_ms), 0.0)

    def _current_cluster(self) -> Cluster:
        cluster = self._metadata.fetch()
        if cluster is not self.cluster:
            self.cluster = cluster
            self._accumulator.update_cluster(cluster)
        return cluster

    def _request_leaders(self, topics: set[str]) -> None:
        for topic in topics:
            self._metadata.add_topic(topic)
        self._metadata.request_update()

    # ---- Requests ----------------------------------------------------------------------------------------

    def _send_produce_request(
        self, node_id: int, batches: list[ProducerBatch], cluster: Cluster, now_ms: float
    ) -> None:
        batches = [batch for batch in batches if not self.outcomes.ended_before_request(batch)]
        if not batches:
            return
        manager = self._idempotence
        request, max_version = produce_request(
            batches,
            cluster,
            self.acks,
            self.request_timeout_ms,
            None if manager is None else manager.transactional_id,
            None if manager is None else manager.produce_max_version,
        )

        def on_response(response: ClientResponse) -> None:
            self.handle_produce_response(batches, request, response)

        client_request: ClientRequest = self._client.new_client_request(
            node_id,
            request,
            now_ms,
            expect_response=self.acks != 0,
            request_timeout_ms=self.request_timeout_ms,
            callback=on_response,
            max_version=max_version,
        )
        self.metrics.sent(batches, now_ms)
        try:
            self._client.send(client_request, now_ms)
        except Exception as error:
            logger.exception("failed to send a produce request to node %d", node_id)
            for batch in batches:
                self.outcomes.not_sent(batch, KafkaError(f"failed to send the produce request: {error!r}"))

    # ---- Responses ---------------------------------------------------------------------------------------

    def handle_produce_response(
        self, batches: list[ProducerBatch], request: BatchesRequest, response: ClientResponse
    ) -> None:
        """Handle the response to the request with ``batches``, or the failure of that request."""
        now_ms = self._clock.monotonic_ms()
        responses: Mapping[tuple[str, int], PartitionResponse] = {}
        missing: KafkaError | None = None
        if response.version_mismatch is not None:
            missing = UnsupportedVersionError(str(response.version_mismatch))
        elif response.disconnected:
            missing = (
                RequestTimedOutError(
                    f"no response within request_timeout_ms={self.request_timeout_ms}; "
                    "the connection was closed"
                )
                if response.timed_out
                else NetworkExceptionError("the connection was closed before the response arrived")
            )
        elif response.message is not None:
            responses = partition_responses(response.message, request)
            leaders, nodes = leader_hints(responses, response.message)
            if leaders:
                self._metadata.update_partition_leadership(leaders, nodes)
        for batch in batches:
            if missing is None and self.acks == 0:
                partition_response = PartitionResponse()
            elif missing is None:
                partition_response = responses.get(batch.topic_partition) or PartitionResponse(
                    error=UnknownError("the produce response does not contain the partition of this batch")
                )
            else:
                # Each batch gets its own error object, which records whether the batch may be in the log.
                partition_response = PartitionResponse(error=type(missing)(*missing.args))
            if (
                partition_response.error is not None
                and partition_response.error.invalid_metadata
                and not batch.done
            ):
                self._metadata.request_update()
            self.outcomes.handle(batch, partition_response, now_ms)
