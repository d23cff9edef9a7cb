"""Measure the cost of a commit without the network: encode the request, then decode and check the response.

    python -m pytest bench/micro/commits.py --benchmark-enable

The peer is kafka-python's code for the same, with OffsetCommit version 8, the last version that it supports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import kafka.errors
import pytest
from kafka.protocol.consumer import OffsetCommitRequest as TheirRequest
from kafka.protocol.consumer import OffsetCommitResponse as TheirResponse

from kafkacore.client import Cluster
from kafkacore.consumer.group.generation import Generation
from kafkacore.consumer.group.offset_requests import Topics, commit_error, commit_request
from kafkacore.protocol.generated.offset_commit import OffsetCommitResponse
from kafkacore.structs import OffsetAndMetadata, TopicPartition
from kafkacore.wire import Cursor, Writer

VERSION = 8
PARTITIONS_OF_A_TOPIC = 50


def offsets_of(partitions: int) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        TopicPartition(f"topic-{number // PARTITIONS_OF_A_TOPIC}", number % PARTITIONS_OF_A_TOPIC): (
            OffsetAndMetadata(1_000_000 + number, "", 3)
        )
        for number in range(partitions)
    }


def answer_to(offsets: dict[TopicPartition, OffsetAndMetadata]) -> bytes:
    """Return the bytes of a response in which every offset is committed."""
    by_topic = defaultdict(list)
    for tp in offsets:
        by_topic[tp.topic].append(
            OffsetCommitResponse.OffsetCommitResponsePartition(partition_index=tp.partition)
        )
    writer = Writer()
    OffsetCommitResponse(
        topics=[
            OffsetCommitResponse.OffsetCommitResponseTopic(name=name, partitions=partitions)
            for name, partitions in by_topic.items()
        ]
    ).encode(writer, VERSION)
    return b"".join(writer.pieces())


def kafkacore_commit(offsets: dict[TopicPartition, OffsetAndMetadata], answer: bytes) -> Callable[[], Any]:
    cluster = Cluster()

    def commit() -> Any:
        topics = Topics(offsets, cluster)
        request = commit_request("group", Generation(7, "member"), None, offsets, topics)
        writer = Writer()
        request.encode(writer, VERSION)
        assert commit_error(OffsetCommitResponse.decode(Cursor(answer), VERSION), offsets, topics) is None
        return writer.pieces()

    return commit


def kafka_python_commit(offsets: dict[TopicPartition, OffsetAndMetadata], answer: bytes) -> Callable[[], Any]:
    """Do what kafka-python's ``_send_offset_commit_request`` and ``_handle_offset_commit_response`` do."""
    topic_class = TheirRequest.OffsetCommitRequestTopic
    partition_class = topic_class.OffsetCommitRequestPartition

    def commit() -> Any:
        by_topic: dict[str, dict[int, OffsetAndMetadata]] = defaultdict(dict)
        for tp, committed in offsets.items():
            by_topic[tp.topic][tp.partition] = committed
        request = TheirRequest(
            max_version=VERSION,
            group_id="group",
            generation_id_or_member_epoch=7,
            member_id="member",
            group_instance_id=None,
            topics=[
                topic_class(
                    name=topic,
                    partitions=[
                        partition_class(
                            partition_index=partition,
                            committed_offset=committed.offset,
                            committed_leader_epoch=committed.leader_epoch,
                            committed_metadata=committed.metadata,
                        )
                        for partition, committed in partitions.items()
                    ],
                )
                for topic, partitions in by_topic.items()
            ],
        )
        written = request.encode(version=VERSION)
        response = TheirResponse.decode(answer, version=VERSION)
        for topic, partitions in response.topics:
            for partition, error_code in partitions:
                assert offsets[TopicPartition(topic, partition)]
                assert kafka.errors.for_code(error_code) is kafka.errors.NoError
        return written

    return commit


@pytest.mark.parametrize("contender", ["kafkacore", "kafka-python"])
@pytest.mark.parametrize("partitions", [1, 1000])
def test_commit(benchmark: Any, request: pytest.FixtureRequest, contender: str, partitions: int) -> None:
    if request.config.getoption("--small"):
        partitions = min(partitions, 10)
    benchmark.group = f"commit of {partitions} partitions"
    offsets = offsets_of(partitions)
    contenders = {"kafkacore": kafkacore_commit, "kafka-python": kafka_python_commit}
    benchmark(contenders[contender](offsets, answer_to(offsets)))
    if benchmark.stats is not None:
        benchmark.extra_info["partitions/s"] = round(partitions / benchmark.stats.stats.min)
