"""Generate the list of Kafka's APIs that the embedded broker serves and refuses."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Final

from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.protocol.schema import APIS
from kafkacore.protocol.schema.declaration import Api

_TOKENS: Final = "delegation tokens are not served"
_BETWEEN_BROKERS: Final = "only brokers and controllers send it to each other"
_SHARE: Final = "share groups are not served"
_STREAMS: Final = "streams groups are not served"
_TELEMETRY: Final = "metrics of clients are not collected"
_VOTERS: Final = "the metadata log has no voters that can be changed"
#: Why the broker refuses each API that it does not serve.
REASONS: Final = {
    "AddRaftVoter": _VOTERS,
    "AllocateProducerIds": _BETWEEN_BROKERS,
    "AlterPartition": _BETWEEN_BROKERS,
    "AlterShareGroupOffsets": _SHARE,
    "AssignReplicasToDirs": _BETWEEN_BROKERS,
    "BeginQuorumEpoch": _BETWEEN_BROKERS,
    "BrokerHeartbeat": _BETWEEN_BROKERS,
    "BrokerRegistration": _BETWEEN_BROKERS,
    "ControllerRegistration": _BETWEEN_BROKERS,
    "CreateDelegationToken": _TOKENS,
    "DeleteShareGroupOffsets": _SHARE,
    "DeleteShareGroupState": _SHARE,
    "DescribeDelegationToken": _TOKENS,
    "DescribeShareGroupOffsets": _SHARE,
    "EndQuorumEpoch": _BETWEEN_BROKERS,
    "Envelope": _BETWEEN_BROKERS,
    "ExpireDelegationToken": _TOKENS,
    "FetchSnapshot": _BETWEEN_BROKERS,
    "GetTelemetrySubscriptions": _TELEMETRY,
    "InitializeShareGroupState": _SHARE,
    "PushTelemetry": _TELEMETRY,
    "ReadShareGroupState": _SHARE,
    "ReadShareGroupStateSummary": _SHARE,
    "RemoveRaftVoter": _VOTERS,
    "RenewDelegationToken": _TOKENS,
    "ShareAcknowledge": _SHARE,
    "ShareFetch": _SHARE,
    "ShareGroupDescribe": _SHARE,
    "ShareGroupHeartbeat": _SHARE,
    "StreamsGroupDescribe": _STREAMS,
    "StreamsGroupHeartbeat": _STREAMS,
    "UpdateRaftVoter": _VOTERS,
    "Vote": _BETWEEN_BROKERS,
    "WriteShareGroupState": _SHARE,
}


def apis(which: str) -> str:
    """Return a table of the APIs that are ``served``, or of those that are ``refused`` with the reasons."""
    handlers = {handler.request_class.API_KEY: handler for handler in HANDLERS}
    refused = [api for api in APIS if api.versions and api.key not in handlers]
    named = {api.name for api in refused}
    assert named == REASONS.keys(), f"check the reasons of {sorted(named ^ REASONS.keys())}"
    if which == "refused":
        return "\n".join(["| API | key | why |", "|---|---|---|", *map(_refused, refused)])
    rows = (row for api in APIS if api.key in handlers for row in _served(api))
    return "\n".join(["| API | key | versions | on this broker |", "|---|---|---|---|", *rows])


def _refused(api: Api) -> str:
    return f"| {api.name} | {api.key} | {REASONS[api.name]} |"


def _served(api: Api) -> Iterator[str]:
    for handler in HANDLERS:
        if api.key == handler.request_class.API_KEY:
            versions = f"{handler.min_version} to {handler.max_version}"
            if handler.min_version == handler.max_version:
                versions = str(handler.max_version)
            yield f"| {api.name} | {api.key} | {versions} | {_about(handler.handle.__module__, api.name)} |"


def _about(module: str, name: str) -> str:
    """Return the docstring of a handler's module without the API's name, in one line of Markdown."""
    text = " ".join(inspect.cleandoc(sys.modules[module].__doc__ or "").split())
    assert text, f"{module} has no docstring"
    text = text.removeprefix(f"{name}: ").replace("``", "`").replace("|", "\\|")
    return text[0].upper() + text[1:]
