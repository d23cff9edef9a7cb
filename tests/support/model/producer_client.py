"""A stand-in for NetworkClient that a test answers by hand, without sockets or a clock of its own.

It replaces ``kafkacore.client.NetworkClient`` and ``Metadata`` for the producer's Sender. Sent requests are
kept in order. :meth:`respond` and :meth:`disconnect` complete the oldest request to a node at the next
``poll``.
"""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

from model.producer_cluster import NODES, TableCluster

from kafkacore.client._client_request import ClientRequest
from kafkacore.client.requests import ClientResponse
from kafkacore.errors import UnsupportedVersionError
from kafkacore.producer.produce_request import BatchesRequest, BatchesResponse
from kafkacore.protocol import Request, RequestBuilder
from kafkacore.protocol.generated.produce import ProduceRequest, ProduceResponse
from kafkacore.structs import Node, TopicPartition
from kafkacore.testing import VirtualClock

OK = 0


def generated_request(request: BatchesRequest) -> ProduceRequest:
    """Return the request as a generated message with its current bytes; a retried batch may be renumbered."""
    return ProduceRequest(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                topic_id=topic_id,
                partition_data=[
                    ProduceRequest.PartitionProduceData(
                        index=batch.topic_partition.partition, records=bytes(batch.payload)
                    )
                    for batch in batches
                ],
            )
            for topic, topic_id, batches in request.topics
        ],
    )


class TableMetadata:
    """Metadata with the content that a test sets, and a counter of update requests."""

    def __init__(self, cluster: TableCluster) -> None:
        self.cluster = cluster
        self.updates_requested = 0
        self.topics: set[str] = set()
        self.hints: dict[TopicPartition, tuple[int, int]] = {}
        self.is_closed = False

    def fetch(self) -> TableCluster:
        return self.cluster

    def request_update(self) -> int:
        self.updates_requested += 1
        return 1

    def add_topic(self, topic: str) -> None:
        self.topics.add(topic)

    def update_partition_leadership(
        self, leaders: dict[TopicPartition, tuple[int, int]], nodes: list[Node]
    ) -> set[TopicPartition]:
        self.hints |= leaders
        return set(leaders)

    def close(self) -> None:
        self.is_closed = True


class HandClient:
    """Records the requests, and returns the responses that the test sets."""

    def __init__(self, clock: VirtualClock, max_in_flight: int = 5) -> None:
        self.clock = clock
        self.max_in_flight = max_in_flight
        self.in_flight: list[ClientRequest] = []
        self.sent: list[ClientRequest] = []
        #: Nodes that no request may be sent to now → how long that is known to last.
        self.unready: dict[int, float] = {}
        self.polls: list[float] = []
        #: The last poll's argument of this name.
        self.has_unsent = False
        self.wakeups = 0
        self.is_closed = False
        #: Those of the requests that carry no records.
        self.asked: list[ClientRequest] = []
        #: Nodes to which every connection fails.
        self.failed: set[int] = set()
        #: Responses that the next poll returns.
        self.ended: list[ClientResponse] = []

    # ---- Called by the Sender ----------------------------------------------------------------------------

    def ready(self, node: Node, now_ms: float) -> bool:
        in_flight = sum(request.node_id == node.node_id for request in self.in_flight)
        is_there = node.node_id not in self.unready and node.node_id not in self.failed
        return is_there and in_flight < self.max_in_flight

    def least_loaded_node(self, now_ms: float) -> Node | None:
        return min((node for node in NODES.values() if self.ready(node, now_ms)), default=None)

    def connection_failed(self, node: Node) -> bool:
        return node.node_id in self.failed

    def is_below_in_flight_limit(self, node_id: int) -> bool:
        return sum(request.node_id == node_id for request in self.in_flight) < self.max_in_flight

    def poll_delay_ms(self, node: Node, now_ms: float) -> float:
        return self.unready.get(node.node_id, math.inf)

    def new_client_request(
        self, node_id: int, request: Request[Any], now_ms: float, **more: Any
    ) -> ClientRequest:
        if isinstance(request, RequestBuilder):
            request = request.build(request.request_class.MAX_VERSION)
        return ClientRequest(node_id, request, len(self.sent) + len(self.asked), now_ms, **more)

    def send(self, request: ClientRequest, now_ms: float) -> None:
        assert self.ready(Node(request.node_id, "", 0), now_ms)
        if not isinstance(request.request, BatchesRequest):
            self.asked.append(request)
            return
        self.in_flight.append(request)
        self.sent.append(request)
        request.request = generated_request(request.request)
        if not request.expect_response:
            self.end(request)

    def poll(self, timeout_ms: float, now_ms: float, *, has_unsent: bool = True) -> list[ClientResponse]:
        self.polls.append(timeout_ms)
        self.has_unsent = has_unsent
        ended, self.ended = self.ended, []
        for response in ended:
            response.on_complete()
        return ended

    def wakeup(self) -> None:
        self.wakeups += 1

    def close(self) -> None:
        self.is_closed = True

    # ---- Called by the test ------------------------------------------------------------------------------

    def answer(self, **how: Any) -> None:
        """Complete the oldest request without records: ``message=…``, ``disconnected=True`` and so on."""
        self.ended.append(ClientResponse(self.asked.pop(0), self.clock.monotonic_ms(), **how))

    def end(self, request: ClientRequest, **how: Any) -> None:
        """Complete a produce request. A generated response is converted to the Sender's type."""
        self.in_flight.remove(request)
        message = how.get("message")
        if message is not None:
            how["message"] = BatchesResponse([], message, message.throttle_time_ms)
        self.ended.append(ClientResponse(request, self.clock.monotonic_ms(), **how))

    def respond(
        self,
        answers: dict[TopicPartition, int] | int = OK,
        *,
        base_offset: int = 0,
        at: int = 0,
        by_id: bool = False,
        **more: Any,
    ) -> None:
        """Answer the ``at``-th request in flight with an error code for all partitions, or one for each."""
        request = self.in_flight[at]
        topics = []
        for topic in request.request.topic_data:
            partitions = []
            for partition in topic.partition_data:
                tp = TopicPartition(topic.name, partition.index)
                if isinstance(answers, dict) and tp not in answers:
                    continue
                code = answers if isinstance(answers, int) else answers[tp]
                partitions.append(
                    ProduceResponse.PartitionProduceResponse(
                        index=partition.index,
                        error_code=code,
                        base_offset=-1 if code else base_offset,
                        **more,
                    )
                )
            topics.append(
                ProduceResponse.TopicProduceResponse(
                    name="" if by_id else topic.name,
                    topic_id=topic.topic_id if by_id else UUID(int=0),
                    partition_responses=partitions,
                )
            )
        self.end(request, message=ProduceResponse(responses=topics))

    def disconnect(self, *, timed_out: bool = False) -> None:
        """Disconnect the node, which fails every request in flight."""
        for request in list(self.in_flight):
            self.end(request, disconnected=True, timed_out=timed_out)

    def refuse_version(self) -> None:
        """Fail the oldest request because the broker supports no version that we support."""
        self.end(self.in_flight[0], version_mismatch=UnsupportedVersionError("Produce 3 to 13, broker has 0"))
