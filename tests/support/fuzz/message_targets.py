"""Fuzz targets for requests and responses of every API and version. Kafka's own classes wrote the corpus."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from fuzz.harness import Target
from model.golden_messages import GoldenMessage, golden_messages

from kafkacore.broker.group.consumer._heartbeat import read_heartbeat
from kafkacore.broker.replica._fetch_call import read_fetch
from kafkacore.broker.replica._produce_call import encode_produce, read_produce
from kafkacore.client.metadata import Metadata
from kafkacore.errors import KafkaProtocolError, MalformedMessageError
from kafkacore.protocol import (
    API_REGISTRY,
    ApiKey,
    decode_request,
    decode_request_header,
    decode_response,
)
from kafkacore.protocol.generated.headers import RequestHeader, ResponseHeader
from kafkacore.protocol.generated.metadata import MetadataRequest, MetadataResponse
from kafkacore.protocol.registry import request_header_version, response_header_version
from kafkacore.testing import VirtualClock
from kafkacore.wire import Cursor, Writer

#: API key and version, which precede the bytes of a response.
_WHICH = struct.Struct(">hh")
#: A request's header begins with API key, version and correlation id.
_REQUEST_HEAD = 8


@cache
def golden() -> tuple[GoldenMessage, ...]:
    return tuple(golden_messages())


def request_frame(message: GoldenMessage) -> bytes:
    """Return the frame of the message, without its size."""
    writer = Writer()
    header = RequestHeader(
        request_api_key=message.api_key,
        request_api_version=message.version,
        correlation_id=7,
        client_id="client",
    )
    header.encode(writer, request_header_version(message.api_key, message.version))
    return b"".join(writer.pieces()) + message.content


def response_frame(message: GoldenMessage) -> bytes:
    """Return API key and version, followed by the frame."""
    writer = Writer()
    header = ResponseHeader(correlation_id=7)
    header.encode(writer, response_header_version(message.api_key, message.version))
    return _WHICH.pack(message.api_key, message.version) + b"".join(writer.pieces()) + message.content


def read_request(data: bytes) -> None:
    decode_request(memoryview(data))


def read_response(data: bytes) -> None:
    if len(data) < _WHICH.size:
        return
    api_key, version = _WHICH.unpack_from(data)
    try:
        request_class, response_class = API_REGISTRY[ApiKey(api_key)]
    except (ValueError, KeyError):
        return
    if response_class.MIN_VERSION <= version <= response_class.MAX_VERSION:
        decode_response(memoryview(data)[_WHICH.size :], request_class, version)


def read_twice(
    data: bytes, api_key: ApiKey, read: Callable[[Cursor, int], Any]
) -> tuple[Any, Any, RequestHeader]:
    """Read a request by the compiled reader and the generated one: both or neither accept it.

    Returns what the compiled reader and the generated one have read, and the header of the request.
    """
    header, cursor = decode_request_header(memoryview(data))
    other = Cursor(data)
    other.position = cursor.position
    version = header.request_api_version
    request_class, _ = API_REGISTRY[api_key]
    try:
        expected = request_class.decode(cursor, version)
    except KafkaProtocolError:
        try:
            read(other, version)
        except MalformedMessageError:
            raise
        raise AssertionError("the compiled reader accepts what the generated one rejects") from None
    return read(other, version), expected, header


def read_produce_twice(data: bytes) -> None:
    call, expected, header = read_twice(data, ApiKey.PRODUCE, read_produce)
    assert call.acks == expected.acks, "acks"
    assert [len(topic.partitions) for topic in call.topics] == [
        len(topic.partition_data) for topic in expected.topic_data
    ], "partitions"
    encode_produce(call, header.request_api_version, header.correlation_id)


def read_fetch_twice(data: bytes) -> None:
    call, expected, _ = read_twice(data, ApiKey.FETCH, read_fetch)
    for name in ("max_wait_ms", "min_bytes", "max_bytes", "session_id", "session_epoch"):
        assert getattr(call, name) == getattr(expected, name), name
    for name in ("topics", "forgotten_topics_data"):
        assert [(one.topic, one.topic_id, len(one.partitions)) for one in getattr(call, name)] == [
            (one.topic, one.topic_id, len(one.partitions)) for one in getattr(expected, name)
        ], name


def read_heartbeat_twice(data: bytes) -> None:
    heartbeat, expected, _ = read_twice(data, ApiKey.CONSUMER_GROUP_HEARTBEAT, read_heartbeat)
    for name in ("group_id", "member_id", "member_epoch", "subscribed_topic_names", "server_assignor"):
        assert getattr(heartbeat, name) == getattr(expected, name), name
    counts = [len(partitions) for _, partitions in heartbeat.topic_partitions or ()]
    assert sum(counts) == sum(len(one.partitions) for one in expected.topic_partitions or ()), "partitions"


def read_metadata(data: bytes) -> None:
    """Read a cluster description as a broker sends it, and build the client's metadata from it."""
    if len(data) < 1:
        return
    version = data[0] % (MetadataResponse.MAX_VERSION + 1)
    _, response = decode_response(memoryview(data)[1:], MetadataRequest, version)
    metadata = Metadata(VirtualClock())
    metadata.set_need_all_topics(True)
    for is_partial in (False, True):
        metadata.update(1, response, is_partial, 1.0, version)
        cluster = metadata.fetch()
        for topic in cluster.topics:
            assert all(number >= 0 for number in cluster.partitions_for_topic(topic) or ())
        repr(cluster)


def targets() -> list[Target]:
    requests = [request_frame(each) for each in golden() if each.kind == "request"]
    responses = [response_frame(each) for each in golden() if each.kind == "response"]
    produce, fetches, heartbeats = (
        [request_frame(each) for each in golden() if each.kind == "request" and each.api_key == api_key]
        for api_key in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.CONSUMER_GROUP_HEARTBEAT)
    )
    metadata = [
        bytes([each.version]) + response_frame(each)[_WHICH.size :]
        for each in golden()
        if each.kind == "response" and each.api_key == MetadataRequest.API_KEY
    ]
    return [
        Target("requests", read_request, requests, head=_REQUEST_HEAD),
        Target("responses", read_response, responses, head=_WHICH.size),
        Target("produce", read_produce_twice, produce, head=_REQUEST_HEAD),
        Target("fetch", read_fetch_twice, fetches, head=_REQUEST_HEAD),
        Target("heartbeat", read_heartbeat_twice, heartbeats, head=_REQUEST_HEAD),
        Target("metadata", read_metadata, metadata, head=1),
    ]
