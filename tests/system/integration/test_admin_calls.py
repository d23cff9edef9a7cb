"""Every documented admin call of kafka-python, made by it and by us, has the same result.

Both clients call Apache Kafka and our broker. Calls that our broker does not serve fail alike. Names of
errors, ids and bytes are compared in one form.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import ModuleType
from typing import Any

import confluent_kafka
import kafka
import kafka.admin
import pytest
from eventually import BUDGET_S, eventually
from model.new_topics import create_topics
from peers.apache_kafka import ApacheKafka
from peers.java_tools import JavaTools, started_java_tools
from peers.secure_kafka import SecureKafka

import kafkacore
import kafkacore.admin
from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.errors import (
    DelegationTokenNotFoundError,
    GroupIdNotFoundError,
    NoError,
    ProducerFencedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkacore.structs import OffsetAndMetadata, TopicPartition
from kafkacore.testing.embedded_broker import EmbeddedBroker
from kafkacore.wire import Uuid

#: Values that change from call to call.
VOLATILE = {
    "high_watermark",
    "last_caught_up_timestamp",
    "last_fetch_timestamp",
    "log_end_offset",
    "usable_bytes",
}
#: Fields that only our results have.
OURS_ONLY = {"group_type"}
_ERROR_TEXT = re.compile(r"^(\[Error \d+\]) \w+")


@dataclass(frozen=True)
class Library:
    """One of the two clients, with the classes that its arguments need."""

    name: str
    admin: ModuleType
    structs: ModuleType
    client: Any

    def mine(self, what: str) -> str:
        """Return a name of this library's own, which is the same in both results."""
        return f"{what}-by-{self.name}"

    def tp(self, topic: str, partition: int) -> Any:
        return self.structs.TopicPartition(topic, partition)

    def resource(self, kind: str, name: str, configs: object = None) -> Any:
        return self.admin.ConfigResource(kind, name, configs)

    def plain(self, value: Any) -> Any:
        """Return a value in the form in which the results of both libraries are compared."""
        if isinstance(value, type) and issubclass(value, Exception):
            # kafka-python has a subclass for a version that the client finds missing.
            return "UnsupportedVersionError" if "IncompatibleBroker" in value.__name__ else value.__name__
        if isinstance(value, Enum):
            return int(value) if isinstance(value, IntEnum) else value.value
        if isinstance(value, str):
            return _ERROR_TEXT.sub(r"\1", value.replace(f"-by-{self.name}", "-by-me"))
        if isinstance(value, Uuid | uuid.UUID):
            return None if value.int == 0 else str(value)
        if isinstance(value, bytes):
            return value.decode("latin-1")
        if hasattr(value, "api_versions"):
            return self.plain(value.api_versions)
        if hasattr(value, "_asdict"):
            return self.plain(value._asdict())
        if hasattr(value, "to_dict"):
            return self.plain(value.to_dict())
        if isinstance(value, Mapping):
            return {
                str(self.plain(key)): self._field(key, each)
                for key, each in value.items()
                if key not in VOLATILE | OURS_ONLY
            }
        if isinstance(value, set | frozenset):
            return sorted(map(str, map(self.plain, value)))
        if isinstance(value, list | tuple):
            return [self.plain(each) for each in value]
        return value

    def _field(self, name: object, value: Any) -> Any:
        # kafka-python's offsets have None where ours have -1, as in the protocol.
        return -1 if name == "leader_epoch" and value is None else self.plain(value)


