"""Kafka's requests and responses: declarations of every API, code generated from them, and message headers.

A message carries record batches as a memoryview; :mod:`kafkacore.record` decodes the batches.

- :mod:`kafkacore.protocol.schema`: the declarations. :mod:`kafkacore.protocol.generate` generates
  :mod:`kafkacore.protocol.generated` from the declarations, one module per API.
- :mod:`kafkacore.protocol.message`: base classes of the generated messages.
- :mod:`kafkacore.protocol.exchange`: whole requests and responses.
- :mod:`kafkacore.protocol.registry`: the message classes of each API.
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
