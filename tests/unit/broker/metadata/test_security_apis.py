"""Requests for ACLs, users and quotas: the responses match Kafka's, and changes survive a restart."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from model.broker_in_hand import BrokerInHand, broker_in_hand

from kafkacore.broker.config.config_keys import STANDARD_AUTHORIZER
from kafkacore.broker.metadata import end_offset_checkpoint
from kafkacore.broker.metadata.metadata_log import FILE_NAME, MetadataLog
from kafkacore.broker.quota import QuotaEntity, QuotaKind
from kafkacore.broker.storage import identity
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import (
    DuplicateResourceError,
    InvalidRequestError,
    KafkaStorageError,
    ResourceNotFoundError,
    SecurityDisabledError,
    UnacceptableCredentialError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
)
from kafkacore.protocol.generated.alter_client_quotas import AlterClientQuotasRequest
from kafkacore.protocol.generated.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kafkacore.protocol.generated.create_acls import CreateAclsRequest
from kafkacore.protocol.generated.delete_acls import DeleteAclsRequest
from kafkacore.protocol.generated.describe_acls import DescribeAclsRequest
from kafkacore.protocol.generated.describe_client_quotas import DescribeClientQuotasRequest
from kafkacore.protocol.generated.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kafkacore.protocol.generated.metadata_records import ClientQuotaRecord
from kafkacore.testing import VirtualClock

GUARDED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
SHA_256, SHA_512 = 1, 2


def creation(**changes: Any) -> Any:
    entry = {
        "resource_type": 2,
        "resource_name": "t",
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return CreateAclsRequest.AclCreation(**entry | changes)


def create(broker: BrokerInHand, *creations: Any) -> list[int]:
    return [each.error_code for each in broker.ask(CreateAclsRequest(creations=list(creations))).results]


def everything() -> dict[str, Any]:
    return {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }


def described(broker: BrokerInHand) -> list[tuple[str, str]]:
    answer = broker.ask(DescribeAclsRequest(**everything()))
    assert answer.error_code == 0
    return [(each.resource_name, acl.principal) for each in answer.resources for acl in each.acls]


def set_password(user: str, mechanism: int = SHA_256, iterations: int = 4096) -> Any:
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"p" * 32
    )


def alter_users(broker: BrokerInHand, sets: list[Any], deletes: list[Any] | None = None) -> dict[str, int]:
    message = AlterUserScramCredentialsRequest(
        deletions=[
            AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=name, mechanism=mechanism)
            for name, mechanism in deletes or []
        ],
        upsertions=sets,
    )
    return {each.user: each.error_code for each in broker.ask(message).results}


def alter_quota(broker: BrokerInHand, parts: dict[str, str | None], **limits: float | None) -> int:
    shape = AlterClientQuotasRequest
    entry = shape.EntryData(
        entity=[shape.EntityData(entity_type=kind, entity_name=name) for kind, name in parts.items()],
        ops=[
            shape.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in limits.items()
        ],
    )
    (answer,) = broker.ask(shape(entries=[entry], validate_only=False)).entries
    return int(answer.error_code)


def quotas(broker: BrokerInHand, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    shape = DescribeClientQuotasRequest
    parts = [
        shape.ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components
    ]
    answer = broker.ask(shape(components=parts, strict=strict))
    if answer.error_code:
        return answer.error_code
    return [
        ({part.entity_type: part.entity_name for part in entry.entity}, entry.values[0].value)
        for entry in answer.entries
    ]


# ---- ACLs ----------------------------------------------------------------------------------------------


def test_entries_are_made_once_told_deleted_and_there_after_a_start(tmp_path: Path) -> None:
    with broker_in_hand(tmp_path, **GUARDED) as broker:
        entry = creation()
        assert create(broker, entry, entry, creation(resource_name="u"), creation(operation=1)) == [
            0,
            0,
            0,
            InvalidRequestError.errno,
        ]
        assert create(broker, entry) == [0]
        assert described(broker) == [("t", "User:alice"), ("u", "User:alice")]
    with broker_in_hand(tmp_path, **GUARDED) as broker:
        assert described(broker) == [("t", "User:alice"), ("u", "User:alice")]
        filters = [everything() | {"resource_name_filter": "t"}, everything() | {"operation": 0}]
        answer = broker.ask(
            DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**each) for each in filters])
        )
        assert [each.error_code for each in answer.filter_results] == [0, InvalidRequestError.errno]
        assert [each.resource_name for each in answer.filter_results[0].matching_acls] == ["t"]
        assert described(broker) == [("u", "User:alice")]
    with broker_in_hand(tmp_path, **GUARDED) as broker:
        assert described(broker) == [("u", "User:alice")]


def test_broker_without_an_authorizer_has_no_entries(tmp_path: Path) -> None:
    with broker_in_hand(tmp_path) as broker:
        assert create(broker, creation()) == [SecurityDisabledError.errno]
        answer = broker.ask(DescribeAclsRequest(**everything()))
        assert answer.error_code == SecurityDisabledError.errno
        assert "Set authorizer.class.name" in answer.error_message


def test_change_that_cannot_be_written_is_told_and_not_obeyed(tmp_path: Path, monkeypatch: Any) -> None:
    with broker_in_hand(tmp_path, **GUARDED) as broker:

        def refuse(*_: Any) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(broker.services.metadata._log, "append", refuse)
        assert create(broker, creation()) == [KafkaStorageError.errno]
        assert alter_users(broker, [set_password("alice")]) == {"alice": KafkaStorageError.errno}
        assert alter_quota(broker, {"user": "alice"}, producer_byte_rate=5.0) == KafkaStorageError.errno
        assert described(broker) == []
        assert broker.services.metadata.users.scram("SCRAM-SHA-256", "alice") is None
        assert not broker.services.quotas.is_enabled


def test_log_that_is_mostly_dead_is_written_anew(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("kafkacore.broker.metadata.cluster_metadata.MIN_RECORDS_TO_REWRITE", 10)
    with broker_in_hand(tmp_path, **GUARDED) as broker:
        create(broker, creation())
        alter_users(broker, [set_password("alice")])
        sizes = []
        for limit in range(1, 30):
            assert alter_quota(broker, {"client-id": "c"}, producer_byte_rate=float(limit)) == 0
            sizes.append((tmp_path / FILE_NAME).stat().st_size)
        assert max(sizes) < 3000
    with broker_in_hand(tmp_path, **GUARDED) as broker:
        assert described(broker) == [("t", "User:alice")]
        assert broker.services.metadata.users.scram("SCRAM-SHA-256", "alice") is not None
        assert quotas(broker) == [({"client-id": "c"}, 29.0)]


def test_damaged_log_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    with broker_in_hand(tmp_path, **GUARDED) as broker:
        create(broker, creation())
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(KafkaStorageError, match="is damaged at byte 0"), broker_in_hand(tmp_path, **GUARDED):
        pass


def test_limit_that_no_request_can_have_set_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    entity = [ClientQuotaRecord.EntityData(entity_type="user", entity_name="u")]
    record = ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=math.nan, remove=False)
    log = MetadataLog(tmp_path / FILE_NAME, Disk(), VirtualClock())
    log.append([record])
    log.close()
    with (
        pytest.raises(KafkaStorageError, match=r"has an invalid record: .* greater than 0"),
        broker_in_hand(tmp_path),
    ):
        pass


# ---- Users ---------------------------------------------------------------------------------------------


def test_users_are_set_described_and_deleted_by_kafka_s_rules(tmp_path: Path) -> None:
    with broker_in_hand(tmp_path) as broker:
        wanted = [
            set_password("alice"),
            set_password("twice"),
            set_password("twice", SHA_512),
            set_password("few", iterations=4095),
            set_password("many", iterations=16385),
            set_password("odd", 3),
            set_password(""),
        ]
        assert alter_users(broker, wanted, [("ghost", SHA_256)]) == {
            "alice": 0,
            "twice": DuplicateResourceError.errno,
            "few": UnacceptableCredentialError.errno,
            "many": UnacceptableCredentialError.errno,
            "odd": UnsupportedSaslMechanismError.errno,
            "": UnacceptableCredentialError.errno,
            "ghost": ResourceNotFoundError.errno,
        }
        assert alter_users(broker, [set_password("alice", SHA_512, 8192)]) == {"alice": 0}
    with broker_in_hand(tmp_path) as broker:
        (found,) = broker.ask(DescribeUserScramCredentialsRequest(users=None)).results
        infos = [(each.mechanism, each.iterations) for each in found.credential_infos]
        assert (found.user, infos) == ("alice", [(SHA_256, 4096), (SHA_512, 8192)])
        names = [DescribeUserScramCredentialsRequest.UserName(name=name) for name in ("alice", "a", "a", "b")]
        answer = broker.ask(DescribeUserScramCredentialsRequest(users=names))
        assert {each.user: each.error_code for each in answer.results} == {
            "alice": 0,
            "a": DuplicateResourceError.errno,
            "b": ResourceNotFoundError.errno,
        }
        assert alter_users(broker, [], [("alice", SHA_256)]) == {"alice": 0}
        assert broker.services.metadata.users.scram("SCRAM-SHA-256", "alice") is None
        assert broker.services.metadata.users.scram("SCRAM-SHA-512", "alice") is not None


def described_users(broker: BrokerInHand) -> dict[str, list[int]]:
    results = broker.ask(DescribeUserScramCredentialsRequest(users=None)).results
    return {each.user: [info.mechanism for info in each.credential_infos] for each in results}


def test_user_of_the_configuration_who_was_deleted_does_not_come_back(
    tmp_path: Path, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kafkacore.broker.metadata.cluster_metadata.MIN_RECORDS_TO_REWRITE", 10)
    users = {"security_protocol": "SASL_PLAINTEXT", "users": dict.fromkeys(("alice", "bob", "eve"), "5ecret")}
    with broker_in_hand(tmp_path, **users) as broker:
        both = [SHA_256, SHA_512]
        assert described_users(broker) == {"alice": both, "bob": both, "eve": both}
        assert alter_users(broker, [], [("alice", SHA_256)]) == {"alice": 0}
        assert alter_users(broker, [], [("alice", SHA_256)]) == {"alice": ResourceNotFoundError.errno}
        assert alter_users(broker, [set_password("bob")], [("alice", SHA_512)]) == {"alice": 0, "bob": 0}
        assert alter_users(broker, [], [("bob", SHA_256)]) == {"bob": 0}
        assert described_users(broker) == {"bob": [SHA_512], "eve": both}
    for more in (users, {}, users):
        with broker_in_hand(tmp_path, **more) as broker:
            assert described_users(broker) == ({"bob": [SHA_512], "eve": both} if more else {})
            # Make many changes, so that the log is rewritten.
            for limit in range(1, 40):
                assert alter_quota(broker, {"client-id": "c"}, producer_byte_rate=float(limit)) == 0
    assert "ignoring the password of user 'alice' in the configuration" in caplog.text
    assert "'eve'" not in caplog.text
    with broker_in_hand(tmp_path, **users) as broker:
        assert alter_users(broker, [set_password("alice")]) == {"alice": 0}
        assert described_users(broker) == {"alice": [SHA_256], "bob": [SHA_512], "eve": both}


def test_salted_password_is_not_in_the_log(tmp_path: Path) -> None:
    with broker_in_hand(tmp_path) as broker:
        alter_users(broker, [set_password("alice")])
    assert b"p" * 32 not in (tmp_path / FILE_NAME).read_bytes()


# ---- Quotas --------------------------------------------------------------------------------------------


def test_keys_of_a_quota_come_in_kafkas_order(tmp_path: Path) -> None:
    with broker_in_hand(tmp_path) as broker:
        limits = {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0, "request_percentage": 3.0}
        limits["controller_mutation_rate"] = 0.5
        assert alter_quota(broker, {"user": "alice"}, **limits) == 0
        (entry,) = broker.ask(DescribeClientQuotasRequest()).entries
        assert [each.key for each in entry.values] == [
            "consumer_byte_rate",
            "controller_mutation_rate",
            "request_percentage",
            "producer_byte_rate",
        ]


@pytest.mark.kafka(
    "ClientQuotaManagerTest.testSetAndRemoveDefaultUserQuota",
    "ClientQuotaManagerTest.testSetAndRemoveUserQuota",
    "ClientQuotaManagerTest.testSetAndRemoveUserClientQuota",
)
def test_quotas_are_set_found_and_removed_by_kafka_s_rules(tmp_path: Path) -> None:
    with broker_in_hand(tmp_path) as broker:
        assert alter_quota(broker, {"user": "alice"}, producer_byte_rate=1.0) == 0
        assert alter_quota(broker, {"user": None}, producer_byte_rate=2.0) == 0
        assert alter_quota(broker, {"user": "alice", "client-id": "c"}, consumer_byte_rate=3.0) == 0
        assert alter_quota(broker, {"client-id": "c"}, request_percentage=0.5) == 0
    with broker_in_hand(tmp_path) as broker:
        assert len(quotas(broker)) == 4
        assert quotas(broker, ("user", 0, "alice"), strict=True) == [({"user": "alice"}, 1.0)]
        assert len(quotas(broker, ("user", 0, "alice"))) == 2
        assert quotas(broker, ("user", 1, None)) == [({"user": None}, 2.0)]
        assert len(quotas(broker, ("user", 2, None))) == 3
        assert quotas(broker, ("ip", 2, None)) == []
        assert alter_quota(broker, {"user": "alice"}, producer_byte_rate=None) == 0
        assert len(quotas(broker)) == 3


@pytest.mark.parametrize(
    ("parts", "limits"),
    [
        ({}, {"producer_byte_rate": 1.0}),
        ({"user": ""}, {"producer_byte_rate": 1.0}),
        ({"group": "g"}, {"producer_byte_rate": 1.0}),
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 0.0}),
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 0.5}),
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 3e9}),
        ({"ip": "10.0.0.1"}, {"producer_byte_rate": 1.0}),
        ({"ip": "10.0.0.1"}, {"controller_mutation_rate": 1.0}),
        ({"ip": "10.0.0.1", "user": "u"}, {"connection_creation_rate": 1.0}),
        ({"ip": "localhost"}, {"connection_creation_rate": 1.0}),
        ({"ip": ""}, {"connection_creation_rate": 1.0}),
        ({"user": "u"}, {"connection_creation_rate": 1.0}),
        ({"user": "u"}, {"controller_mutation_rate": 0.0}),
        ({"user": "u"}, {"bytes": 1.0}),
        ({"user": "u"}, {"producer_byte_rate": 0.0}),
        ({"user": "u"}, {"producer_byte_rate": 1.5}),
        ({"user": "u"}, {"producer_byte_rate": 1e19}),
        ({"user": "u"}, {"request_percentage": float("nan")}),
    ],
)
def test_quota_that_cannot_be_is_refused(tmp_path: Path, parts: Any, limits: Any) -> None:
    with broker_in_hand(tmp_path) as broker:
        assert alter_quota(broker, parts, **limits) == InvalidRequestError.errno
        assert quotas(broker) == []


def test_largest_long_is_a_quota(tmp_path: Path) -> None:
    """Java sends ``Long.MAX_VALUE`` as the next float, which is 2**63."""
    with broker_in_hand(tmp_path) as broker:
        assert alter_quota(broker, {"user": "u"}, producer_byte_rate=float(2**63)) == 0
        assert quotas(broker) == [({"user": "u"}, float(2**63))]


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([("user", 0, None)], InvalidRequestError),
        ([("user", 1, "u")], InvalidRequestError),
        ([("user", 3, None)], InvalidRequestError),
        ([("", 2, None)], InvalidRequestError),
        ([("user", 2, None), ("user", 1, None)], InvalidRequestError),
        ([("user", 2, None), ("ip", 2, None)], InvalidRequestError),
        ([("group", 2, None)], UnsupportedVersionError),
    ],
)
def test_filter_of_quotas_that_means_nothing_is_refused(tmp_path: Path, components: Any, error: Any) -> None:
    with broker_in_hand(tmp_path) as broker:
        assert quotas(broker, *components) == error.errno


def test_rates_of_addresses_are_durable_and_in_effect(tmp_path: Path) -> None:
    with broker_in_hand(tmp_path) as broker:
        for ip, rate in (("10.0.0.1", 5.0), (None, 7.0), ("0::1", 9.0), ("10.0.0.2", 3.0)):
            assert alter_quota(broker, {"ip": ip}, connection_creation_rate=rate) == 0
        assert alter_quota(broker, {"ip": "10.0.0.2"}, connection_creation_rate=None) == 0
        assert alter_quota(broker, {"user": "u"}, producer_byte_rate=1.0) == 0
    with broker_in_hand(tmp_path) as broker:
        expected = [({"ip": "10.0.0.1"}, 5.0), ({"ip": None}, 7.0), ({"ip": "0::1"}, 9.0)]
        assert quotas(broker, ("ip", 2, None), strict=True) == expected
        assert quotas(broker, ("ip", 1, None)) == [({"ip": None}, 7.0)]
        limits = broker.services.quotas.connections
        assert [limits.limit(ip) for ip in ("10.0.0.1", "::1", "10.0.0.2")] == [5.0, 9.0, 7.0]
        assert alter_quota(broker, {"ip": None}, connection_creation_rate=None) == 0
        assert limits.limit("10.0.0.2") is None


def test_most_precise_limit_is_obeyed_and_shared_by_whom_it_is_for(tmp_path: Path) -> None:
    with broker_in_hand(
        tmp_path, **{"quota.producer.default": 90, "quota.producer.overrides": "old=80"}
    ) as broker:
        quota = broker.services.quotas.of(QuotaKind.PRODUCE)
        assert (quota.limit("c", "u"), quota.limit("old", "u")) == (90, 80)
        order: list[tuple[dict[str, str | None], QuotaEntity]] = [
            ({"client-id": None}, QuotaEntity(None, "c")),
            ({"client-id": "c"}, QuotaEntity(None, "c")),
            ({"user": None}, QuotaEntity("u", None)),
            ({"user": None, "client-id": None}, QuotaEntity("u", "c")),
            ({"user": None, "client-id": "c"}, QuotaEntity("u", "c")),
            ({"user": "u"}, QuotaEntity("u", None)),
            ({"user": "u", "client-id": None}, QuotaEntity("u", "c")),
            ({"user": "u", "client-id": "c"}, QuotaEntity("u", "c")),
        ]
        for limit, (parts, shared) in enumerate(order, 1):
            assert alter_quota(broker, parts, producer_byte_rate=float(limit)) == 0
            assert quota._limits.obeyed("c", "u") == (limit, shared)
        # A default for all users limits each user separately.
        assert quota._limits.obeyed("d", "v") == (4.0, QuotaEntity("v", "d"))


def test_clients_of_a_user_share_the_user_s_limit(tmp_path: Path) -> None:
    with broker_in_hand(tmp_path) as broker:
        alter_quota(broker, {"user": "u"}, producer_byte_rate=100.0)
        quota = broker.services.quotas.of(QuotaKind.PRODUCE)
        assert quota.record_and_get_throttle_ms("one", 900, 0, "u") == 0
        assert quota.record_and_get_throttle_ms("two", 900, 1, "u") > 0
        assert quota.record_and_get_throttle_ms("two", 900, 1, "v") == 0


# ---- Missing metadata log ------------------------------------------------------------------------------


def secured(folder: Path) -> None:
    """Create a data folder with a stored ACL."""
    with broker_in_hand(folder, **GUARDED) as broker:
        assert create(broker, creation(permission_type=2)) == [0]


def without_log(folder: Path) -> None:
    (folder / FILE_NAME).unlink()
    (folder / end_offset_checkpoint.FILE_NAME).unlink()


def lines_of(folder: Path) -> list[str]:
    return (folder / identity.FILE_NAME).read_text().splitlines()


def test_broker_whose_metadata_log_is_gone_does_not_start_as_a_new_one(tmp_path: Path) -> None:
    secured(tmp_path)
    without_log(tmp_path)
    for _ in range(2):
        with (
            pytest.raises(KafkaStorageError, match=f"{FILE_NAME} is missing. It stores the ACLs"),
            broker_in_hand(tmp_path, **GUARDED),
        ):
            pass
    assert not (tmp_path / FILE_NAME).exists()
    # Follow the advice of the error message.
    left = [line for line in lines_of(tmp_path) if not line.startswith(identity.METADATA_KEY)]
    (tmp_path / identity.FILE_NAME).write_text("".join(f"{line}\n" for line in left))
    with broker_in_hand(tmp_path, **GUARDED) as broker:
        assert create(broker, creation()) == [0]


def test_folder_of_a_version_that_did_not_note_its_metadata_log_does_from_its_next_start(
    tmp_path: Path,
) -> None:
    secured(tmp_path)
    noted = lines_of(tmp_path)
    left = [line for line in noted if not line.startswith(identity.METADATA_KEY)]
    assert len(left) == len(noted) - 1
    (tmp_path / identity.FILE_NAME).write_text("".join(f"{line}\n" for line in left))
    with broker_in_hand(tmp_path, **GUARDED):
        assert lines_of(tmp_path) == noted
    without_log(tmp_path)
    with pytest.raises(KafkaStorageError, match="is missing"), broker_in_hand(tmp_path, **GUARDED):
        pass


def test_folder_in_which_no_metadata_was_ever_kept_starts_without_a_log(tmp_path: Path) -> None:
    for _ in range(2):
        with broker_in_hand(tmp_path, **GUARDED):
            assert not (tmp_path / FILE_NAME).exists()
    assert not any(line.startswith(identity.METADATA_KEY) for line in lines_of(tmp_path))
