"""Which messages an API has. A module of messages is imported when it is first asked for.

In: an API key. Out: message classes, header versions. Does not know: bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from kafkacore.protocol.generated.api_key import API_MODULES, ApiKey
from kafkacore.protocol.message import RequestMessage, ResponseMessage

MessageClasses = tuple[type[RequestMessage[ResponseMessage]], type[ResponseMessage]]


class ApiRegistry(Mapping[ApiKey, MessageClasses]):
    """ApiKey → (request class, response class), of every API that Kafka 4 speaks."""

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
    """2 before flexible requests, 1 before others (Kafka's ``ApiKeys.requestHeaderVersion``)."""
    flexible_from = API_MODULES[api_key][2]
    return 2 if flexible_from is not None and version >= flexible_from else 1


def response_header_version(api_key: ApiKey, version: int) -> int:
    """1 before flexible responses, 0 before others (Kafka's ``ApiKeys.responseHeaderVersion``).

    ApiVersions is answered with header 0 in every version: a client that does not know yet what the broker
    speaks has to be able to read it (KIP-511).
    """
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return request_header_version(api_key, version) - 1
