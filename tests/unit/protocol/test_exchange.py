"""Whole requests and responses: header versions, unknown versions, and records passed by reference."""

from __future__ import annotations

import pytest

from kafkacore.errors import IllegalArgumentError, MalformedMessageError, UnsupportedVersionError
from kafkacore.protocol import (
    API_REGISTRY,
    ApiKey,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    request_header_version,
    response_header_version,
)
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.protocol.generated.metadata import MetadataRequest, MetadataResponse
from kafkacore.protocol.generated.produce import ProduceRequest


def every_version() -> list[tuple[ApiKey, int]]:
    return [
        (api_key, version)
        for api_key in API_REGISTRY
        for version in range(API_REGISTRY[api_key][0].MIN_VERSION, API_REGISTRY[api_key][0].MAX_VERSION + 1)
    ]


def test_request_of_every_api_and_version_comes_back_with_its_header() -> None:
    for api_key, version in every_version():
        request = API_REGISTRY[api_key][0]()
        payload = b"".join(encode_request(request, version, 7, "me"))
        header, decoded = decode_request(payload)
        assert decoded == request
        assert (header.request_api_key, header.request_api_version) == (api_key, version)
        assert (header.correlation_id, header.client_id) == (7, "me")


def test_response_of_every_api_and_version_comes_back_with_its_correlation_id() -> None:
    for api_key, version in every_version():
        request_class, response_class = API_REGISTRY[api_key]
        payload = b"".join(encode_response(response_class(), version, 2**31 - 1))
        assert decode_response(payload, request_class, version) == (2**31 - 1, response_class())


def test_client_id_may_be_null() -> None:
    header, _ = decode_request(b"".join(encode_request(MetadataRequest(), 12, 0, None)))
    assert header.client_id is None


def test_header_versions_follow_flexible_versions() -> None:
    assert [request_header_version(ApiKey.PRODUCE, version) for version in (8, 9)] == [1, 2]
    assert [response_header_version(ApiKey.PRODUCE, version) for version in (8, 9)] == [0, 1]
    assert request_header_version(ApiKey.SASL_HANDSHAKE, 1) == 1


def test_api_versions_response_has_header_0_in_every_version() -> None:
    assert request_header_version(ApiKey.API_VERSIONS, 3) == 2
    assert {response_header_version(ApiKey.API_VERSIONS, version) for version in range(5)} == {0}
    payload = b"".join(encode_response(ApiVersionsResponse(error_code=1), 3, 5))
    assert payload[:6] == bytes([0, 0, 0, 5, 0, 1])


def test_removed_apis_have_a_key_and_no_messages() -> None:
    assert ApiKey.LEADER_AND_ISR == 4
    assert ApiKey.LEADER_AND_ISR not in API_REGISTRY
    assert len(API_REGISTRY) == len(list(API_REGISTRY)) == len(ApiKey) - 4


def test_api_versions_request_of_unknown_version_is_unsupported_after_its_header() -> None:
    payload = bytearray(b"".join(encode_request(ApiVersionsRequest(), 3, 9, "new")))
    payload[3] = 99
    payload += b"what version 99 says"
    header, _ = decode_request_header(payload)
    assert (header.request_api_version, header.correlation_id, header.client_id) == (99, 9, "new")
    with pytest.raises(UnsupportedVersionError, match="ApiVersionsRequest has versions 0 to 4, not 99"):
        decode_request(payload)
    answer = ApiVersionsResponse(error_code=UnsupportedVersionError.errno)
    answer.api_keys.append(ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4))
    raw = b"".join(encode_response(answer, 0, header.correlation_id))
    assert raw.hex(" ", 2) == "0000 0009 0023 0000 0001 0012 0000 0004"


@pytest.mark.parametrize("asked", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("ranges", [[], [(18, 0, 4)], [(0, 3, 13), (1, 4, 18), (18, 0, 4)]])
def test_api_versions_response_of_version_0_is_read_whatever_was_asked(
    asked: int, ranges: list[tuple[int, int, int]]
) -> None:
    answer = ApiVersionsResponse(
        error_code=35,
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, low, high in ranges
        ],
    )
    payload = b"".join(encode_response(answer, 0, 4))
    assert decode_response(payload, ApiVersionsRequest, asked) == (4, answer)


@pytest.mark.parametrize("start", ["03e7 0000", "ffff 0000", "0004 0000"])
def test_unknown_api_key_is_unsupported(start: str) -> None:
    with pytest.raises(UnsupportedVersionError, match="API key"):
        decode_request_header(bytes.fromhex(start) + bytes(8))


