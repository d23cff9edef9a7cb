"""Our broker accepts what Apache Kafka accepts, and rejects what it rejects, with the same error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from peers.apache_kafka import ApacheKafka
from peers.jars import JavaToolError
from peers.java_peer import JavaPeer, Sample
from peers.samples import T0

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.testing.embedded_broker import EmbeddedBroker

#: Bytes of a batch with one record without key and headers, whose value needs a length of 4 bytes.
OVERHEAD = 61 + 11
LIMIT = 1_048_588


class SameOnBoth:
    """A pair of brokers on which the Java client does the same."""

    def __init__(self, theirs: ApacheKafka, ours: EmbeddedBroker, peer: JavaPeer) -> None:
        self._servers = (theirs.bootstrap_servers, ours.bootstrap_servers)
        self.peer = peer

    def outcomes(self, attempt: Callable[[str], object]) -> list[object]:
        """Return for each broker the result of ``attempt``, or the last Kafka error in its output."""
        return [self._outcome(attempt, servers) for servers in self._servers]

    @staticmethod
    def _outcome(attempt: Callable[[str], object], servers: str) -> object:
        try:
            return attempt(servers)
        except JavaToolError as error:
            words = str(error).splitlines()[0].replace(":", " ").split()
            return [word.rpartition(".")[2] for word in words if word.startswith("org.apache.kafka")][-1]


@pytest.fixture
def same_on_both(apache_kafka: ApacheKafka, our_broker: EmbeddedBroker, java_peer: JavaPeer) -> SameOnBoth:
    return SameOnBoth(apache_kafka, our_broker, java_peer)


@pytest.mark.parametrize(("over", "outcome"), [(0, [(0, 0)]), (1, "RecordTooLargeException")])
def test_batch_may_be_as_large_as_max_message_bytes(
    same_on_both: SameOnBoth, over: int, outcome: object
) -> None:
    topic = f"limit-{over}"
    client = {"max.request.size": "4000000", "batch.size": "1"}

    def attempt(servers: str) -> object:
        same_on_both.peer.create_topic(servers, topic, 1, {"max.message.bytes": str(LIMIT)})
        return same_on_both.peer.produce(
            servers, topic, [Sample(b"x" * (LIMIT - OVERHEAD + over), None, 0, T0)], client
        )

    assert same_on_both.outcomes(attempt) == [outcome] * 2


@pytest.mark.parametrize(
    ("ahead_ms", "outcome"),
    [(3_500_000, [(0, 0)]), (3_700_000, "InvalidTimestampException"), (-30 * 86_400_000, [(0, 0)])],
)
def test_timestamp_may_be_an_hour_ahead(same_on_both: SameOnBoth, ahead_ms: int, outcome: object) -> None:
    topic = f"ahead-{ahead_ms}"

    def attempt(servers: str) -> object:
        same_on_both.peer.create_topic(servers, topic)
        sample = Sample(b"x", None, 0, SYSTEM_CLOCK.wall_ms() + ahead_ms)
        return same_on_both.peer.produce(servers, topic, [sample])

    assert same_on_both.outcomes(attempt) == [outcome] * 2


def test_log_append_time_takes_the_brokers_clock(same_on_both: SameOnBoth) -> None:
    def attempt(servers: str) -> object:
        same_on_both.peer.create_topic(
            servers, "the-brokers-clock", 1, {"message.timestamp.type": "LogAppendTime"}
        )
        before = SYSTEM_CLOCK.wall_ms()
        same_on_both.peer.produce(servers, "the-brokers-clock", [Sample(b"x", None, 0, T0)] * 3)
        read = same_on_both.peer.consume(servers, "the-brokers-clock", 3)
        return [(one.timestamp_type, before <= one.timestamp <= SYSTEM_CLOCK.wall_ms()) for one in read]

    assert same_on_both.outcomes(attempt) == [[(1, True)] * 3] * 2


@pytest.mark.parametrize(
    ("topic", "partitions", "config", "outcome"),
    [
        ("n" * 249, 1, {}, None),
        ("n" * 250, 1, {}, "InvalidTopicException"),
        ("..", 1, {}, "InvalidTopicException"),
        ("sl/ash", 1, {}, "InvalidTopicException"),
        ("none", 0, {}, "InvalidPartitionsException"),
        ("text-for-number", 1, {"retention.ms": "soon"}, "InvalidConfigurationException"),
        ("no-such-name", 1, {"no.such": "1"}, "InvalidConfigurationException"),
        ("no-such-choice", 1, {"cleanup.policy": "burn"}, "InvalidConfigurationException"),
    ],
)
def test_topic_is_created_or_refused_alike(
    same_on_both: SameOnBoth, topic: str, partitions: int, config: dict[str, str], outcome: str | None
) -> None:
    def attempt(servers: str) -> object:
        same_on_both.peer.create_topic(servers, topic, partitions, config)
        return None

    assert same_on_both.outcomes(attempt) == [outcome] * 2


def test_names_that_collide_or_exist_are_refused_alike(same_on_both: SameOnBoth) -> None:
    def attempt(servers: str) -> object:
        same_on_both.peer.create_topic(servers, "one.name")
        same_on_both.peer.create_topic(servers, "one_name")
        return None

    def again(servers: str) -> object:
        same_on_both.peer.create_topic(servers, "one.name")
        return None

    assert same_on_both.outcomes(attempt) == ["InvalidTopicException"] * 2
    assert same_on_both.outcomes(again) == ["TopicExistsException"] * 2


def test_unknown_topic_cannot_be_deleted(same_on_both: SameOnBoth) -> None:
    def attempt(servers: str) -> object:
        same_on_both.peer.delete_topic(servers, "was-never-there")
        return None

    assert same_on_both.outcomes(attempt) == ["UnknownTopicOrPartitionException"] * 2