class World:
    """A broker with topics, records and groups for the calls."""

    def __init__(self, name: str, servers: str, has_transactions: bool) -> None:
        self.has_transactions = has_transactions
        self.servers = servers
        self.topic, self.group, self.busy = f"{name}-calls", f"{name}-calls-offsets", f"{name}-calls-busy"
        self._opened: list[KafkaConsumer | KafkaProducer] = []

    def fill(self, libraries: list[Library]) -> None:
        names = [self.topic, *(library.mine(self.topic) for library in libraries)]
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            create_topics(self.servers, *(NewTopic(name, 2, 1) for name in names))
            with KafkaProducer(bootstrap_servers=self.servers) as producer:
                for name in names:
                    for number in range(3):
                        producer.send(name, b"v", partition=0, timestamp_ms=1_000 * number)
            committed = {TopicPartition(self.topic, 0): OffsetAndMetadata(2, "two", 0)}
            for group in (self.group, *(library.mine(self.group) for library in libraries)):
                assert set(admin.alter_group_offsets(group, committed).values()) == {NoError}
        for group in (self.busy, *(library.mine(self.busy) for library in libraries)):
            self._join(group)
        if self.has_transactions:
            self.open_transaction(f"{self.topic}-open")

    def _join(self, group: str) -> None:
        consumer = KafkaConsumer(
            self.topic,
            bootstrap_servers=self.servers,
            group_id=group,
            group_instance_id="static",
            client_id="member",
            enable_auto_commit=False,
        )
        self._opened.append(consumer)
        eventually(consumer.assignment, step=lambda: consumer.poll(100))

    def open_transaction(self, transactional_id: str) -> tuple[int, int]:
        """Leave a transaction open, and return its producer's id and epoch."""
        producer = KafkaProducer(bootstrap_servers=self.servers, transactional_id=transactional_id)
        self._opened.append(producer)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(self.topic, b"open", partition=1).get(timeout=BUDGET_S)
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            (found,) = admin.describe_transactions([transactional_id]).values()
        return found.producer_id, found.producer_epoch

    def close(self) -> None:
        for each in self._opened:
            if isinstance(each, KafkaProducer):
                each.close(timeout=0)
            else:
                each.close()


@pytest.fixture(scope="module")
def our_own_broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(log_retention_ms=-1, group_initial_rebalance_delay_ms=0) as broker:
        yield broker


@pytest.fixture(scope="module", params=["Apache Kafka", "ours"])
def both(request: pytest.FixtureRequest) -> Iterator[tuple[World, list[Library]]]:
    is_apache = request.param == "Apache Kafka"
    broker = request.getfixturevalue("apache_kafka" if is_apache else "our_own_broker")
    servers = broker.bootstrap_servers
    world = World("kafka" if is_apache else "embedded", servers, has_transactions=is_apache)
    libraries = [
        Library(name, module.admin, module.structs, module.admin.KafkaAdminClient(bootstrap_servers=servers))
        for name, module in (("theirs", kafka), ("ours", kafkacore))
    ]
    try:
        world.fill(libraries)
        yield world, libraries
    finally:
        world.close()
        for library in libraries:
            library.client.close()


Call = Callable[[Library, World], Any]


def without_ids(result: dict[str, Any]) -> dict[str, Any]:
    topics = [topic | {"topic_id": topic["topic_id"] is None} for topic in result["topics"]]
    return {"topics": sorted(topics, key=lambda topic: str(topic["name"]))}


def delete_by_id(lib: Library, topic: str) -> Any:
    lib.client.wait_for_topics([topic])
    (described,) = lib.client.describe_topics([topic])
    return lib.client.delete_topics([uuid.UUID(described["topic_id"])])


def created_partitions(response: Any) -> list[tuple[str, int, str | None]]:
    return [(each.name, each.error_code, each.error_message) for each in response.results]


def elected(response: Any) -> list[Any]:
    return [
        (topic.topic, each.partition_id, each.error_code, each.error_message)
        for topic in response.replica_election_results
        for each in topic.partition_result
    ]


def abort(lib: Library, world: World) -> Any:
    producer_id, epoch = 1, 1
    if world.has_transactions:
        producer_id, epoch = world.open_transaction(lib.mine(f"{world.topic}-abort"))
    return lib.client.abort_transaction(
        lib.admin.AbortTransactionSpec(lib.tp(world.topic, 1), producer_id, epoch)
    )


def every_acl(lib: Library, principal: str | None = None) -> Any:
    admin = lib.admin
    pattern = admin.ResourcePatternFilter(admin.ResourceType.ANY, None, admin.ACLResourcePatternType.ANY)
    return admin.ACLFilter(principal, None, admin.ACLOperation.ANY, admin.ACLPermissionType.ANY, pattern)


def one_acl(lib: Library) -> Any:
    admin = lib.admin
    pattern = admin.ResourcePattern(admin.ResourceType.TOPIC, "orders")
    return admin.ACL("User:zoe", "*", admin.ACLOperation.READ, admin.ACLPermissionType.ALLOW, pattern)