@pytest.mark.parametrize("version", [-1, 2, 14])
def test_version_outside_of_the_range_is_unsupported(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="ProduceRequest has versions 3 to 13"):
        encode_request(ProduceRequest(), version, 0, None)
    header = (0).to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + bytes(6)
    with pytest.raises(UnsupportedVersionError, match="ProduceRequest has versions 3 to 13"):
        decode_request(header + bytes(20))


def test_request_cut_at_any_length_is_malformed() -> None:
    payload = b"".join(encode_request(MetadataRequest(topics=None), 12, 3, "client"))
    for size in range(len(payload)):
        with pytest.raises(MalformedMessageError):
            decode_request(payload[:size])


def test_response_cut_at_any_length_is_malformed() -> None:
    payload = b"".join(encode_response(MetadataResponse(cluster_id="abc"), 12, 3))
    for size in range(len(payload)):
        with pytest.raises(MalformedMessageError):
            decode_response(payload[:size], MetadataRequest, 12)


def test_bytes_after_a_message_are_ignored() -> None:
    payload = b"".join(encode_response(MetadataResponse(cluster_id="abc"), 12, 3))
    assert decode_response(payload + b"more", MetadataRequest, 12)[1].cluster_id == "abc"


def produce(records: object) -> ProduceRequest:
    partition = ProduceRequest.PartitionProduceData(index=1, records=records)
    return ProduceRequest(
        topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[partition])], acks=-1
    )


@pytest.mark.parametrize("version", [8, 12])
def test_large_records_are_written_by_reference(version: int) -> None:
    batch = memoryview(bytes(range(256)) * 16)
    pieces = encode_request(produce(batch), version, 1, "me")
    assert any(piece is batch for piece in pieces)
    assert decode_request(b"".join(pieces))[1] == produce(batch)


@pytest.mark.parametrize("version", [8, 12])
def test_list_of_buffers_is_written_as_one_field(version: int) -> None:
    parts = [b"a" * 1000, bytearray(b"b"), memoryview(b"c" * 2000), b""]
    pieces = encode_request(produce(parts), version, 1, "me")
    assert any(piece is parts[0] for piece in pieces)
    assert any(piece is parts[2] for piece in pieces)
    (topic,) = decode_request(b"".join(pieces))[1].topic_data
    assert topic.partition_data[0].records == b"a" * 1000 + b"b" + b"c" * 2000


def test_size_of_records_is_counted_in_bytes_and_not_in_items() -> None:
    words = memoryview(b"12345678").cast("I")
    (topic,) = decode_request(b"".join(encode_request(produce(words), 12, 1, "me")))[1].topic_data
    assert topic.partition_data[0].records == b"12345678"


def test_decoded_records_are_a_view_of_the_payload() -> None:
    payload = bytearray(b"".join(encode_request(produce(b"records"), 12, 1, "me")))
    (topic,) = decode_request(payload)[1].topic_data
    view = topic.partition_data[0].records
    assert isinstance(view, memoryview)
    assert view.obj is payload
    with pytest.raises(BufferError):
        payload.append(0)  # the payload is referenced, not copied


def test_null_records_stay_null() -> None:
    (topic,) = decode_request(b"".join(encode_request(produce(None), 12, 1, "me")))[1].topic_data
    assert topic.partition_data[0].records is None


@pytest.mark.parametrize("version", [8, 9])
def test_string_over_32767_bytes_is_refused_by_name_of_the_message(version: int) -> None:
    longest, too_long = "é" * 16383, "é" * 16384
    request = produce(b"")
    request.topic_data[0].name = longest
    assert decode_request(b"".join(encode_request(request, version, 1, "me")))[1] == request
    request.topic_data[0].name = too_long
    with pytest.raises(IllegalArgumentError, match=f"ProduceRequest version {version}: .*32768"):
        encode_request(request, version, 1, "me")


def test_number_that_does_not_fit_its_field_is_refused() -> None:
    with pytest.raises(IllegalArgumentError, match="FetchRequest version 12"):
        encode_request(FetchRequest(max_wait_ms=2**31), 12, 1, "me")


def test_response_class_of_a_request_is_known() -> None:
    assert FetchRequest.RESPONSE is FetchResponse
    assert API_REGISTRY[ApiKey.FETCH] == (FetchRequest, FetchResponse)
    assert all(request.RESPONSE is response for request, response in API_REGISTRY.values())
