"""Manage ACLs, users and quotas with the admin clients: ours and kafka-python's.

Apache Kafka with its authorizer is the reference, and our broker gives the same responses.
"""

import kafka.admin as theirs
import kafka.errors as their_errors
import pytest
from eventually import eventually

from kafkacore.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ClientQuotaAlteration,
    ClientQuotaFilterComponent,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafkacore.errors import (
    IllegalArgumentError,
    InvalidRequestError,
    NoError,
    ResourceNotFoundError,
    SecurityDisabledError,
    UnacceptableCredentialError,
    UnsupportedVersionError,
)
from kafkacore.testing.embedded_broker import EmbeddedBroker

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ANY_PATTERN = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
LITERAL, PREFIXED = ACLResourcePatternType.LITERAL, ACLResourcePatternType.PREFIXED


def everything(principal=None):
    return ACLFilter(principal, None, ACLOperation.ANY, ACLPermissionType.ANY, ANY_PATTERN)


def entry(principal, operation, kind, name, pattern=LITERAL, permission=ACLPermissionType.ALLOW, host="*"):
    return ACL(principal, host, operation, permission, ResourcePattern(kind, name, pattern))


@pytest.fixture(scope="module")
def our_guarded_broker():
    settings = {"authorizer_class_name": AUTHORIZER, "super_users": "User:ANONYMOUS"}
    with EmbeddedBroker(**settings) as broker:
        yield {"bootstrap_servers": broker.bootstrap_servers}


@pytest.fixture(params=["Apache Kafka", "ours"])
def cluster(request):
    """Return the client settings of each cluster in turn."""
    if request.param == "ours":
        return request.getfixturevalue("our_guarded_broker")
    return request.getfixturevalue("secure_kafka").settings("PLAINTEXT")


@pytest.fixture
def admin(cluster):
    with KafkaAdminClient(**cluster) as admin:
        yield admin


@pytest.fixture
def their_admin(cluster):
    admin = theirs.KafkaAdminClient(**cluster)
    yield admin
    admin.close()


def becomes(wanted, ask):
    """Wait until ``ask`` returns this response: the broker learns of a change after its controller."""
    eventually(lambda: ask() == wanted, lambda: f"{ask()} instead of {wanted}")


def plain(acl):
    """Return the fields of an ACL entry of either library."""
    pattern = acl.resource_pattern
    return (
        acl.principal,
        acl.host,
        int(acl.operation),
        int(acl.permission_type),
        int(pattern.resource_type),
        pattern.resource_name,
        int(pattern.pattern_type),
    )


def test_entries_are_made_found_by_filters_and_deleted(admin, their_admin):
    read = entry("User:zoe", ACLOperation.READ, ResourceType.TOPIC, "orders")
    write = entry("User:zoe", ACLOperation.WRITE, ResourceType.TOPIC, "ord", PREFIXED, host="192.0.2.7")
    never = entry("User:zoe", ACLOperation.ALL, ResourceType.GROUP, "*", permission=ACLPermissionType.DENY)
    tokens = entry("User:zoe", ACLOperation.CREATE_TOKENS, ResourceType.USER, "User:bob")
    made = [read, write, never, tokens]
    assert admin.create_acls(made) == {"succeeded": made, "failed": []}
    becomes(set(made), lambda: set(admin.describe_acls(everything("User:zoe"))[0]))
    found, error = admin.describe_acls(everything("User:zoe"))
    assert error is NoError
    mine = theirs.ACLFilter(
        "User:zoe",
        None,
        theirs.ACLOperation.ANY,
        theirs.ACLPermissionType.ANY,
        theirs.ResourcePatternFilter(theirs.ResourceType.ANY, None, theirs.ACLResourcePatternType.ANY),
    )
    answer, _ = their_admin.describe_acls(mine)
    assert sorted(map(plain, answer)) == sorted(map(plain, found))
    # All entries that apply to this topic, by any pattern.
    matching = ResourcePatternFilter(ResourceType.TOPIC, "orders", ACLResourcePatternType.MATCH)
    affecting = ACLFilter("User:zoe", None, ACLOperation.ANY, ACLPermissionType.ANY, matching)
    assert set(admin.describe_acls(affecting)[0]) == {read, write}
    ((asked, gone, error),) = admin.delete_acls([affecting])
    assert (asked, set(gone), error) == (affecting, {read, write}, NoError)
    becomes({never, tokens}, lambda: set(admin.describe_acls(everything("User:zoe"))[0]))
    ((_, gone, _), (_, none, _)) = admin.delete_acls([everything("User:zoe"), everything("User:unknown")])
    assert (set(gone), none) == ({never, tokens}, [])


