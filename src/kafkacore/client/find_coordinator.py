"""Asking which broker coordinates a group or a transactional id: one key in, one entry out, in any version.

Does not know: when to ask, what a coordinator is for.
"""

from __future__ import annotations

from kafkacore.client.cluster import is_address
from kafkacore.errors import BrokerResponseError, MalformedMessageError, for_code
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacore.structs import Node
from kafkacore.wire import Writer

#: Kinds of keys.
GROUP, TRANSACTION = 0, 1
#: Since when FindCoordinator asks for several keys (KIP-699).
BATCHED_LOOKUP_FROM = 4


class CoordinatorLookup(FindCoordinatorRequest):
    """A FindCoordinatorRequest for one key that can be written in every version."""

    __slots__ = ()

    def encode(self, writer: Writer, version: int) -> None:
        if version < BATCHED_LOOKUP_FROM:
            super().encode(writer, version)
        else:
            FindCoordinatorRequest(key_type=self.key_type, coordinator_keys=[self.key]).encode(
                writer, version
            )


def coordinator_in(message: FindCoordinatorResponse, key: str) -> Node:
    """The coordinator of ``key`` that an answer names.

    Raises
    ------
    BrokerResponseError
        What the broker says in place of naming one.
    MalformedMessageError
        If the answer leaves the key out, or what it names is no node.
    """
    found: FindCoordinatorResponse | FindCoordinatorResponse.Coordinator = message
    if message.coordinators:
        entry = next((each for each in message.coordinators if each.key == key), None)
        if entry is None:
            raise MalformedMessageError(f"the answer to FindCoordinator leaves {key!r} out")
        found = entry
    if found.error_code:
        error: type[BrokerResponseError] = for_code(found.error_code)
        raise error(found.error_message or "")
    if not is_address(found.node_id, found.host, found.port):
        raise MalformedMessageError(
            f"FindCoordinator names node {found.node_id} at {found.host!r}:{found.port} for {key!r}"
        )
    return Node(found.node_id, found.host, found.port)
