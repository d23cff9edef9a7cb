"""Kafka's authorization rules: entries, patterns, hosts, implied operations and super users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.access_control import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from kafkacore.broker.handlers.services import RequestContext
from kafkacore.broker.metadata.acls import Acl, AclFilter, AclStore, checked_acl, checked_filter
from kafkacore.broker.metadata.authorizer import MAX_CACHED, StandardAuthorizer
from kafkacore.errors import InvalidRequestError
from kafkacore.security.principal import KafkaPrincipal
from kafkacore.testing import VirtualClock

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE, ALL = ACLOperation.READ, ACLOperation.WRITE, ACLOperation.DESCRIBE, ACLOperation.ALL
ALLOW, DENY = ACLPermissionType.ALLOW, ACLPermissionType.DENY
LITERAL, PREFIXED = ACLResourcePatternType.LITERAL, ACLResourcePatternType.PREFIXED
ANY, MATCH = ACLResourcePatternType.ANY, ACLResourcePatternType.MATCH


def acl(
    name: str = "t",
    operation: ACLOperation = READ,
    permission: ACLPermissionType = ALLOW,
    *,
    pattern: ACLResourcePatternType = LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    kind: ResourceType = TOPIC,
) -> Acl:
    return Acl(kind, name, pattern, principal, host, operation, permission)


def store_of(acls: Iterable[Acl]) -> AclStore:
    store = AclStore(VirtualClock())
    for record in store.additions(acls):
        store.add(record)
    return store


def asker(name: str = "alice", host: str = "10.0.0.1") -> RequestContext:
    return RequestContext("c", 1, host, principal=KafkaPrincipal.user(name))


def may(
    acls: Iterable[Acl], operation: ACLOperation = READ, name: str = "t", who: Any = None, **settings: Any
) -> bool:
    authorizer = StandardAuthorizer(store_of(acls), **settings)
    return authorizer.authorize(who or asker(), operation, TOPIC, name)


def test_nobody_may_do_anything_that_no_entry_allows() -> None:
    assert not may([])
    assert not may([acl(kind=GROUP)])
    assert not may([acl(principal="User:bob")])
    assert not may([acl(principal="Group:alice")])
    assert not may([acl(name="u")])
    assert may([acl()])
    assert may([acl(principal="User:*")])


def test_denial_wins_over_whatever_allows() -> None:
    for denial in (
        acl(permission=DENY),
        acl(permission=DENY, operation=ALL),
        acl("*", permission=DENY),
        acl("t", permission=DENY, pattern=PREFIXED),
        acl(permission=DENY, principal="User:*"),
    ):
        assert not may([acl(), acl("*"), denial])


def test_names_are_literal_prefixes_or_all() -> None:
    assert may([acl("*")], name="anything")
    assert may([acl("or", pattern=PREFIXED)], name="orders")
    assert may([acl("orders", pattern=PREFIXED)], name="orders")
    assert not may([acl("orders-", pattern=PREFIXED)], name="orders")
    assert not may([acl("or")], name="orders")
    # In a prefixed pattern, an asterisk is an ordinary character.
    assert not may([acl("*", pattern=PREFIXED)], name="orders")


def test_hosts_are_one_or_all() -> None:
    assert may([acl(host="10.0.0.1")])
    assert not may([acl(host="10.0.0.2")])
    assert may([acl(), acl(permission=DENY, host="10.0.0.2")])


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("0:0:0:0:0:0:0:1", "::1"),
        ("2001:0DB8::00:1", "2001:db8::1"),
        ("10.0.0.1", "::ffff:10.0.0.1"),
        ("::ffff:a00:1", "10.0.0.1"),
        ("fe80:0:0:0:0:0:0:7%eth0", "fe80::7%eth0"),
    ],
)
def test_address_is_the_same_however_it_is_written(written: str, host: str) -> None:
    entries = [acl(), acl(permission=DENY, host=written)]
    assert not may(entries, who=asker(host=host))
    assert may([acl(host=written)], who=asker(host=host))
    assert may(entries, who=asker(host=host + "2"))
    authorizer = StandardAuthorizer(store_of([acl(operation=WRITE), acl("*", WRITE, DENY, host=written)]))
    assert not authorizer.authorize_by_resource_type(asker(host=host), WRITE, TOPIC)
    assert authorizer.authorize_by_resource_type(asker(host=host + "2"), WRITE, TOPIC)


def test_host_with_a_colon_that_is_no_address_is_itself() -> None:
    assert may([acl(host="a:b")], who=asker(host="a:b"))
    assert not may([acl(host="a:b")], who=asker(host="::1"))


@pytest.mark.parametrize("operation", [READ, WRITE, ACLOperation.DELETE, ACLOperation.ALTER, ALL])
def test_who_may_touch_a_resource_may_describe_it(operation: ACLOperation) -> None:
    assert may([acl(operation=operation)], DESCRIBE)
    # Denying an operation does not deny DESCRIBE, although allowing it allows DESCRIBE.
    denied = [acl(operation=DESCRIBE), acl(operation=operation, permission=DENY)]
    assert may(denied, DESCRIBE) is (operation is not ALL)


def test_who_may_alter_configs_may_describe_them() -> None:
    assert may([acl(operation=ACLOperation.ALTER_CONFIGS)], ACLOperation.DESCRIBE_CONFIGS)
    assert not may([acl(operation=ACLOperation.ALTER)], ACLOperation.DESCRIBE_CONFIGS)


def test_super_users_may_do_everything_even_what_is_denied() -> None:
    assert may([acl(permission=DENY)], super_users=["User:alice"])
    assert not may([acl(permission=DENY)], super_users=["User:al"])


def test_resource_without_entries_is_everybody_s_if_it_is_said_so() -> None:
    assert may([acl("u")], allow_if_no_acl=True)
    assert not may([acl(principal="User:bob")], allow_if_no_acl=True)
    assert not may([acl("*", principal="User:bob")], allow_if_no_acl=True)


def test_change_of_entries_is_obeyed_at_the_next_question() -> None:
    store = store_of([])
    authorizer = StandardAuthorizer(store)
    assert not authorizer.authorize(asker(), READ, TOPIC, "t")
    (record,) = store.additions([acl()])
    store.add(record)
    assert authorizer.authorize(asker(), READ, TOPIC, "t")
    store.remove(store.removals([acl()])[0])
    assert not authorizer.authorize(asker(), READ, TOPIC, "t")


def test_names_without_end_are_not_remembered_without_end() -> None:
    authorizer = StandardAuthorizer(store_of([acl()]))
    for number in range(MAX_CACHED + 5):
        authorizer.authorize(asker(), READ, TOPIC, f"t{number}")
    assert len(authorizer._decisions) <= MAX_CACHED


def test_name_that_is_too_long_for_a_topic_is_decided_and_not_remembered() -> None:
    authorizer = StandardAuthorizer(store_of([acl("g", pattern=PREFIXED), acl("g" * 250, permission=DENY)]))
    for _ in range(2):
        assert authorizer.authorize(asker(), READ, TOPIC, "g" * 249)
        assert not authorizer.authorize(asker(), READ, TOPIC, "g" * 250)
        assert authorizer.authorize(asker(), READ, TOPIC, "g" * 32_000)
    assert {len(name) for *_, name in authorizer._decisions} == {249}


@pytest.mark.parametrize(
    ("acls", "is_allowed"),
    [
        ([], False),
        ([acl(operation=WRITE)], True),
        ([acl(operation=ALL)], True),
        ([acl(operation=READ)], False),
        ([acl(operation=WRITE, host="10.9.9.9")], False),
        ([acl(operation=WRITE), acl(operation=WRITE, permission=DENY)], False),
        ([acl(operation=WRITE), acl("*", WRITE, DENY)], False),
        ([acl("tom", WRITE), acl("t", WRITE, DENY, pattern=PREFIXED)], False),
        ([acl("t", WRITE, pattern=PREFIXED), acl("tom", WRITE, DENY, pattern=PREFIXED)], True),
        ([acl("t", WRITE, pattern=PREFIXED), acl("t", WRITE, DENY)], True),
        ([acl("*", WRITE), acl("t", WRITE, DENY, pattern=PREFIXED)], True),
    ],
)
def test_some_resource_of_a_type_may_be_written_to(acls: list[Acl], is_allowed: bool) -> None:
    authorizer = StandardAuthorizer(store_of(acls))
    assert authorizer.authorize_by_resource_type(asker(), WRITE, TOPIC) is is_allowed


NAMES = st.text("ab*", min_size=1, max_size=3)
ACLS = st.builds(
    acl,
    name=NAMES,
    operation=st.sampled_from([READ, WRITE, DESCRIBE, ALL]),
    permission=st.sampled_from([ALLOW, DENY]),
    pattern=st.sampled_from([LITERAL, PREFIXED]),
    principal=st.sampled_from(["User:alice", "User:bob", "User:*"]),
    host=st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
)


def allowed_by_rules(acls: list[Acl], operation: ACLOperation, name: str) -> bool:
    """Return whether the rules allow an operation, by a search of all entries."""
    mine = [
        each
        for each in acls
        if (each.pattern_type is PREFIXED and name.startswith(each.name))
        or (each.pattern_type is LITERAL and each.name in (name, "*"))
        if each.principal in ("User:alice", "User:*") and each.host in ("*", "10.0.0.1")
    ]
    if any(each.permission is DENY and each.operation in (operation, ALL) for each in mine):
        return False
    enough = {operation, ALL} | ({READ, WRITE} if operation is DESCRIBE else set())
    return any(each.permission is ALLOW and each.operation in enough for each in mine)


@given(st.lists(ACLS, max_size=6), st.sampled_from([READ, WRITE, DESCRIBE]), NAMES)
def test_decision_is_that_of_the_book(acls: list[Acl], operation: ACLOperation, name: str) -> None:
    assert may(acls, operation, name) is allowed_by_rules(acls, operation, name)


@given(st.lists(ACLS, max_size=6), st.sampled_from([READ, WRITE, DESCRIBE]), NAMES)
def test_what_is_denied_is_so_by_an_entry_that_denies_or_for_want_of_one(
    acls: list[Acl], operation: ACLOperation, name: str
) -> None:
    denies = [each for each in acls if each.permission is DENY]
    why = StandardAuthorizer(store_of(acls)).why_denied(asker(), operation, TOPIC, name)
    # If everything is allowed, only an entry that denies the operation can refuse it.
    is_denied = not allowed_by_rules([*denies, acl("*", ALL)], operation, name)
    assert why.startswith("an ACL denies ") if is_denied else why == "no ACL allows it"


# ---- Filters -------------------------------------------------------------------------------------------

ALL_OF_IT = AclFilter(ResourceType.ANY, None, ANY, None, None, ACLOperation.ANY, ACLPermissionType.ANY)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, {"t", "t-", "*", "u"}),
        ({"name": "t"}, {"t"}),
        ({"name": "t", "pattern_type": LITERAL}, {"t"}),
        ({"name": "t", "pattern_type": PREFIXED}, set()),
        ({"name": "t-1", "pattern_type": MATCH}, {"t-", "*"}),
        ({"name": "t", "pattern_type": MATCH}, {"t", "*"}),
        ({"pattern_type": PREFIXED}, {"t-"}),
        ({"pattern_type": MATCH}, {"t", "t-", "*", "u"}),
        ({"principal": "User:bob"}, {"u"}),
        ({"host": "10.0.0.1"}, set()),
        ({"operation": WRITE}, {"u"}),
        ({"permission": DENY}, {"u"}),
        ({"resource_type": GROUP}, set()),
    ],
)
def test_filter_means_what_kafka_s_means(change: dict[str, Any], found: set[str]) -> None:
    store = store_of(
        [acl(), acl("t-", pattern=PREFIXED), acl("*"), acl("u", WRITE, DENY, principal="User:bob")]
    )
    assert {each.name for each in store.matching(ALL_OF_IT._replace(**change))} == found


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (0, 1, "Invalid resourceType ANY"),
        (0, 99, "Invalid resourceType 99"),
        (0, ResourceType.CLUSTER, "only valid name for the CLUSTER"),
        (1, "", "empty resource name"),
        (2, 2, "Invalid patternType MATCH"),
        (3, "alice", "is not a principal: write type:name"),
        (5, 1, "Invalid operation ANY"),
        (5, -1, "Invalid operation -1"),
        (6, 1, "Invalid permissionType ANY"),
    ],
)
def test_entry_that_means_nothing_is_refused(at: int, value: Any, words: str) -> None:
    parts: list[Any] = list(acl())
    parts[at] = value
    with pytest.raises(InvalidRequestError, match=words):
        checked_acl(*parts)


@pytest.mark.parametrize("at", [0, 2, 5, 6])
@pytest.mark.parametrize("number", [0, -1, 99])
def test_filter_with_an_unknown_number_is_refused(at: int, number: int) -> None:
    parts: list[Any] = list(ALL_OF_IT)
    parts[at] = number
    with pytest.raises(InvalidRequestError, match=f"Invalid \\w+ {number} in the filter"):
        checked_filter(*parts)