def test_entry_that_the_cluster_refuses_is_among_the_failed_and_says_why_if_asked(admin):
    good = entry("User:carol", ACLOperation.READ, ResourceType.TOPIC, "orders")
    bad = entry("carol", ACLOperation.READ, ResourceType.TOPIC, "orders")
    assert admin.create_acls([good, bad]) == {"succeeded": [good], "failed": [InvalidRequestError]}
    with pytest.raises(InvalidRequestError, match="principal"):
        admin.create_acls([bad], raise_errors=True)
    assert admin.delete_acls([everything("User:carol")])[0][1] == [good]


def test_cluster_without_an_authorizer_says_so(apache_kafka):
    with KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap_servers) as admin:
        with pytest.raises(SecurityDisabledError, match="No Authorizer is configured"):
            admin.describe_acls(everything())
        with pytest.raises(SecurityDisabledError, match="No Authorizer is configured"):
            admin.delete_acls([everything()], raise_errors=True)
        ((_, none, error),) = admin.delete_acls([everything()])
        assert (none, error) == ([], SecurityDisabledError)


def test_users_get_passwords_and_lose_them(admin, their_admin):
    done = admin.alter_user_scram_credentials(
        [
            UserScramCredentialUpsertion("anna", "SCRAM-SHA-256", "secret"),
            UserScramCredentialUpsertion("bert", "SCRAM-SHA-256", "secret"),
        ]
    )
    assert done == {"anna": None, "bert": None}
    strong = UserScramCredentialUpsertion("anna", "SCRAM-SHA-512", "secret", iterations=8192)
    assert admin.alter_user_scram_credentials([strong]) == {"anna": None}
    wanted = {
        "anna": {(ScramMechanism.SCRAM_SHA_256, 4096), (ScramMechanism.SCRAM_SHA_512, 8192)},
        "bert": {(ScramMechanism.SCRAM_SHA_256, 4096)},
    }

    def described(users):
        return {
            user: {(info["mechanism"], info["iterations"]) for info in answer["credential_infos"]}
            for user, answer in admin.describe_user_scram_credentials(users).items()
            if user in wanted
        }

    for users in (None, ["anna", "bert"]):
        becomes(wanted, lambda users=users: described(users))
        found = admin.describe_user_scram_credentials(users)
        assert found == their_admin.describe_user_scram_credentials(users)
    assert admin.alter_user_scram_credentials(
        [UserScramCredentialDeletion("anna", 1), UserScramCredentialDeletion("bert", "SCRAM-SHA-256")]
    ) == {"anna": None, "bert": None}
    becomes({"anna": {(ScramMechanism.SCRAM_SHA_512, 8192)}}, lambda: described(None))
    admin.alter_user_scram_credentials([UserScramCredentialDeletion("anna", 2)], raise_errors=True)
    becomes({}, lambda: described(None))


