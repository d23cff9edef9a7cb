"""Apache Kafka and our broker give the same responses on Fetch sessions, limits and leader epochs."""

from __future__ import annotations

import uuid
from typing import Any
from uuid import UUID

import pytest
from eventually import BUDGET_S
from model.raw_line import Line
from peers.apache_kafka import ApacheKafka

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.record import read_batches
from kafkacore.testing.embedded_broker import EmbeddedBroker
from kafkacore.wire import Uuid

FIRST_BY_ID = 13
UNKNOWN_ID = UUID(int=4711)
INITIAL, FINAL = 0, -1
VALUE = b"x" * 100
#: Versions that add something; the versions in between have the same content.
VERSIONS = [4, 7, 9, 11, 12, 13, 16, 18]


class Reader:
    """A topic of three partitions on one broker, and Fetch requests of one version for it."""

    def __init__(self, servers: str, version: int, connection: Line) -> None:
        self.servers, self.version, self._connection = servers, version, connection
        self.topic = f"answers-{uuid.uuid4().hex[:8]}"
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic(self.topic, 3, 1)])
        self.write(*range(3))
        named = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=self.topic)])
        self.topic_id = connection.ask(named, 12).topics[0].topic_id
        self.session_id = 0

    def write(self, *partitions: int, count: int = 1) -> None:
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for partition in partitions:
                for _ in range(count):
                    producer.send(self.topic, VALUE, partition=partition).get(BUDGET_S)

    def _named(self, topic: str | UUID | None) -> dict[str, Any]:
        if self.version >= FIRST_BY_ID:
            return {"topic_id": topic if isinstance(topic, UUID | Uuid) else self.topic_id}
        return {"topic": topic if isinstance(topic, str) else self.topic}

    def fetch(
        self,
        epoch: int,
        *wanted: tuple[int, int],
        forget: tuple[int, ...] = (),
        session_id: int | None = None,
        topic: str | UUID | None = None,
        partition: dict[str, Any] | None = None,
        **more: Any,
    ) -> Any:
        """Send a Fetch request, and return the response without the fields that differ between brokers."""
        own_session = {} if self.version < 7 else {"session_id": self.session_id, "session_epoch": epoch}
        if session_id is not None:
            own_session["session_id"] = session_id
        request = FetchRequest(
            **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **own_session, **more},
            topics=[
                FetchRequest.FetchTopic(
                    **self._named(topic),
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=number,
                            fetch_offset=offset,
                            **{"partition_max_bytes": 1 << 20, **(partition or {})},
                        )
                        for number, offset in wanted
                    ],
                )
            ]
            if wanted
            else [],
            forgotten_topics_data=[FetchRequest.ForgottenTopic(**self._named(None), partitions=list(forget))]
            if forget
            else [],
        )
        answer = self._connection.ask(request, self.version)
        if epoch == INITIAL and session_id is None:
            self.session_id = answer.session_id
        return (
            answer.error_code,
            answer.session_id == self.session_id,
            answer.session_id == 0,
            answer.throttle_time_ms,
            [self._comparable(data) for topic in answer.responses for data in topic.partitions],
        )

    @staticmethod
    def _comparable(data: Any) -> Any:
        offsets = [record.offset for batch in read_batches(data.records or b"") for record in batch]
        return (
            data.partition_index,
            data.error_code,
            data.high_watermark,
            data.last_stable_offset,
            data.log_start_offset,
            data.aborted_transactions,
            data.preferred_read_replica,
            (data.diverging_epoch.epoch, data.diverging_epoch.end_offset),
            data.current_leader.leader_epoch,
            offsets,
        )


def sessions(reader: Reader) -> list[Any]:
    """Return the responses to all requests of a session."""
    responses = [reader.fetch(INITIAL, (0, 1), (1, 0), (2, 1))]
    responses.append(reader.fetch(1, (1, 1)))
    responses.append(reader.fetch(2))
    reader.write(2)
    responses.append(reader.fetch(3))
    responses.append(reader.fetch(4))
    responses.append(reader.fetch(5, (2, 2)))
    responses.append(reader.fetch(6))
    responses.append(reader.fetch(7, (0, 77)))
    responses.append(reader.fetch(8))
    responses.append(reader.fetch(9, (0, 1)))
    responses.append(reader.fetch(10, (9, 0)))
    responses.append(reader.fetch(11, forget=(9, 1)))
    reader.write(1)
    responses.append(reader.fetch(12))
    responses.append(reader.fetch(12))
    responses.append(reader.fetch(14))
    responses.append(reader.fetch(13, session_id=1))
    responses.append(reader.fetch(13, forget=(0, 2)))
    responses.append(reader.fetch(14))
    responses.append(reader.fetch(FINAL, (0, 0), session_id=0))
    return responses


def one_by_one(reader: Reader) -> list[Any]:
    """Check limits, epochs and missing topics and partitions, without a session."""
    reader.write(0, 1, 2, count=3)
    whole = ((0, 0), (1, 2), (2, 4))
    responses = [reader.fetch(FINAL, *whole, max_bytes=size) for size in (1, 200, 400, 1 << 20)]
    for size in (0, 1, 400):
        responses.append(reader.fetch(FINAL, *whole, partition={"partition_max_bytes": size}))
    responses.append(reader.fetch(FINAL, *whole, isolation_level=1))
    responses.append(reader.fetch(FINAL, (0, 5), (1, -1), (7, 0), (2, 0)))
    responses.append(reader.fetch(FINAL, (0, 0), topic=UNKNOWN_ID))
    responses.append(reader.fetch(FINAL, (0, 0), topic="unknown"))
    responses.append(reader.fetch(FINAL, (0, 0), (0, 3)))
    responses.append(reader.fetch(FINAL))
    if reader.version >= 9:
        for epoch in (0, 1):
            responses.append(reader.fetch(FINAL, (0, 1), partition={"current_leader_epoch": epoch}))
    if reader.version >= 12:
        for epoch, offset in ((0, 2), (0, 4), (0, 9), (3, 1)):
            responses.append(reader.fetch(FINAL, (0, offset), partition={"last_fetched_epoch": epoch}))
    return responses


@pytest.mark.kafka(
    "FetchSessionTest.testCachedLeaderEpoch",
    "FetchSessionTest.testFetchRequests",
    "FetchSessionTest.testIncrementalFetchSession",
)
@pytest.mark.parametrize("version", VERSIONS)
def test_answers_are_those_of_apache_kafka(
    apache_kafka: ApacheKafka, our_broker: EmbeddedBroker, version: int
) -> None:
    answers = []
    for servers in (apache_kafka.bootstrap_servers, our_broker.bootstrap_servers):
        with Line(servers) as connection:
            reader = Reader(servers, version, connection)
            answers.append(one_by_one(reader) + (sessions(reader) if version >= 7 else []))
    theirs, ours = answers
    assert len(theirs) == len(ours)
    for number, (their, our) in enumerate(zip(theirs, ours, strict=True)):
        assert our == their, f"answer {number}"
