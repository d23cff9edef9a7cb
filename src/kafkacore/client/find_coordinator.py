"""Find the broker that coordinates a group or a transactional id."""

from __future__ import annotations

from functools import partial

from kafkacore.client.cluster import is_address
from kafkacore.errors import BrokerResponseError, MalformedMessageError, for_code
from kafkacore.protocol import RequestBuilder
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacore.structs import Node

#: Key types of FindCoordinator.
GROUP, TRANSACTION = 0, 1
#: First FindCoordinator version whose requests can contain several keys (KIP-699).
BATCHED_LOOKUP_FROM = 4


def coordinator_request(key: str, key_type: int) -> RequestBuilder[FindCoordinatorResponse]:
    """Return a FindCoordinator request for one key."""
    return RequestBuilder(FindCoordinatorRequest, partial(_build, key, key_type))


def _build(key: str, key_type: int, version: int) -> FindCoordinatorRequest:
    if version < BATCHED_LOOKUP_FROM:
        return FindCoordinatorRequest(key=key, key_type=key_type)
    return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])


def coordinator_in(message: FindCoordinatorResponse, key: str) -> Node:
    """Return the coordinator of ``key`` from a response.

    Raises
    ------
    BrokerResponseError
        The response has an error code.
    MalformedMessageError
        The response has no entry for the key, or the entry has no valid address.
    """
    found: FindCoordinatorResponse | FindCoordinatorResponse.Coordinator = message
    if message.coordinators:
        entry = next((each for each in message.coordinators if each.key == key), None)
        if entry is None:
            raise MalformedMessageError(f"the FindCoordinator response has no entry for {key!r}")
        found = entry
    if found.error_code:
        error: type[BrokerResponseError] = for_code(found.error_code)
        raise error(found.error_message or "")
    if not is_address(found.node_id, found.host, found.port):
        raise MalformedMessageError(
            f"the FindCoordinator response has an invalid coordinator for {key!r}: "
            f"node {found.node_id} at {found.host!r}:{found.port}"
        )
    return Node(found.node_id, found.host, found.port)
