"""A user without rights on Apache Kafka and on our broker, and a super user who grants rights to it.

Both brokers are reached over sockets with SASL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from eventually import eventually
from model.authorisation_matrix import Grant, codes_of
from model.authorisation_requests import Names, made, offset_commit, produce
from model.raw_line import Line
from peers.secure_kafka import SecureKafka
from peers.secure_listeners import PASSWORDS

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.protocol.generated.create_acls import CreateAclsRequest
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.delete_acls import DeleteAclsRequest
from kafkacore.protocol.generated.describe_acls import DescribeAclsRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.sasl_authenticate import SaslAuthenticateRequest
from kafkacore.protocol.generated.sasl_handshake import SaslHandshakeRequest

#: The user without rights other than by ACLs, and the super user.
USER, ROOT = "bob", "admin"
VERSIONS = {h.request_class: h.max_version for h in HANDLERS}
ALLOW, LITERAL, ANY = 3, 3, 1
#: Key type of a transactional id in FindCoordinator.
TRANSACTION = 1


def asked_until(ask: Callable[[], Any], is_right: Callable[[Any], bool]) -> Any:
    """Return the first correct response, because new rights take effect after a moment."""
    answers: list[Any] = []

    def asked() -> bool:
        answers[:] = [ask()]
        return is_right(answers[0])

    eventually(asked, lambda: answers[0])
    return answers[0]


Ask = Callable[[Any, int | None], Any]


def _make(ask: Ask, topics: Sequence[str], groups: Sequence[str]) -> dict[str, Any]:
    """Create the topics and return their ids."""
    wanted = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in topics]
    made_topics = ask(made(CreateTopicsRequest, topics=wanted), None).topics
    assert {topic.error_code for topic in made_topics} == {0}
    ids = {topic.name: topic.topic_id for topic in made_topics}
    everything = made(MetadataRequest, topics=[{"name": name} for name in topics])
    asked_until(
        lambda: ask(everything, None), lambda answer: not any(topic.error_code for topic in answer.topics)
    )
    for name, topic_id in ids.items():
        for _ in range(2):
            _ask_until_fine(ask, produce(Names(name, topic_id, "")))
    _ask_until_fine(ask, FindCoordinatorRequest(coordinator_keys=["any"], key_type=TRANSACTION))
    for group in groups:
        topic = group if group in ids else topics[0]
        _ask_until_fine(ask, FindCoordinatorRequest(coordinator_keys=[group]))
        _ask_until_fine(ask, offset_commit(Names(topic, ids[topic], group)))
    return ids


def _ask_until_fine(ask: Ask, message: Any) -> None:
    assert not codes_of(asked_until(lambda: ask(message, None), lambda answer: not codes_of(answer)))


class Side:
    """One of the brokers.

    Parameters
    ----------
    root:
        A connection of the super user.
    user:
        A connection that authenticates as :data:`USER`.
    """

    def __init__(self, root: Line, user: Line) -> None:
        self._root = root
        self._user = user
        self._ids: dict[str, Any] = {}
        log_in(user, USER)
        self._node_id = self._ask_as_root(MetadataRequest(topics=[]), None).brokers[0].node_id

    def ask(self, message: Any, version: int | None = None) -> Any:
        """Return the response to the user's request."""
        return self._user.ask(message, VERSIONS[type(message)] if version is None else version)

    def _ask_as_root(self, message: Any, version: int | None) -> Any:
        return self._root.ask(message, VERSIONS[type(message)] if version is None else version)

    def make(self, topics: Sequence[str], groups: Sequence[str]) -> None:
        """Create topics with two records, and groups that have read one record of a topic.

        A group reads the topic of its own name, or else the first one.
        """
        self._ids |= _make(self._ask_as_root, topics, groups)

    def names(self, topic: str, group: str) -> Names:
        """Return the names, with this broker's topic id."""
        return Names(topic, self._ids[topic], group, self._node_id)

    def grant(self, grants: Iterable[Grant]) -> None:
        creations = [
            {
                "resource_type": grant.resource_type,
                "resource_name": grant.name,
                "resource_pattern_type": LITERAL,
                "principal": f"User:{USER}",
                "host": "*",
                "operation": grant.operation,
                "permission_type": ALLOW,
            }
            for grant in grants
        ]
        results = self._root.ask(made(CreateAclsRequest, creations=creations), 3).results
        assert {result.error_code for result in results} == {0}
        # Apache Kafka's controller answers before its broker applies the entries, one after the other.
        wanted = {(one["resource_type"], one["resource_name"], one["operation"]) for one in creations}
        asked_until(self._granted, wanted.issubset)

    def _granted(self) -> set[tuple[int, str, int]]:
        """Return resource type, resource name and operation of each entry of the user."""
        request = DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=f"User:{USER}",
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        return {
            (resource.resource_type, resource.resource_name, entry.operation)
            for resource in self._root.ask(request, 3).resources
            for entry in resource.acls
        }

    def revoke(self, grants: Iterable[Grant]) -> None:
        filters = [
            {
                "resource_type_filter": grant.resource_type,
                "resource_name_filter": grant.name,
                "pattern_type_filter": LITERAL,
                "principal_filter": f"User:{USER}",
                "host_filter": None,
                "operation": grant.operation,
                "permission_type": ANY,
            }
            for grant in grants
        ]
        results = self._root.ask(made(DeleteAclsRequest, filters=filters), 3).filter_results
        assert {result.error_code for result in results} == {0}

    def revoke_all(self) -> None:
        everything = {
            "resource_type_filter": ANY,
            "resource_name_filter": None,
            "pattern_type_filter": ANY,
            "principal_filter": f"User:{USER}",
            "host_filter": None,
            "operation": ANY,
            "permission_type": ANY,
        }
        results = self._root.ask(made(DeleteAclsRequest, filters=[everything]), 3).filter_results
        assert {result.error_code for result in results} == {0}

    def close(self) -> None:
        self._user.close()
        self._root.close()


def log_in(line: Line, user: str) -> None:
    assert line.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    token = f"\0{user}\0{PASSWORDS[user]}".encode()
    assert line.ask(SaslAuthenticateRequest(auth_bytes=token), 2).error_code == 0


@contextmanager
def their_side(kafka: SecureKafka) -> Iterator[Side]:
    """Yield Apache Kafka. The rights of the user are removed at the end of the block."""
    root = Line(kafka.settings("PLAINTEXT")["bootstrap_servers"])
    user = Line(kafka.settings("SASL_PLAINTEXT", "PLAIN", USER)["bootstrap_servers"])
    with closing(Side(root, user)) as side:
        yield side
        side.revoke_all()


@contextmanager
def our_side(folder: Path) -> Iterator[Side]:
    """Start our broker and yield it."""
    config = {
        "data_dir": folder,
        "port": 0,
        "flush": "os",
        "offsets_topic_num_partitions": 1,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_enabled_mechanisms": "PLAIN",
        "users": PASSWORDS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ROOT}",
    }
    with KafkaBroker(BrokerConfig.from_properties(config)) as broker:
        root, user = [Line(f"127.0.0.1:{broker.port}") for _ in range(2)]
        log_in(root, ROOT)
        with closing(Side(root, user)) as side:
            yield side
