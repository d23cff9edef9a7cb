"""The message classes and header versions of each API.

The module of an API's messages is imported when it is first needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from kafkacore.protocol.generated.api_key import API_MODULES, ApiKey
from kafkacore.protocol.message import RequestMessage, ResponseMessage

MessageClasses = tuple[type[RequestMessage[ResponseMessage]], type[ResponseMessage]]


class ApiRegistry(Mapping[ApiKey, MessageClasses]):
    """Mapping of each API of Kafka 4 to its request class and its response class."""

    def __init__(self) -> None:
        self._loaded: dict[ApiKey, MessageClasses] = {}

    def __getitem__(self, api_key: ApiKey) -> MessageClasses:
        found = self._loaded.get(api_key)
        if found is None:
            module_name, prefix, _ = API_MODULES[api_key]
            module = import_module(f"kafkacore.protocol.generated.{module_name}")
            found = (getattr(module, f"{prefix}Request"), getattr(module, f"{prefix}Response"))
            self._loaded[api_key] = found
        return found

    def __iter__(self) -> Iterator[ApiKey]:
        return iter(API_MODULES)

    def __len__(self) -> int:
        return len(API_MODULES)


API_REGISTRY: Final = ApiRegistry()


def request_header_version(api_key: ApiKey, version: int) -> int:
    """Return the version of the header of a request (Kafka's ``ApiKeys.requestHeaderVersion``).

    The header version is 2 for flexible requests, and 1 for all other requests.
    """
    flexible_from = API_MODULES[api_key][2]
    return 2 if flexible_from is not None and version >= flexible_from else 1


def response_header_version(api_key: ApiKey, version: int) -> int:
    """Return the version of the header of a response (Kafka's ``ApiKeys.responseHeaderVersion``).

    The header version is 1 for flexible responses, and 0 for all other responses. The response to ApiVersions
    always has header version 0, so that a client can read it before the client knows which versions the
    broker supports (KIP-511).
    """
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return request_header_version(api_key, version) - 1