def listings_of(lib: Library, world: World, **filters: object) -> list[Any]:
    groups = {each["group_id"]: each for each in lib.client.list_groups(**filters)}
    return [groups.get(name) for name in (world.group, world.busy)]


#: Calls that change nothing: "method" or "method: variation" → the call.
READING: dict[str, Call] = {
    "list_topics": lambda lib, world: [name for name in lib.client.list_topics() if name == world.topic],
    "describe_topics": lambda lib, world: lib.client.describe_topics([world.topic]),
    "describe_topics: missing": lambda lib, world: lib.client.describe_topics([world.topic, "missing"]),
    "describe_topics: by id": lambda lib, world: lib.client.describe_topics(
        [uuid.UUID(lib.client.describe_topics([world.topic])[0]["topic_id"]), uuid.UUID(int=7)]
    ),
    "describe_topic_partitions": lambda lib, world: lib.client.describe_topic_partitions(
        [world.topic, "missing"], response_partition_limit=1
    ),
    "describe_topic_partitions: next page": lambda lib, world: lib.client.describe_topic_partitions(
        [world.topic], cursor={"topic_name": world.topic, "partition_index": 1}
    ),
    "wait_for_topics": lambda lib, world: lib.client.wait_for_topics([world.topic]),
    "wait_for_topics: missing": lambda lib, world: lib.client.wait_for_topics(["missing"], timeout_ms=1),
    "list_partition_offsets": lambda lib, world: lib.client.list_partition_offsets(
        {lib.tp(world.topic, 0): lib.admin.OffsetSpec.LATEST, lib.tp(world.topic, 1): 5}
    ),
    "list_partition_offsets: earliest": lambda lib, world: lib.client.list_partition_offsets(
        {lib.tp(world.topic, 0): lib.admin.OffsetSpec.EARLIEST}, isolation_level="READ_COMMITTED"
    ),
    "list_partition_offsets: newest timestamp": lambda lib, world: lib.client.list_partition_offsets(
        {lib.tp(world.topic, 0): lib.admin.OffsetSpec.MAX_TIMESTAMP}
    ),
    "list_partition_offsets: missing": lambda lib, world: lib.client.list_partition_offsets(
        {lib.tp(world.topic, 9): lib.admin.OffsetSpec.LATEST}
    ),
    "list_partition_reassignments": lambda lib, world: lib.client.list_partition_reassignments(
        [lib.tp(world.topic, 0)]
    ),
    "describe_configs": lambda lib, world: lib.client.describe_configs(
        [
            lib.resource("TOPIC", world.topic, ["retention.ms", "cleanup.policy"]),
            lib.resource("BROKER", "1", ["num.partitions", "message.max.bytes"]),
        ],
        include_synonyms=True,
        config_filter="all",
    ),
    "describe_configs: modified": lambda lib, world: lib.client.describe_configs(
        [lib.resource("TOPIC", world.topic)]
    ),
    "describe_configs: dynamic": lambda lib, world: lib.client.describe_configs(
        [lib.resource("TOPIC", world.topic)], config_filter=lib.admin.ConfigFilterType.DYNAMIC
    ),
    "list_config_resources": lambda lib, world: {
        kind: sorted(name for name in names if name == world.topic)
        for kind, names in lib.client.list_config_resources(["TOPIC", "CLIENT_METRICS"]).items()
    },
    "list_groups": lambda lib, world: listings_of(lib, world),
    "list_groups: stable": lambda lib, world: listings_of(
        lib, world, states_filter=["Stable"], types_filter=[lib.admin.GroupType.CLASSIC]
    ),
    "describe_groups": lambda lib, world: lib.client.describe_groups([world.group, "missing"]),
    "describe_groups: members": lambda lib, world: lib.client.describe_groups([world.busy]),
    "list_group_offsets": lambda lib, world: lib.client.list_group_offsets([world.group, world.busy]),
    "list_group_offsets: partitions": lambda lib, world: lib.client.list_group_offsets(
        {world.group: [lib.tp(world.topic, 0), lib.tp(world.topic, 1)], "missing": None}
    ),
    "describe_cluster": lambda lib, world: lib.client.describe_cluster(),
    "describe_log_dirs": lambda lib, world: lib.client.describe_log_dirs({world.topic: [0]}),
    "describe_log_dirs: of a broker": lambda lib, world: lib.client.describe_log_dirs(
        [world.topic], brokers=[1]
    ),
    "describe_metadata_quorum": lambda lib, world: lib.client.describe_metadata_quorum(),
    "describe_features": lambda lib, world: lib.client.describe_features(),
    "describe_features: of the controller": lambda lib, world: lib.client.describe_features(
        send_request_to_controller=True
    ),
    "api_versions": lambda lib, world: lib.client.api_versions(),
    "get_broker_version_data": lambda lib, world: lib.client.get_broker_version_data(1),
    "list_transactions": lambda lib, world: {
        broker: [each for each in found if each.transactional_id == f"{world.topic}-open"]
        for broker, found in lib.client.list_transactions().items()
    },
    "list_transactions: none": lambda lib, world: lib.client.list_transactions(
        producer_id_filters=[2**40], state_filters=["Ongoing"], duration_filter_ms=1
    ),
    "describe_transactions": lambda lib, world: lib.client.describe_transactions([f"{world.topic}-open"]),
    "describe_transactions: missing": lambda lib, world: lib.client.describe_transactions(["missing"]),
    "find_hanging_transactions": lambda lib, world: lib.client.find_hanging_transactions(),
    "describe_producers": lambda lib, world: lib.client.describe_producers([lib.tp(world.topic, 0)]),
    "describe_producers: missing": lambda lib, world: lib.client.describe_producers([lib.tp(world.topic, 9)]),
    "describe_acls": lambda lib, world: lib.client.describe_acls(every_acl(lib)),
    "describe_user_scram_credentials": lambda lib, world: lib.client.describe_user_scram_credentials(
        ["missing"]
    ),
}
#: Calls that change something, once for each library.
CHANGING: dict[str, Call] = {
    "create_topics": lambda lib, world: without_ids(
        lib.client.create_topics(
            {lib.mine("created"): {"num_partitions": 2, "configs": {"retention.ms": "5000"}}},
            wait_for_metadata=True,
        )
    ),
    "create_topics: one exists": lambda lib, world: without_ids(
        lib.client.create_topics([world.topic, lib.mine("created-2")], raise_errors=False)
    ),
    "create_topics: raise": lambda lib, world: lib.client.create_topics([world.topic]),
    "create_topics: only validate": lambda lib, world: without_ids(
        lib.client.create_topics(
            [lib.admin.NewTopic("valid", replica_assignments={0: [1]})]
            if hasattr(lib.admin, "NewTopic")
            else ["valid"],
            validate_only=True,
        )
    ),
    "delete_topics": lambda lib, world: without_ids(
        lib.client.delete_topics([lib.mine("created"), "missing"], raise_errors=False)
    ),
    "delete_topics: by id": lambda lib, world: without_ids(delete_by_id(lib, lib.mine("created-2"))),
    "delete_topics: raise": lambda lib, world: lib.client.delete_topics(["missing"]),
    "create_partitions": lambda lib, world: created_partitions(
        lib.client.create_partitions(
            {lib.mine(world.topic): {"count": 3, "assignments": [[1]]}, "missing": 9}, raise_errors=False
        )
    ),
    "create_partitions: raise": lambda lib, world: lib.client.create_partitions({world.topic: 1}),
    "delete_records": lambda lib, world: lib.client.delete_records({lib.tp(lib.mine(world.topic), 0): 1}),
    "delete_records: past the end": lambda lib, world: lib.client.delete_records(
        {lib.tp(lib.mine(world.topic), 0): 99}
    ),
    "delete_records: past the end of two": lambda lib, world: lib.client.delete_records(
        {lib.tp(lib.mine(world.topic), 0): 99, lib.tp(lib.mine(world.topic), 1): 99}
    ),
    "elect_leaders": lambda lib, world: elected(lib.client.elect_leaders(0, {world.topic: [0, 1]})),
    "elect_leaders: raise": lambda lib, world: lib.client.elect_leaders(0, {world.topic: [9]}),
    "alter_partition_reassignments": lambda lib, world: lib.client.alter_partition_reassignments(
        {lib.tp(world.topic, 0): [1], lib.tp(world.topic, 1): None, lib.tp(world.topic, 9): [1]}
    ),
    "alter_configs": lambda lib, world: lib.client.alter_configs(
        [
            lib.resource(
                "TOPIC",
                lib.mine(world.topic),
                {"retention.ms": "7777", "cleanup.policy": (lib.admin.AlterConfigOp.APPEND, "compact")},
            )
        ]
    ),
    "alter_configs: whole": lambda lib, world: lib.client.alter_configs(
        [lib.resource("TOPIC", lib.mine(world.topic), {"segment.ms": "8888"})], incremental=False
    ),
    "alter_configs: invalid": lambda lib, world: lib.client.alter_configs(
        [lib.resource("TOPIC", world.topic, {"retention.ms": "soon"}), lib.resource("TOPIC", "missing", {})],
        raise_on_unknown=False,
    ),
    "alter_configs: unknown": lambda lib, world: lib.client.alter_configs(
        [lib.resource("TOPIC", world.topic, {"no.such": "1"})]
    ),
    "reset_configs": lambda lib, world: lib.client.reset_configs(
        [lib.resource("TOPIC", lib.mine(world.topic), ["retention.ms"])]
    ),
    "alter_group_offsets": lambda lib, world: lib.client.alter_group_offsets(
        lib.mine(world.group),
        {
            lib.tp(world.topic, 0): lib.structs.OffsetAndMetadata(1, "one", 0),
            lib.tp(world.topic, 9): lib.structs.OffsetAndMetadata(1, "", -1),
        },
    ),
    "alter_group_offsets: with members": lambda lib, world: lib.client.alter_group_offsets(
        world.busy, {lib.tp(world.topic, 0): lib.structs.OffsetAndMetadata(1, "one", 0)}
    ),
    "reset_group_offsets": lambda lib, world: lib.client.reset_group_offsets(
        lib.mine(world.group),
        {lib.tp(world.topic, 0): lib.admin.OffsetSpec.EARLIEST, lib.tp(world.topic, 1): 99},
    ),
    "reset_group_offsets: time": lambda lib, world: lib.client.reset_group_offsets(
        lib.mine(world.group), {lib.tp(world.topic, 0): lib.admin.OffsetTimestamp(1_000)}
    ),
    "delete_group_offsets": lambda lib, world: lib.client.delete_group_offsets(
        lib.mine(world.group), [lib.tp(world.topic, 0), lib.tp(world.topic, 9)]
    ),
    "delete_group_offsets: subscribed": lambda lib, world: lib.client.delete_group_offsets(
        world.busy, [lib.tp(world.topic, 0)]
    ),
    "delete_groups": lambda lib, world: lib.client.delete_groups(
        [lib.mine(world.group), world.busy, "missing"]
    ),
    "remove_group_members": lambda lib, world: lib.client.remove_group_members(
        lib.mine(world.busy),
        [
            lib.admin.MemberToRemove(group_instance_id="static", reason="test"),
            lib.admin.MemberToRemove(member_id="missing"),
        ],
    ),
    "alter_replica_log_dirs": lambda lib, world: lib.client.alter_replica_log_dirs(
        {(world.topic, 0, 1): "/nowhere", (world.topic, 9, 1): "/nowhere"}
    ),
    "update_features": lambda lib, world: lib.client.update_features(
        {"metadata.version": lib.client.describe_features()["metadata.version"]["finalized"][1]}
    ),
    "update_features: invalid": lambda lib, world: lib.client.update_features(
        {"metadata.version": (lib.admin.UpdateFeatureType.SAFE_DOWNGRADE, 9_999)}, validate_only=True
    ),
    "abort_transaction": abort,
    "create_acls": lambda lib, world: lib.client.create_acls([one_acl(lib)])["failed"],
    "delete_acls": lambda lib, world: [
        error for _, _, error in lib.client.delete_acls([every_acl(lib, "User:zoe")])
    ],
    "alter_user_scram_credentials": lambda lib, world: lib.client.alter_user_scram_credentials(
        [
            lib.admin.UserScramCredentialUpsertion(lib.mine("user"), "SCRAM-SHA-256", "pw", 5000),
            lib.admin.UserScramCredentialDeletion("missing", "SCRAM-SHA-256"),
        ]
    ),
}


