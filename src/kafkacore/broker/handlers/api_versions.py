"""ApiVersions: what this broker speaks.

Versions 0 to 4 (0 is also the answer to an unknown version, with error 35 and our range, so that a client
of the future can come down to what we speak: KIP-511). Gaps: no feature is finalized, because no feature
here has levels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from kafkacore.broker.request import ApiHandler, BrokerServices, Request
from kafkacore.errors import InvalidRequestError, UnsupportedVersionError
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse

#: KIP-511's rule for a client's software name and version.
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")

_served: list[tuple[int, int, int]] = []


def serve(handlers: Iterable[ApiHandler]) -> None:
    """Tell clients of these APIs; called once, when the dispatch table is made."""
    _served[:] = sorted((h.request_class.API_KEY, h.min_version, h.max_version) for h in handlers)


def handle(request: Request, services: BrokerServices) -> Any:
    message = request.message
    if request.version >= 3 and not (
        _SOFTWARE.fullmatch(message.client_software_name)
        and _SOFTWARE.fullmatch(message.client_software_version)
    ):
        return response(InvalidRequestError.errno)
    if request.version >= 3:
        request.context.software_name = message.client_software_name
        request.context.software_version = message.client_software_version
    return response(0)


def unsupported_version() -> Any:
    """The answer, to be encoded as version 0, to a request whose version is not known here."""
    return response(UnsupportedVersionError.errno, [s for s in _served if s[0] == ApiVersionsRequest.API_KEY])


def response(error: int, served: list[tuple[int, int, int]] | None = None) -> Any:
    shown = served if served is not None else ([] if error else _served)
    return ApiVersionsResponse(
        error_code=error,
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, low, high in shown
        ],
        finalized_features_epoch=0,
    )


HANDLER = ApiHandler(ApiVersionsRequest, 0, 4, handle)
