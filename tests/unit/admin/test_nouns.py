"""Data classes for ACLs, SCRAM users and quotas: kafka-python's names, validation, and hidden passwords."""

import inspect

import pytest
from kafka import admin as theirs

from kafkacore import admin as ours
from kafkacore.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ClientQuotaFilterComponent,
    ClientQuotaMatch,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafkacore.errors import IllegalArgumentError

TOPIC = ResourcePattern(ResourceType.TOPIC, "orders")
READ, ALLOW = ACLOperation.READ, ACLPermissionType.ALLOW
SHARED = (
    "ACL",
    "ACLFilter",
    "ResourcePattern",
    "ResourcePatternFilter",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
)
ENUMS = (
    "ACLOperation",
    "ACLPermissionType",
    "ACLResourcePatternType",
    "ResourceType",
    "ScramMechanism",
)
CALLS = (
    "create_acls",
    "delete_acls",
    "describe_acls",
    "alter_user_scram_credentials",
    "describe_user_scram_credentials",
)


@pytest.mark.parametrize("name", SHARED)
def test_nouns_are_called_as_kafka_pythons(name):
    assert list(inspect.signature(getattr(ours, name)).parameters) == list(
        inspect.signature(getattr(theirs, name)).parameters
    )


@pytest.mark.parametrize("name", ENUMS)
def test_enumerations_have_all_of_kafka_pythons(name):
    assert {each.name: int(each) for each in getattr(theirs, name)}.items() <= {
        each.name: int(each) for each in getattr(ours, name)
    }.items()


@pytest.mark.parametrize("name", CALLS)
def test_calls_begin_with_the_arguments_of_kafka_pythons(name):
    wanted = list(inspect.signature(getattr(theirs.KafkaAdminClient, name)).parameters)
    assert list(inspect.signature(getattr(ours.KafkaAdminClient, name)).parameters)[: len(wanted)] == wanted


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ResourcePattern(ResourceType.ANY, "t"), "resource_type=ANY is valid only in a filter"),
        (lambda: ResourcePattern(2, "t"), "must be a member of ResourceType"),
        (
            lambda: ResourcePattern(ResourceType.TOPIC, "t", ACLResourcePatternType.MATCH),
            "LITERAL or PREFIXED, not MATCH",
        ),
        (lambda: ResourcePatternFilter(ResourceType.ANY, None, 1), "ACLResourcePatternType"),
        (
            lambda: ACL("User:a", "*", ACLOperation.ANY, ALLOW, TOPIC),
            "operation=ANY is valid only in a filter",
        ),
        (lambda: ACL("User:a", "*", READ, ACLPermissionType.ANY, TOPIC), "ALLOW or DENY"),
        (
            lambda: ACL(
                "User:a",
                "*",
                READ,
                ALLOW,
                ResourcePatternFilter(ResourceType.TOPIC, "t", ACLResourcePatternType.LITERAL),
            ),
            "needs a ResourcePattern, not a filter",
        ),
        (lambda: ACLFilter(None, None, "READ", ALLOW, TOPIC), "ACLOperation"),
        (lambda: ACLFilter(None, None, READ, ALLOW, "orders"), "ResourcePatternFilter"),
        (lambda: UserScramCredentialDeletion("a", "MD5"), "SCRAM-SHA-256 or SCRAM-SHA-512"),
        (lambda: UserScramCredentialUpsertion("a", 0, "p"), "SCRAM-SHA-256 or SCRAM-SHA-512"),
        (lambda: ClientQuotaFilterComponent("user", ClientQuotaMatch.ANY, "alice"), "must not have one"),
        (lambda: ClientQuotaFilterComponent("user", ClientQuotaMatch.EXACT), "EXACT needs a name"),
    ],
)
def test_what_cannot_be_is_refused_with_what_may(make, words):
    with pytest.raises(IllegalArgumentError, match=words):
        make()


def test_entries_and_filters_are_equal_by_value_and_may_be_keys():
    one, same = (ACL("User:a", "*", READ, ALLOW, ResourcePattern(ResourceType.TOPIC, "t")) for _ in "ab")
    assert one == same
    assert len({one, same}) == 1
    assert one != ACL("User:a", "*", ACLOperation.WRITE, ALLOW, ResourcePattern(ResourceType.TOPIC, "t"))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "scram_sha_512", 2, ScramMechanism.SCRAM_SHA_512])
def test_mechanism_has_many_names(mechanism):
    assert UserScramCredentialDeletion("a", mechanism).mechanism is ScramMechanism.SCRAM_SHA_512


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_brokers_are_told_what_kafka_python_tells_them(mechanism):
    one, other = (
        each.UserScramCredentialUpsertion("alice", mechanism, "pässword", 5000, b"salt")
        for each in (ours, theirs)
    )
    assert one.salted_password == other.salted_password
    assert (one.user, one.iterations, one.salt) == (other.user, other.iterations, other.salt)
    assert int(one.mechanism) == int(other.mechanism)


def test_salts_differ_and_the_password_is_nowhere_in_the_noun():
    one, other = (UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "hunter2-zq7") for _ in "ab")
    assert one.salt != other.salt
    assert "hunter2" not in repr(one) + repr(vars(one))
    assert one.salted_password.hex() not in repr(one)