def result(call: Call, lib: Library, world: World) -> Any:
    try:
        return lib.plain(call(lib, world))
    except Exception as error:  # noqa: BLE001 - the class of any error is compared
        return ("raised", lib.plain(type(error)))


@pytest.mark.parametrize("name", READING)
def test_reading_call_has_the_same_result(name: str, both: tuple[World, list[Library]]) -> None:
    world, libraries = both
    found: list[Any] = []

    def is_same() -> bool:
        # Apache Kafka's broker learns of a change after its controller has answered.
        found[:] = [result(READING[name], library, world) for library in libraries]
        return bool(found[0] == found[1])

    eventually(is_same, lambda: f"theirs {found[0]}\n  ours {found[1]}")


@pytest.mark.parametrize("name", CHANGING)
def test_changing_call_has_the_same_result(name: str, both: tuple[World, list[Library]]) -> None:
    world, libraries = both
    theirs, ours = (result(CHANGING[name], library, world) for library in libraries)
    assert ours == theirs


def test_every_method_of_kafka_python_is_called() -> None:
    methods = {name for name in vars(kafka.KafkaAdminClient) if not name.startswith("_")}
    for base in kafka.KafkaAdminClient.__mro__[1:-1]:
        methods |= {name for name in vars(base) if not name.startswith("_")}
    callable_ones = {name for name in methods if callable(getattr(kafka.KafkaAdminClient, name))}
    assert {name.partition(":")[0] for name in READING | CHANGING} == callable_ones - {"close"}