def test_what_a_user_cannot_have_is_told_of_that_user_alone(admin):
    weak = UserScramCredentialUpsertion("dora", "SCRAM-SHA-256", "secret", iterations=16)
    unknown = UserScramCredentialDeletion("unknown", "SCRAM-SHA-256")
    answer = admin.alter_user_scram_credentials(
        [weak, unknown, UserScramCredentialUpsertion("emil", "SCRAM-SHA-512", "secret")]
    )
    assert "iterations" in answer["dora"].lower()
    assert answer["unknown"]
    assert answer["emil"] is None
    with pytest.raises(UnacceptableCredentialError, match="iterations"):
        admin.alter_user_scram_credentials([weak], raise_errors=True)
    with pytest.raises(ResourceNotFoundError):
        admin.alter_user_scram_credentials([unknown], raise_errors=True)
    strong = [{"mechanism": ScramMechanism.SCRAM_SHA_512, "iterations": 4096}]
    becomes(strong, lambda: admin.describe_user_scram_credentials(["emil"])["emil"]["credential_infos"])
    described = admin.describe_user_scram_credentials(["unknown", "emil"])
    assert described["unknown"]["error"]
    assert described["unknown"]["credential_infos"] == []
    assert described["emil"]["error"] is None
    admin.alter_user_scram_credentials([UserScramCredentialDeletion("emil", 2)], raise_errors=True)


@pytest.mark.parametrize("call", ["create_acls", "delete_acls", "alter_user_scram_credentials"])
def test_wrong_kind_of_noun_is_refused_before_anything_is_asked(admin, their_admin, call):
    with pytest.raises(their_errors.IllegalArgumentError):
        getattr(their_admin, call)(["anna"])
    with pytest.raises(IllegalArgumentError, match="not str"):
        getattr(admin, call)(["anna"])


def test_quotas_are_set_described_and_removed(admin):
    """Ignore the quotas of other tests on the shared cluster."""
    alice, both, default = (
        {"user": "alice"},
        {"user": "alice", "client-id": "report"},
        {"user": None},
    )
    rates = {"producer_byte_rate": 1_000_000.0, "consumer_byte_rate": 2_000_000.0}
    done = admin.alter_client_quotas(
        [
            ClientQuotaAlteration(alice, rates),
            ClientQuotaAlteration(both, {"request_percentage": 50.0}),
            ClientQuotaAlteration(default, {"producer_byte_rate": 7.0}),
        ]
    )
    # The broker answers in an order of its own.
    assert sorted(done, key=repr) == sorted(
        ({"entity": each, "error": None} for each in (alice, both, default)), key=repr
    )

    def described(*components, strict=False):
        found = admin.describe_client_quotas(components, strict)
        ours = (each for each in found if each["entity"] in (alice, both, default))
        return sorted(((each["entity"], each["quotas"]) for each in ours), key=repr)

    of_alice = ClientQuotaFilterComponent.of_entity("user", "alice")
    becomes(3, lambda: len(described()))
    assert described(of_alice, strict=True) == [(alice, rates)]
    assert described(of_alice) == sorted([(alice, rates), (both, {"request_percentage": 50.0})], key=repr)
    assert described(ClientQuotaFilterComponent.of_default_entity("user")) == [
        (default, {"producer_byte_rate": 7.0})
    ]
    assert described(ClientQuotaFilterComponent("user")) == described()
    nothing = ClientQuotaAlteration(alice, {"producer_byte_rate": None})
    admin.alter_client_quotas([nothing], validate_only=True)
    assert described(of_alice, strict=True) == [(alice, rates)]
    admin.alter_client_quotas([nothing, ClientQuotaAlteration(both, {"request_percentage": None})])
    admin.alter_client_quotas([ClientQuotaAlteration(default, {"producer_byte_rate": None})])
    becomes([(alice, {"consumer_byte_rate": 2_000_000.0})], described)
    admin.alter_client_quotas([ClientQuotaAlteration(alice, {"consumer_byte_rate": None})])
    becomes([], described)


def test_quota_that_cannot_be_is_refused_or_told(admin):
    wrong = ClientQuotaAlteration({"user": "alice"}, {"bytes_a_fortnight": 1.0})
    with pytest.raises(InvalidRequestError, match="bytes_a_fortnight"):
        admin.alter_client_quotas([wrong])
    (answer,) = admin.alter_client_quotas([wrong], raise_errors=False)
    assert "bytes_a_fortnight" in answer["error"]
    with pytest.raises(UnsupportedVersionError, match="entity type weekday"):
        admin.describe_client_quotas([ClientQuotaFilterComponent("weekday")])
