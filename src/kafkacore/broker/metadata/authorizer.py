"""Authorizes operations by access control entries, as Kafka's ``StandardAuthorizer`` does.

An operation is denied unless an entry allows it. An entry that denies has precedence over entries that allow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from kafkacore.access_control import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from kafkacore.broker.metadata.acls import WILDCARD, Acl, AclStore
from kafkacore.text import shown

if TYPE_CHECKING:
    from kafkacore.broker.requests._request import RequestContext

ANYBODY: Final = "User:*"
#: Operation → the operations that imply it. For example, an entry that allows READ also allows DESCRIBE, but
#: an entry that denies READ does not deny DESCRIBE.
_IMPLY: Final = {
    ACLOperation.DESCRIBE: frozenset(
        {
            ACLOperation.DESCRIBE,
            ACLOperation.READ,
            ACLOperation.WRITE,
            ACLOperation.DELETE,
            ACLOperation.ALTER,
        }
    ),
    ACLOperation.DESCRIBE_CONFIGS: frozenset({ACLOperation.DESCRIBE_CONFIGS, ACLOperation.ALTER_CONFIGS}),
}
#: Maximum number of decisions in the cache, which is cleared when it is full.
MAX_CACHED: Final = 10_000
#: Maximum length of a resource name for which decisions are cached. This is the maximum length of a topic
#: name. A group id may be longer, up to 32 KiB. Decisions for such long names are not cached.
MAX_CACHED_LENGTH: Final = 249
#: Resource name that is assumed to have no entries, as in Kafka. Only super users and defaults allow access
#: to a resource with this name.
_NO_NAME: Final = "hardcode"

_Decision = tuple[str, str, int, int, str]


class StandardAuthorizer:
    """Authorizer that uses access control entries. Only the network thread may use it.

    Parameters
    ----------
    acls:
        Store of the access control entries.
    super_users:
        Principals that may perform every operation, such as ``User:admin``.
    allow_if_no_acl:
        Whether everyone may perform every operation on a resource without entries
        (``allow.everyone.if.no.acl.found``).
    """

    def __init__(
        self, acls: AclStore, super_users: Collection[str] = (), *, allow_if_no_acl: bool = False
    ) -> None:
        self._acls = acls
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        self._version = -1
        self._literal: dict[tuple[ResourceType, str], list[Acl]] = {}
        self._prefixed: dict[tuple[ResourceType, str], list[Acl]] = {}
        self._prefix_lengths: dict[ResourceType, list[int]] = {}
        self._decisions: dict[_Decision, bool] = {}

    def authorize(
        self, context: RequestContext, operation: ACLOperation, resource_type: ResourceType, name: str
    ) -> bool:
        """Return whether the client of ``context`` may perform the operation on the resource."""
        if self._version != self._acls.version:
            self._learn()
        principal = str(context.principal)
        asked = (principal, context.host, operation, resource_type, name)
        decision = self._decisions.get(asked)
        if decision is None:
            decision = self._decide(principal, _address(context.host), operation, resource_type, name)
            if len(name) <= MAX_CACHED_LENGTH:
                if len(self._decisions) >= MAX_CACHED:
                    self._decisions.clear()
                self._decisions[asked] = decision
        return decision

    def authorize_by_resource_type(
        self, context: RequestContext, operation: ACLOperation, resource_type: ResourceType
    ) -> bool:
        """Return whether the client may perform the operation on at least one resource of the type."""
        if self.authorize(context, operation, resource_type, _NO_NAME):
            return True
        host = _address(context.host)
        mine = [
            acl
            for acl in self._acls
            if acl.resource_type == resource_type
            and acl.principal in (str(context.principal), ANYBODY)
            and _address(acl.host) in (host, WILDCARD)
            and acl.operation in (operation, ACLOperation.ALL)
        ]
        denied = {(a.pattern_type, a.name) for a in mine if a.permission == ACLPermissionType.DENY}
        if (ACLResourcePatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(
            acl.permission == ACLPermissionType.ALLOW and not _is_dominated(acl, denied) for acl in mine
        )

    def why_denied(
        self, context: RequestContext, operation: ACLOperation, resource_type: ResourceType, name: str
    ) -> str:
        """Return why :meth:`authorize` denied the operation: an entry denies it, or no entry allows it."""
        if self._version != self._acls.version:
            self._learn()
        principals, hosts = (str(context.principal), ANYBODY), (_address(context.host), WILDCARD)
        for acl in self._about(resource_type, name):
            if (
                acl.permission == ACLPermissionType.DENY
                and acl.operation in (operation, ACLOperation.ALL)
                and acl.principal in principals
                and acl.host in hosts
            ):
                return (
                    f"an ACL denies {acl.operation.name} to {shown(acl.principal)} at {shown(acl.host)} on "
                    f"{acl.pattern_type.name.lower()} resource {shown(acl.name)}"
                )
        return "no ACL allows it"

    def _learn(self) -> None:
        literal, prefixed = defaultdict(list), defaultdict(list)
        lengths = defaultdict(set)
        for written in self._acls:
            acl = written._replace(host=_address(written.host))
            if acl.pattern_type == ACLResourcePatternType.LITERAL:
                literal[acl.resource_type, acl.name].append(acl)
            else:
                prefixed[acl.resource_type, acl.name].append(acl)
                lengths[acl.resource_type].add(len(acl.name))
        self._literal, self._prefixed = dict(literal), dict(prefixed)
        self._prefix_lengths = {kind: sorted(found) for kind, found in lengths.items()}
        self._decisions.clear()
        self._version = self._acls.version

    def _decide(
        self, principal: str, host: str, operation: ACLOperation, resource_type: ResourceType, name: str
    ) -> bool:
        if principal in self._super_users:
            return True
        is_allowed = has_entries = False
        for acl in self._about(resource_type, name):
            has_entries = True
            if acl.principal not in (principal, ANYBODY) or acl.host not in (host, WILDCARD):
                continue
            if acl.permission == ACLPermissionType.DENY:
                if acl.operation in (operation, ACLOperation.ALL):
                    return False
            elif acl.operation == ACLOperation.ALL or acl.operation in _IMPLY.get(operation, (operation,)):
                is_allowed = True
        return is_allowed or (self._allow_if_no_acl and not has_entries)

    def _about(self, resource_type: ResourceType, name: str) -> Iterator[Acl]:
        yield from self._literal.get((resource_type, name), ())
        if name != WILDCARD:
            yield from self._literal.get((resource_type, WILDCARD), ())
        for length in self._prefix_lengths.get(resource_type, ()):
            if length > len(name):
                break
            yield from self._prefixed.get((resource_type, name[:length]), ())


def _address(host: str) -> str:
    """Return an address in one canonical spelling; an IPv4 address that is mapped to IPv6 becomes IPv4."""
    if ":" not in host:
        return host
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


def _is_dominated(acl: Acl, denied: set[tuple[ACLResourcePatternType, str]]) -> bool:
    """Return whether other entries deny access to every resource that an entry allows."""
    if acl.pattern_type == ACLResourcePatternType.LITERAL:
        if acl.name == WILDCARD:
            return False
        if (ACLResourcePatternType.LITERAL, acl.name) in denied:
            return True
    prefixes = (acl.name[: end + 1] for end in range(len(acl.name)))
    return any((ACLResourcePatternType.PREFIXED, prefix) in denied for prefix in prefixes)