# ---- Calls that kafka-python does not have -----------------------------------------------------------------
def test_producers_are_fenced(apache_kafka: ApacheKafka) -> None:
    servers = apache_kafka.bootstrap_servers
    with (
        KafkaAdminClient(bootstrap_servers=servers) as admin,
        KafkaProducer(bootstrap_servers=servers, transactional_id="calls-fenced") as producer,
    ):
        admin.create_topics(["calls-fenced"], wait_for_metadata=True)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("calls-fenced", b"v").get(timeout=BUDGET_S)
        before = admin.describe_transactions(["calls-fenced"])["calls-fenced"]
        (fenced,) = admin.fence_producers(["calls-fenced"]).values()
        assert (fenced.producer_id, fenced.producer_epoch > before.producer_epoch) == (
            before.producer_id,
            True,
        )
        with pytest.raises(ProducerFencedError):
            producer.commit_transaction()


def test_tokens_are_created_renewed_described_and_expired(secure_kafka: SecureKafka) -> None:
    with KafkaAdminClient(**secure_kafka.settings("SASL_SSL", "SCRAM-SHA-512")) as admin:
        token = admin.create_delegation_token(renewers=["User:bob"], max_lifetime_ms=3_600_000)
        assert token.owner == token.requester
        assert token.max_timestamp_ms - token.issue_timestamp_ms == 3_600_000
        eventually(lambda: admin.describe_delegation_tokens() == [token])
        assert admin.describe_delegation_tokens(owners=["User:other"]) == []
        expiry_ms = admin.renew_delegation_token(token.hmac, 60_000)
        assert token.issue_timestamp_ms < expiry_ms < token.max_timestamp_ms
        eventually(
            lambda: [each.expiry_timestamp_ms for each in admin.describe_delegation_tokens()] == [expiry_ms]
        )
        assert token.hmac.hex() not in repr(token)
        admin.expire_delegation_token(token.hmac)
        eventually(lambda: admin.describe_delegation_tokens() == [])
        with pytest.raises(DelegationTokenNotFoundError):
            admin.renew_delegation_token(token.hmac)


