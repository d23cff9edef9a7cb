"""Encode and decode whole requests and responses: header and body, without the size of the frame.

The API key, the version and the correlation id are the first eight bytes of every request. The header of a
request with an unknown version can therefore be read. The broker answers an unknown version of ApiVersions in
version 0 with UNSUPPORTED_VERSION (35) and the supported range.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, cast

from kafkacore.errors import IllegalArgumentError, MalformedMessageError, UnsupportedVersionError
from kafkacore.protocol.generated.api_key import ApiKey
from kafkacore.protocol.generated.headers import RequestHeader
from kafkacore.protocol.message import (
    Buffer,
    Request,
    RequestBuilder,
    RequestMessage,
    ResponseMessage,
    ResponseT,
    skip_tagged_fields,
)
from kafkacore.protocol.registry import (
    API_REGISTRY,
    request_header_version,
    response_header_version,
)
from kafkacore.wire import Cursor, Writer

#: Position of the correlation id in a request's header, after the API key and the version.
CORRELATION_ID_AT: Final = 4


def encode_request(
    request: Request[ResponseMessage], version: int, correlation_id: int, client_id: str | None
) -> list[bytes | memoryview]:
    """Encode a request with its header.

    Parameters
    ----------
    request:
        The request, or a builder that creates the request for ``version``.
    version, correlation_id, client_id:
        Fields of the request header.

    Returns
    -------
    list
        Buffers in order, without the size of the frame. Large buffers of records are included by reference.

    Raises
    ------
    UnsupportedVersionError
        The request does not have this version, or the version lacks a field that is set.
    IllegalArgumentError
        A value does not fit its field.
    """
    if isinstance(request, RequestBuilder):
        request = request.build(version)
    before, after = around_correlation_id(request.API_KEY, version, client_id)
    writer = Writer()
    try:
        writer.write_buffer(before)
        writer.write_int32(correlation_id)
        writer.write_buffer(after)
        request.encode(writer, version)
    except OverflowError as error:
        raise IllegalArgumentError(f"{request.NAME} version {version}: {error}") from error
    return writer.pieces()


@lru_cache(maxsize=256)
def around_correlation_id(api_key: int, version: int, client_id: str | None) -> tuple[bytes, bytes]:
    """Return the bytes of a request header before and after the correlation id."""
    header = RequestHeader(request_api_key=api_key, request_api_version=version, client_id=client_id)
    writer = Writer()
    header.encode(writer, request_header_version(ApiKey(api_key), version))
    encoded = b"".join(writer.pieces())
    return encoded[:CORRELATION_ID_AT], encoded[CORRELATION_ID_AT + 4 :]


def encode_response(response: ResponseMessage, version: int, correlation_id: int) -> list[bytes | memoryview]:
    """Encode a response with its header; raises the errors of :func:`encode_request`."""
    writer = Writer()
    try:
        writer.write_int32(correlation_id)
        if response_header_version(cast(ApiKey, response.API_KEY), version) >= 1:
            writer.write_unsigned_varint(0)
        response.encode(writer, version)
    except OverflowError as error:
        raise IllegalArgumentError(f"{response.NAME} version {version}: {error}") from error
    return writer.pieces()


def decode_request_header(payload: Buffer) -> tuple[RequestHeader, Cursor]:
    """Decode the header of a request.

    The version is not checked, so that a request with an unknown version can still be answered.

    Returns
    -------
    header, cursor
        The header, and a cursor at the start of the body.

    Raises
    ------
    MalformedMessageError
        The bytes are not a request header.
    UnsupportedVersionError
        The API key is unknown, so that the version of the header is unknown too.
    """
    cursor = Cursor(payload)
    api_key = cursor.read_int16()
    version = cursor.read_int16()
    if api_key not in API_REGISTRY:
        raise UnsupportedVersionError(f"API key {api_key} is unknown")
    cursor.position = 0
    return RequestHeader.decode(cursor, request_header_version(ApiKey(api_key), version)), cursor


def decode_request(payload: Buffer) -> tuple[RequestHeader, RequestMessage[ResponseMessage]]:
    """Decode a request. As in Kafka, bytes after the body are ignored.

    Returns
    -------
    header, request
        The header and the body.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid request.
    UnsupportedVersionError
        The API key or the version is unknown. If only the version is unknown, :func:`decode_request_header`
        can read the header, so that the request can be answered.
    """
    header, cursor = decode_request_header(payload)
    request_class = API_REGISTRY[ApiKey(header.request_api_key)][0]
    return header, request_class.decode(cursor, header.request_api_version)


def decode_response(
    payload: Buffer, request_class: type[RequestMessage[ResponseT]], version: int
) -> tuple[int, ResponseT]:
    """Decode the response to a request of ``request_class`` that was sent in ``version``.

    A broker that does not know the version of an ApiVersions request answers in version 0 with
    UNSUPPORTED_VERSION (35). An ApiVersions response that is malformed in ``version`` is therefore decoded as
    version 0 (``ApiVersionsResponse.parse``).

    Returns
    -------
    correlation_id, response
        The correlation id and the body.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid response.
    UnsupportedVersionError
        The API does not have this version.
    """
    cursor = Cursor(payload)
    # Read the header without creating an object for it.
    correlation_id = cursor.read_int32()
    if response_header_version(cast(ApiKey, request_class.API_KEY), version) >= 1:
        tag_count = cursor.read_unsigned_varint()
        if tag_count:
            skip_tagged_fields(cursor, tag_count)
    body = cursor.position
    try:
        response = request_class.RESPONSE.decode(cursor, version)
    except MalformedMessageError:
        if request_class.API_KEY != ApiKey.API_VERSIONS or version == 0:
            raise
        cursor.position = body
        response = request_class.RESPONSE.decode(cursor, 0)
    return correlation_id, cast(ResponseT, response)
