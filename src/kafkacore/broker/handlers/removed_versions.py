"""Converts between current messages and the versions of Fetch and ListOffsets that Kafka 4 has removed.

Clients of Kafka 0.8 to 0.10 use Fetch versions 0 to 3 and ListOffsets version 0.
"""

from __future__ import annotations

from kafkacore.broker.replica._fetch_call import (
    FetchAnswer,
    FetchCall,
    FetchPartition,
    FetchTopic,
    encode_fetch_answer,
    read_fetch,
)
from kafkacore.protocol import ZERO_UUID, encode_response
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkacore.protocol.generated.old_fetch import OldFetchRequest, OldFetchResponse
from kafkacore.protocol.generated.old_list_offsets import OldListOffsetsRequest, OldListOffsetsResponse
from kafkacore.wire import Cursor, Writer


def decode_fetch(cursor: Cursor, version: int) -> FetchCall:
    """Decode a FetchRequest of any version."""
    if version >= FetchRequest.MIN_VERSION:
        return read_fetch(cursor, version)
    old = OldFetchRequest.decode(cursor, version)
    return FetchCall(
        replica_id=old.replica_id,
        max_wait_ms=old.max_wait_ms,
        min_bytes=old.min_bytes,
        max_bytes=old.max_bytes,
        topics=[
            FetchTopic(
                topic.topic,
                [
                    FetchPartition(
                        topic.topic,
                        ZERO_UUID,
                        asked.partition,
                        asked.fetch_offset,
                        asked.partition_max_bytes,
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in old.topics
        ],
    )


def encode_fetch(
    response: FetchResponse | FetchAnswer, version: int, correlation_id: int
) -> list[bytes | memoryview]:
    """Encode a FetchResponse of any version. The records must have a format that the client supports."""
    if isinstance(response, FetchAnswer):
        return encode_fetch_answer(response, version, correlation_id)
    if version >= FetchResponse.MIN_VERSION:
        return encode_response(response, version, correlation_id)
    old = OldFetchResponse(
        throttle_time_ms=response.throttle_time_ms,
        responses=[
            OldFetchResponse.FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    OldFetchResponse.PartitionData(
                        partition_index=data.partition_index,
                        error_code=data.error_code,
                        high_watermark=data.high_watermark,
                        records=data.records,
                    )
                    for data in topic.partitions
                ],
            )
            for topic in response.responses
        ],
    )
    return _encode_old(old, version, correlation_id)


def decode_list_offsets(cursor: Cursor, version: int) -> ListOffsetsRequest:
    """Decode a ListOffsetsRequest of any version."""
    if version >= ListOffsetsRequest.MIN_VERSION:
        return ListOffsetsRequest.decode(cursor, version)
    old = OldListOffsetsRequest.decode(cursor, version)
    return ListOffsetsRequest(
        replica_id=old.replica_id,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic.name,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=asked.partition_index, timestamp=asked.timestamp
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in old.topics
        ],
    )


def encode_list_offsets(
    response: ListOffsetsResponse, version: int, correlation_id: int
) -> list[bytes | memoryview]:
    """Encode a ListOffsetsResponse of any version. Version 0 encodes an unknown offset as an empty list."""
    if version >= ListOffsetsResponse.MIN_VERSION:
        return encode_response(response, version, correlation_id)
    old = OldListOffsetsResponse(
        topics=[
            OldListOffsetsResponse.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    OldListOffsetsResponse.ListOffsetsPartitionResponse(
                        partition_index=answer.partition_index,
                        error_code=answer.error_code,
                        old_style_offsets=[answer.offset] if answer.offset >= 0 else [],
                    )
                    for answer in topic.partitions
                ],
            )
            for topic in response.topics
        ]
    )
    return _encode_old(old, version, correlation_id)


def _encode_old(
    response: OldFetchResponse | OldListOffsetsResponse, version: int, correlation_id: int
) -> list[bytes | memoryview]:
    writer = Writer()
    writer.write_int32(correlation_id)
    response.encode(writer, version)
    return writer.pieces()