def test_group_of_the_new_protocol_is_described(apache_kafka: ApacheKafka) -> None:
    servers = apache_kafka.bootstrap_servers
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "calls-848",
            "group.protocol": "consumer",
            "client.id": "new",
        }
    )
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics({"calls-848": {"num_partitions": 2}}, wait_for_metadata=True)
        try:
            consumer.subscribe(["calls-848"])
            eventually(consumer.assignment, step=lambda: consumer.poll(0.1))
            eventually(lambda: admin.describe_groups(["calls-848"])["calls-848"]["group_state"] == "Stable")
            found = admin.describe_groups(["calls-848", "calls-848-missing"])
            # kafka-python asks with the request of the classic protocol only.
            theirs = kafka.KafkaAdminClient(bootstrap_servers=servers)
            assert theirs.describe_groups(["calls-848"])["calls-848"]["group_state"] == "Dead"
            theirs.close()
        finally:
            consumer.close()
        group = found["calls-848"]
        assert (group["group_type"], group["protocol_data"]) == ("consumer", "uniform")
        assert group["group_epoch"] >= group["assignment_epoch"] > 0
        (member,) = group["members"]
        assigned = {"assigned_partitions": [{"topic": "calls-848", "partitions": [0, 1]}]}
        assert member["client_id"] == "new"
        assert member["member_metadata"]["topics"] == ["calls-848"]
        assert member["member_assignment"] == member["target_assignment"] == assigned
        assert (member["member_epoch"], member["upgraded"]) == (group["group_epoch"], True)
        assert found["calls-848-missing"]["group_state"] == "Dead"
        listed = admin.list_groups(types_filter=["consumer"])
        assert [each["group_type"] for each in listed if each["group_id"] == "calls-848"] == ["consumer"]
        eventually(lambda: admin.delete_groups(["calls-848"]) == {"calls-848": "OK"})


