"""Encode and decode whole requests and responses: header and body, without the size of the frame.

The key, version, and correlation id are the first eight bytes of every request. So the header of a request
of an unknown version can be read, and the broker answers an unknown version of ApiVersions with a version 0
response that has error 35 and the supported range.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, cast

from kafkacore.errors import IllegalArgumentError, MalformedMessageError, UnsupportedVersionError
from kafkacore.protocol.generated.api_key import ApiKey
from kafkacore.protocol.generated.headers import RequestHeader, ResponseHeader
from kafkacore.protocol.message import (
    Buffer,
    Message,
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

#: In a request's header, behind the API key and its version.
CORRELATION_ID_AT: Final = 4


def encode_request(
    request: Request[ResponseMessage], version: int, correlation_id: int, client_id: str | None
) -> list[bytes | memoryview]:
    """A request as buffers, in order. Records are among them by reference.

    Raises
    ------
    UnsupportedVersionError
        The request has no such version, or the version no place for a field that is set.
    IllegalArgumentError
        A value does not fit its field.
    """
    if isinstance(request, RequestBuilder):
        request = request.build(version)
    before, after = _around_correlation_id(request.API_KEY, version, client_id)
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
def _around_correlation_id(api_key: int, version: int, client_id: str | None) -> tuple[bytes, bytes]:
    """The header of a request, but for what changes with each: before and behind its correlation id."""
    header = RequestHeader(request_api_key=api_key, request_api_version=version, client_id=client_id)
    writer = Writer()
    header.encode(writer, request_header_version(ApiKey(api_key), version))
    encoded = b"".join(writer.pieces())
    return encoded[:CORRELATION_ID_AT], encoded[CORRELATION_ID_AT + 4 :]


def encode_response(response: ResponseMessage, version: int, correlation_id: int) -> list[bytes | memoryview]:
    """A response as buffers, in order; raises as :func:`encode_request`."""
    header = ResponseHeader(correlation_id=correlation_id)
    return _encode(header, response_header_version(ApiKey(response.API_KEY), version), response, version)


def _encode(header: Message, header_version: int, body: Message, version: int) -> list[bytes | memoryview]:
    writer = Writer()
    try:
        header.encode(writer, header_version)
        body.encode(writer, version)
    except OverflowError as error:
        raise IllegalArgumentError(f"{body.NAME} version {version}: {error}") from error
    return writer.pieces()


def decode_request_header(payload: Buffer) -> tuple[RequestHeader, Cursor]:
    """The header of a request, and the cursor at its body.

    The version is not checked, so that a request of an unknown one can still be answered.

    Raises
    ------
    MalformedMessageError
        The bytes are no header.
    UnsupportedVersionError
        The API key is unknown, and with it the header's version.
    """
    cursor = Cursor(payload)
    api_key = cursor.read_int16()
    version = cursor.read_int16()
    if api_key not in API_REGISTRY:
        raise UnsupportedVersionError(f"API key {api_key} is unknown")
    cursor.position = 0
    return RequestHeader.decode(cursor, request_header_version(ApiKey(api_key), version)), cursor


def decode_request(payload: Buffer) -> tuple[RequestHeader, RequestMessage[ResponseMessage]]:
    """Header and body of a request; bytes after it are ignored, as Kafka does.

    Raises
    ------
    MalformedMessageError
        The bytes are no such request.
    UnsupportedVersionError
        The API key or the version is unknown. If it is the version, :func:`decode_request_header` still reads
        the header, so that an answer can be given.
    """
    header, cursor = decode_request_header(payload)
    request_class = API_REGISTRY[ApiKey(header.request_api_key)][0]
    return header, request_class.decode(cursor, header.request_api_version)


def decode_response(
    payload: Buffer, request_class: type[RequestMessage[ResponseT]], version: int
) -> tuple[int, ResponseT]:
    """Correlation id and body of the response to a request of ``request_class`` that was sent in ``version``.

    A broker that does not know the version of an ApiVersions request answers in version 0, error 35. What
    cannot be read as an ApiVersions response of ``version`` is read as that (``ApiVersionsResponse.parse``).

    Raises
    ------
    MalformedMessageError
        The bytes are no such response.
    UnsupportedVersionError
        There is no such version.
    """
    cursor = Cursor(payload)
    # The header, without an object for it.
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
