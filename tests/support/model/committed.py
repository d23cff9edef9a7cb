"""A model of the committed offsets of one group, shared by models of coordinators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkacore.structs import OffsetAndMetadata, TopicPartition


def topic_id(name: str) -> UUID:
    return UUID(bytes=name.encode().rjust(16, b"\1")[-16:])


class ModelOffsets:
    """``topics`` returns the names of all topics and ``id_of`` their ids. ``committed`` has the offsets."""

    def __init__(self, topics: Callable[[], Iterable[str]], id_of: Callable[[str], UUID] = topic_id) -> None:
        self._topics = topics
        self._id_of = id_of
        self.committed: dict[TopicPartition, OffsetAndMetadata] = {}

    def _name(self, topic: Any) -> str:
        if topic.name:
            return str(topic.name)
        return next(name for name in self._topics() if self._id_of(name) == topic.topic_id)

    def commit(self, request: OffsetCommitRequest, error: int = 0) -> OffsetCommitResponse:
        """Store the committed offsets unless there is an ``error``."""
        response = OffsetCommitResponse()
        for topic in request.topics:
            answered = OffsetCommitResponse.OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id
            )
            response.topics.append(answered)
            for part in topic.partitions:
                answer = OffsetCommitResponse.OffsetCommitResponsePartition
                answered.partitions.append(answer(partition_index=part.partition_index, error_code=error))
                if not error:
                    place = TopicPartition(self._name(topic), part.partition_index)
                    self.committed[place] = OffsetAndMetadata(
                        part.committed_offset, part.committed_metadata or "", part.committed_leader_epoch
                    )
        return response

    def fetch(self, request: OffsetFetchRequest, error: int = 0, group_error: int = 0) -> OffsetFetchResponse:
        """Return the committed offsets in the form of the request. ``error`` applies to every partition."""
        if not request.groups:
            topic_class = OffsetFetchResponse.OffsetFetchResponseTopic
            part_class = OffsetFetchResponse.OffsetFetchResponsePartition
            return OffsetFetchResponse(
                topics=[
                    topic_class(
                        name=topic.name,
                        partitions=[
                            part_class(**self._offset(topic, each, error)) for each in topic.partition_indexes
                        ],
                    )
                    for topic in request.topics or ()
                ],
                error_code=group_error,
            )
        asked = request.groups[0]
        group = OffsetFetchResponse.OffsetFetchResponseGroup(group_id=asked.group_id, error_code=group_error)
        for topic in (asked.topics or ()) if not group_error else ():
            partitions = [
                OffsetFetchResponse.OffsetFetchResponsePartitions(**self._offset(topic, each, error))
                for each in topic.partition_indexes
            ]
            group.topics.append(
                OffsetFetchResponse.OffsetFetchResponseTopics(
                    name=topic.name, topic_id=topic.topic_id, partitions=partitions
                )
            )
        return OffsetFetchResponse(groups=[group])

    def _offset(self, topic: Any, number: int, error: int) -> dict[str, Any]:
        found = self.committed.get(TopicPartition(self._name(topic), number))
        if error or found is None:
            return {"partition_index": number, "committed_offset": -1, "error_code": error}
        return {
            "partition_index": number,
            "committed_offset": found.offset,
            "metadata": found.metadata,
            "committed_leader_epoch": found.leader_epoch,
        }