def test_one_bad_item_fails_only_itself(both: tuple[World, list[Library]]) -> None:
    world, (_, ours) = both
    admin = ours.client
    unknown = uuid.UUID(int=7)
    deleted = admin.delete_topics([unknown, "calls-missing"], raise_errors=False)["topics"]
    assert [each["error_code"] for each in deleted] == [
        UnknownTopicIdError.errno,
        UnknownTopicOrPartitionError.errno,
    ]
    with pytest.raises(UnknownTopicIdError):
        admin.delete_topics([unknown])
    resources = [
        ours.resource("TOPIC", world.topic, ["retention.ms"]),
        ours.resource("TOPIC", "calls-missing"),
    ]
    described = admin.describe_configs(resources, config_filter="all", raise_errors=False)["topic"]
    assert (list(described[world.topic]), described["calls-missing"]) == (["retention.ms"], {})
    assert admin.delete_groups(["calls-missing", world.busy]) == {
        "calls-missing": "GroupIdNotFoundError",
        world.busy: "NonEmptyGroupError",
    }
    with pytest.raises(GroupIdNotFoundError):
        admin.delete_group_offsets("calls-missing", [TopicPartition(world.topic, 0)])


def test_javas_tools_print_the_same_facts(both: tuple[World, list[Library]], java_tools: JavaTools) -> None:
    world, (_, ours) = both
    address = ("--bootstrap-server", world.servers)

    def words(tool: str, *arguments: str) -> list[list[str]]:
        printed = java_tools.run(tool, *address, *arguments)
        assert printed.status == 0, printed
        return [line.split() for line in printed.out.splitlines() if line.strip()]

    group = words(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--describe", "--group", world.group
    )
    (row,) = [line for line in group if world.topic in line]
    tp = TopicPartition(world.topic, 0)
    offset = ours.client.list_group_offsets([world.group])[world.group][tp].offset
    end = ours.client.list_partition_offsets({tp: ours.admin.OffsetSpec.LATEST})[tp].offset
    assert row[:6] == [world.group, world.topic, "0", str(offset), str(end), str(end - offset)]
    topic = " ".join(words("org.apache.kafka.tools.TopicCommand", "--describe", "--topic", world.topic)[0])
    (described,) = ours.client.describe_topics([world.topic])
    short_id = base64.urlsafe_b64encode(uuid.UUID(described["topic_id"]).bytes).decode().rstrip("=")
    assert f"TopicId: {short_id} PartitionCount: {len(described['partitions'])} ReplicationFactor: 1" in topic


@pytest.fixture(scope="module")
def java_tools() -> Iterator[JavaTools]:
    with started_java_tools() as running:
        yield running
