"""A model of an authorizer that is given an explicit list of grants, with Kafka's rules."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from model.authorisation_matrix import Grant

from kafkacore.access_control import ACLOperation, ResourceType

#: Operations that imply another one, by the implied operation.
IMPLIED_BY = {
    ACLOperation.DESCRIBE: {
        ACLOperation.READ,
        ACLOperation.WRITE,
        ACLOperation.DELETE,
        ACLOperation.ALTER,
    },
    ACLOperation.DESCRIBE_CONFIGS: {ACLOperation.ALTER_CONFIGS},
}


class Granted:
    """Allows the grants in ``allow`` that are not in ``deny``. The name ``*`` matches every resource."""

    def __init__(self, allow: Collection[Grant] = (), deny: Collection[Grant] = ()) -> None:
        self._allow = set(allow)
        self._deny = set(deny)

    def authorize(self, _: Any, operation: ACLOperation, resource_type: ResourceType, name: str) -> bool:
        denied = {Grant(operation, resource_type, each) for each in (name, "*")}
        enough = {operation} | IMPLIED_BY.get(operation, set())
        allowed = {Grant(one, resource_type, each) for one in enough for each in (name, "*")}
        return not denied & self._deny and bool(allowed & self._allow)

    def why_denied(self, *_: Any) -> str:
        return "no grant allows it"

    def authorize_by_resource_type(
        self, _: Any, operation: ACLOperation, resource_type: ResourceType
    ) -> bool:
        # A denial of one name does not affect the others.
        if Grant(operation, resource_type, "*") in self._deny:
            return False
        return any(
            grant[:2] == (operation, resource_type) and grant not in self._deny for grant in self._allow
        )
