"""ApiVersions: return the APIs and versions that this broker announces.

Versions 0 to 4. A request of an unknown version gets a response of version 0 with the error
UNSUPPORTED_VERSION and the supported versions of ApiVersions, so that a newer client can fall back (KIP-511).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kafkacore.broker.config.features import FEATURES
from kafkacore.broker.handlers.services import AnyApiHandler, ApiHandler, MetadataServices, Request
from kafkacore.broker.metadata.cluster_metadata import ClusterMetadata
from kafkacore.errors import InvalidRequestError, UnsupportedVersionError
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacore.protocol.generated.produce import ProduceRequest

#: Valid software names and versions of clients (KIP-511).
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")

#: API key → first announced version, for an API whose announced versions begin before the served versions.
#: librdkafka before 2.11 silently stops compressing if a broker does not announce Produce 0. Apache Kafka
#: also announces Produce 0, and closes the connection of a client that sends such a request (KAFKA-18659).
_ANNOUNCED_FROM: dict[int, int] = {ProduceRequest.API_KEY: 0}

#: First version whose clients accept 0 as the lowest level of a feature. Older clients get 1, as in Apache
#: Kafka.
FIRST_VERSION_WITH_LEVEL_0 = 4

#: API key, lowest and highest version of each announced API. All brokers of the process share the tuple. A
#: broker that starts replaces it as a whole, because the others may answer requests meanwhile.
_announced: tuple[tuple[int, int, int], ...] = ()


def serve(handlers: Iterable[AnyApiHandler]) -> None:
    """Announce these APIs to clients. The dispatcher calls this once at startup."""
    global _announced
    _announced = tuple(sorted(map(_versions_of, handlers)))


def _versions_of(handler: AnyApiHandler) -> tuple[int, int, int]:
    key = handler.request_class.API_KEY
    return key, _ANNOUNCED_FROM.get(key, handler.min_version), handler.max_version


def handle(request: Request[ApiVersionsRequest], services: MetadataServices) -> ApiVersionsResponse:
    message = request.message
    if request.version >= 3 and not (
        _SOFTWARE.fullmatch(message.client_software_name)
        and _SOFTWARE.fullmatch(message.client_software_version)
    ):
        return response(InvalidRequestError.errno, [])
    if request.version >= 3:
        request.context.software_name = message.client_software_name
        request.context.software_version = message.client_software_version
    return _with_features(response(0, _announced), services.metadata, request.version)


def unsupported_version() -> ApiVersionsResponse:
    """Return the response to a request of an unknown version; it must be encoded as version 0."""
    own = [each for each in _announced if each[0] == ApiVersionsRequest.API_KEY]
    return response(UnsupportedVersionError.errno, own)


def response(error: int, announced: Iterable[tuple[int, int, int]]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error,
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, low, high in announced
        ],
    )


def _with_features(
    answer: ApiVersionsResponse, metadata: ClusterMetadata, version: int
) -> ApiVersionsResponse:
    lowest = 0 if version >= FIRST_VERSION_WITH_LEVEL_0 else 1
    supported = [(name, levels) for name, levels in FEATURES.items() if levels.highest]
    answer.supported_features = [
        ApiVersionsResponse.SupportedFeatureKey(
            name=name, min_version=max(levels.lowest, lowest), max_version=levels.highest
        )
        for name, levels in supported
    ]
    finalized = [(name, metadata.features.level(name)) for name, _ in supported]
    answer.finalized_features = [
        ApiVersionsResponse.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
        for name, level in finalized
        if level
    ]
    # Clients ignore features whose epoch is not above the last epoch that they received.
    answer.finalized_features_epoch = metadata.end_offset
    return answer


HANDLER = ApiHandler(ApiVersionsRequest, 0, 4, handle)
