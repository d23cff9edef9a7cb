"""A NetworkClient that a test answers by hand: no sockets, no time of its own.

Stands where the producer's Sender expects ``kafkacore.client.NetworkClient`` and ``Metadata``. What the
Sender sends is kept in order; :meth:`respond` and :meth:`disconnect` end the oldest request to a node at
the next ``poll``.
"""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

from model.producer_cluster import NODES, TableCluster

from kafkacore.client.requests import ClientRequest, ClientResponse
from kafkacore.errors import UnsupportedVersionError
from kafkacore.producer.produce_request import BatchesRequest, BatchesResponse
from kafkacore.protocol import Request, RequestBuilder
from kafkacore.protocol.generated.produce import ProduceRequest, ProduceResponse
from kafkacore.structs import Node, TopicPartition
from kafkacore.testing import VirtualClock

OK = 0


def generated_request(request: BatchesRequest) -> ProduceRequest:
    """The same request as a generated message, with the bytes of now: a retried batch may be renumbered."""
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
    """Metadata that are what the test says, and count what they are asked."""

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
    """Requests in, the answers of the test out."""

    def __init__(self, clock: VirtualClock, max_in_flight: int = 5) -> None:
        self.clock = clock
        self.max_in_flight = max_in_flight
        self.in_flight: list[ClientRequest] = []
        self.sent: list[ClientRequest] = []
        #: Node that no request may go to now → for how long that is known to last.
        self.unready: dict[int, float] = {}
        self.polls: list[float] = []
        self.wakeups = 0
        self.is_closed = False
        #: Of them, those that carry no records: what the producer asks beside them.
        self.asked: list[ClientRequest] = []
        #: Nodes to which no connection can be made.
        self.failed: set[int] = set()
        #: Responses that the next poll brings.
        self.ended: list[ClientResponse] = []

    # ---- What the Sender calls ---------------------------------------------------------------------------

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

    def poll(self, timeout_ms: float, now_ms: float) -> list[ClientResponse]:
        self.polls.append(timeout_ms)
        ended, self.ended = self.ended, []
        for response in ended:
            response.on_complete()
        return ended

    def wakeup(self) -> None:
        self.wakeups += 1

    def close(self) -> None:
        self.is_closed = True

    # ---- What the test says ------------------------------------------------------------------------------

    def answer(self, **how: Any) -> None:
        """End the oldest request that carries no records: ``message=…``, ``disconnected=True`` and so on."""
        self.ended.append(ClientResponse(self.asked.pop(0), self.clock.monotonic_ms(), **how))

    def end(self, request: ClientRequest, **how: Any) -> None:
        """End a produce request; a generated response becomes one as the Sender decodes it."""
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
        """Answer the ``at``-th request in flight: an error code for all partitions, or one for each."""
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
        """The connection of everything in flight is gone."""
        for request in list(self.in_flight):
            self.end(request, disconnected=True, timed_out=timed_out)

    def refuse_version(self) -> None:
        """The broker does not know the oldest request in any version that we do."""
        self.end(self.in_flight[0], version_mismatch=UnsupportedVersionError("Produce 3 to 13, broker has 0"))
