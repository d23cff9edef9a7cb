"""Kafka's messages: declarations of every API, code generated from them, and the headers round a message.

In: message objects, or the payload of a frame. Out: buffers, or message objects. Does not know: record
batches (a message carries them as a memoryview), sockets, which version a broker speaks.

- :mod:`kafkacore.protocol.schema`: the declarations, to be read; :mod:`kafkacore.protocol.generate` turns
  them into :mod:`kafkacore.protocol.generated`, one module per API.
- :mod:`kafkacore.protocol.message`: what generated messages are made of.
- :mod:`kafkacore.protocol.exchange`: whole requests and responses.
- :mod:`kafkacore.protocol.registry`: which API has which messages.
"""

from kafkacore.protocol.exchange import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from kafkacore.protocol.generated.api_key import ApiKey
from kafkacore.protocol.generated.headers import RequestHeader, ResponseHeader
from kafkacore.protocol.message import (
    ZERO_UUID,
    Message,
    Records,
    Request,
    RequestBuilder,
    RequestMessage,
    ResponseMessage,
    Struct,
    request_class_of,
)
from kafkacore.protocol.registry import (
    API_REGISTRY,
    request_header_version,
    response_header_version,
)

__all__ = [
    "API_REGISTRY",
    "ZERO_UUID",
    "ApiKey",
    "Message",
    "Records",
    "Request",
    "RequestBuilder",
    "RequestHeader",
    "RequestMessage",
    "ResponseHeader",
    "ResponseMessage",
    "Struct",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "encode_request",
    "encode_response",
    "request_class_of",
    "request_header_version",
    "response_header_version",
]
