"""Our broker describes, alters and rejects configuration as Apache Kafka does.

Each exception is listed here with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from eventually import eventually
from peers.apache_kafka import ApacheKafka
from peers.config_requests import (
    APPEND,
    BROKER,
    DELETE,
    SUBTRACT,
    TOPIC,
    Change,
    ConfigRequests,
    Entry,
    config_requests,
)

from kafkacore.broker.config.dynamic_config import is_dynamic
from kafkacore.broker.config.kept_keys import KEPT_KEYS
from kafkacore.broker.config.listener_keys import LISTENER_KEYS
from kafkacore.testing.embedded_broker import EmbeddedBroker

#: Key of a topic → valid and invalid values.
VALUES: dict[str, tuple[str, ...]] = {
    "cleanup.policy": (
        "",
        "compact,delete",
        " compact , delete",
        "compact,compact",
        "Compact",
        "delete,",
        "none",
    ),
    "compression.gzip.level": ("-1", "0", "1", "9", "10"),
    "compression.lz4.level": ("0", "1", "17", "18"),
    "compression.type": ("gzip", "uncompressed", "none", "GZIP", "brotli", ""),
    "compression.zstd.level": ("-131073", "-131072", "22", "23"),
    "delete.retention.ms": ("-1", "0"),
    "file.delete.delay.ms": ("-1", "0"),
    "flush.messages": ("0", "1"),
    "flush.ms": ("-1", "0"),
    "follower.replication.throttled.replicas": ("0:x", "*,0:1", "0:1,0:1", "0:1 , 1:1"),
    "index.interval.bytes": ("-1", "0"),
    "leader.replication.throttled.replicas": ("*", "", "none", "0:1,1:2"),
    "local.retention.bytes": ("-3", "-2", "10"),
    "local.retention.ms": ("-3", "-2", "5"),
    "max.compaction.lag.ms": ("0", "1"),
    "max.message.bytes": ("-1", "0", "2147483647", "2147483648"),
    "message.timestamp.after.max.ms": ("-1", "0"),
    "message.timestamp.before.max.ms": ("-1", "0"),
    "message.timestamp.type": ("createtime", "LogAppendTime"),
    "min.cleanable.dirty.ratio": ("1.5", "-0.1", "0.50", "1", "1e-5", ".5", "x", ""),
    "min.compaction.lag.ms": ("-1", "0"),
    "min.insync.replicas": ("0", "1", "2"),
    "preallocate": ("yes", "TRUE", "1"),
    "remote.log.copy.disable": ("true", "maybe"),
    "remote.log.delete.on.disable": ("true", "maybe"),
    "remote.storage.enable": ("true", "false", "maybe"),
    "retention.bytes": ("-5", "0", "many"),
    "retention.ms": ("-2", "-1", " 5 ", "+5", "007", "1_000", "", "1e3", "5L", "9223372036854775808"),
    "segment.bytes": ("13", "14", "1048575", "1048576", "2147483648"),
    "segment.index.bytes": ("3", "4"),
    "segment.jitter.ms": ("-1", "0"),
    "segment.ms": ("0", "1"),
    "unclean.leader.election.enable": ("true", "1"),
    "internal.segment.bytes": ("many", "14", "5000000"),
    "message.format.version": ("3.0",),
    "log.retention.ms": ("5",),
    "no.such.key": ("1",),
}
PAIRS = [(name, text) for name, texts in VALUES.items() for text in texts]
#: Values that our broker accepts and Apache Kafka rejects, and why.
TAKEN_BY_OURS = {
    ("segment.bytes", "14"): "segments of a few bytes make rolling and retention quick to test",
    ("segment.bytes", "1048575"): "as above",
}
#: The same for broker properties: (outcome of Apache Kafka, our outcome, why).
INVALID = "InvalidRequestError"
BROKER_DIFFERENCES = {
    ("log.retention.ms", "-2"): (
        None,
        INVALID,
        "-1 means no limit; Apache Kafka accepts any negative number",
    ),
    ("log.retention.ms", "0"): (INVALID, None, "valid as a topic's retention.ms, and so as its default"),
    ("log.segment.bytes", "1048575"): (INVALID, None, "as for topics"),
    ("no.such.property", "1"): (None, INVALID, "a misspelt name is rejected"),
    ("max.connections", "0"): (INVALID, INVALID, ""),
}
#: Properties whose default differs from Apache Kafka's, and why.
OTHER_DEFAULTS = {
    "max.connections": "a process has a limited number of file descriptors",
    "queued.max.request.bytes": "our broker limits the memory for requests",
    "sasl.enabled.mechanisms": "it depends on the listeners; Kerberos is off by default",
    "ssl.keystore.type": "detected from the file; JKS is not supported",
    "ssl.truststore.type": "as for the key store",
}
BROKER_VALUES: dict[str, tuple[str, ...]] = {
    "compression.type": ("brotli", "zstd"),
    "log.cleanup.policy": ("burn", "compact", "compact,delete"),
    "log.cleaner.backoff.ms": ("-1", "0", "100"),
    "log.cleaner.io.buffer.size": ("many", "65536"),
    "log.cleaner.io.max.bytes.per.second": ("fast", "1e6"),
    "log.cleaner.min.cleanable.ratio": ("2", "0.3"),
    "log.index.interval.bytes": ("-1", "0"),
    "log.message.timestamp.type": ("now", "LogAppendTime"),
    "log.preallocate": ("perhaps", "true"),
    "log.retention.bytes": ("x", "-1", "5"),
    "log.retention.hours": ("5",),
    "log.retention.ms": ("-2", "-1", "0", "1", "soon", ""),
    "log.roll.ms": ("0", "1"),
    "log.segment.bytes": ("13", "1048575", "1048576"),
    "max.connections": ("-1", "0", "1000", "many"),
    "message.max.bytes": ("-1", "0", "5000"),
    "auto.create.topics.enable": ("false",),
    "delete.topic.enable": ("false",),
    "node.id": ("3",),
    "num.partitions": ("3",),
    "ssl.keystore.location": ("/x",),
    "num.io.threads": ("0", "3", "many"),
    "background.threads": ("0", "5"),
    "cordoned.log.dirs": ("",),
    "config.providers": ("",),
    "follower.fetch.last.tiered.offset.enable": ("true", "maybe"),
    "follower.replication.throttled.rate": ("-1", "0", "5", "fast", ""),
    "group.consumer.assignment.interval.ms": ("-1", "0", "15000", "15001"),
    "group.consumer.assignors": ("range",),
    "group.consumer.session.timeout.ms": ("50000",),
    "group.coordinator.cached.buffer.max.bytes": ("524287", "524288"),
    "leader.replication.throttled.rate": ("-1", "0", "5", "9223372036854775808"),
    "log.cleaner.threads": ("-1", "x"),
    "producer.id.expiration.ms": ("0", "1"),
    "queued.max.requests": ("5",),
    "remote.fetch.max.wait.ms": ("0", "1"),
    "remote.log.manager.copy.max.bytes.per.second": ("0", "1"),
    "replica.alter.log.dirs.io.max.bytes.per.second": ("-1", "0"),
    "sasl.kerberos.min.time.before.relogin": ("-1", "5", "soon"),
    "sasl.kerberos.ticket.renew.jitter": ("-1", "0.5", "x"),
    "sasl.login.refresh.buffer.seconds": ("-1", "0", "3601", "32767", "32768"),
    "sasl.login.refresh.min.period.seconds": ("900", "901"),
    "sasl.login.refresh.window.factor": ("0.4", "0.5", "1.1"),
    "sasl.login.refresh.window.jitter": ("0.25", "0.26"),
    "ssl.protocol": ("TLSv1.2",),
    "transaction.partition.verification.enable": ("false", "1"),
    "listener.name.plaintext.sasl.kerberos.min.time.before.relogin": ("5", "soon"),
    "listener.name.plaintext.ssl.protocol": ("TLSv1.2",),
    "no.such.property": ("1",),
}


@pytest.fixture(scope="module")
def theirs(apache_kafka: ApacheKafka) -> Iterator[ConfigRequests]:
    with config_requests(apache_kafka.bootstrap_servers) as requests:
        yield requests


@pytest.fixture(scope="module")
def ours() -> Iterator[ConfigRequests]:
    """Start our broker with the settings that Apache Kafka has in these tests."""
    with (
        EmbeddedBroker(log_retention_ms=-1, message_max_bytes=4194304) as broker,
        config_requests(broker.bootstrap_servers) as requests,
    ):
        yield requests


def await_value(requests: ConfigRequests, topic: str, key: str, expected: str | None) -> None:
    def value() -> str | None:
        return requests.describe([(TOPIC, topic)])[0][key].value

    eventually(lambda: value() == expected, lambda: f"{key} is {value()!r}, not {expected!r}")


def described(
    requests: ConfigRequests, expected: int, resources: list[tuple[int, str]]
) -> list[dict[str, Entry]]:
    """Describe topics once ``expected`` of them have own keys: Apache Kafka applies changes later."""

    def find() -> list[dict[str, Entry]]:
        found = requests.describe(resources)
        own = sum(any(entry.source == 1 for entry in entries.values()) for entries in found)
        return found if own == expected else []

    return eventually(find, lambda: requests.describe(resources))


def test_new_topic_has_the_same_keys_with_the_same_types_values_and_sources(
    theirs: ConfigRequests, ours: ConfigRequests
) -> None:
    found = []
    for requests in (theirs, ours):
        assert requests.create({"same-configs": {"segment.ms": "9"}}) == [None]
        found += described(requests, 1, [(TOPIC, "same-configs")])
    kafkas, own = found
    # With eligible leader replicas (KIP-966), Apache Kafka stores this setting for all brokers.
    assert kafkas.pop("min.insync.replicas").synonyms[0][1:] == ("1", 3)
    assert own.pop("min.insync.replicas").synonyms == (("min.insync.replicas", "1", 5),)
    assert own == kafkas


def test_properties_that_both_brokers_have_are_told_alike(
    theirs: ConfigRequests, ours: ConfigRequests
) -> None:
    (kafkas,), (own,) = (requests.describe([(BROKER, "1")]) for requests in (theirs, ours))
    only_ours = {"allow.remote", "flush", "max.decompressed.batch.bytes", "max.partitions"}
    assert only_ours <= own.keys() - kafkas.keys()
    shared = own.keys() & kafkas.keys()
    assert len(shared) > 40
    assert {name: own[name].type for name in shared} == {name: kafkas[name].type for name in shared}
    # Every property that can be changed on our broker can be changed on Apache Kafka.
    assert {name for name in shared if not own[name].read_only and kafkas[name].read_only} == set()
    # Properties that these tests set for Apache Kafka.
    configured = {name for name, entry in kafkas.items() if entry.source in (2, 3, 4)}
    differing = {
        name
        for name in shared - configured
        if (own[name].value, own[name].source, own[name].synonyms)
        != (kafkas[name].value, kafkas[name].source, kafkas[name].synonyms)
    }
    assert differing == OTHER_DEFAULTS.keys()


#: Properties that only Apache Kafka can change at run time, and why.
NOT_AT_RUN_TIME = {
    "listeners": "sockets are bound at the start",
    "listener.security.protocol.map": "as above",
    "max.connection.creation.rate": "only for one listener, with its prefix",
    "principal.builder.class": "it loads a class that determines the principal",
    "ssl.engine.factory.class": "it loads a class that creates the SSL engine",
    "ssl.provider": "TLS is that of Python and OpenSSL",
}
#: DescribeConfigs omits these properties until they are set.
RATES = {
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}


def test_what_apache_kafka_changes_at_run_time_is_changed_or_kept(theirs: ConfigRequests) -> None:
    (kafkas,) = theirs.describe([(BROKER, "1")])
    # Without the prefix of a listener, neither broker changes the settings of listeners.
    dynamic = {
        name
        for name, entry in kafkas.items()
        if not (entry.read_only or is_dynamic(name) or name in LISTENER_KEYS)
    }
    listeners = {name for name in NOT_AT_RUN_TIME if name in LISTENER_KEYS}
    assert dynamic == NOT_AT_RUN_TIME.keys() - listeners
    assert {name: key.type for name, key in KEPT_KEYS.items() if name not in RATES} == {
        name: kafkas[name].type for name in KEPT_KEYS if name not in RATES
    }
    assert KEPT_KEYS.keys() >= RATES


def test_value_of_a_topics_key_is_taken_or_refused_alike_however_it_comes(
    theirs: ConfigRequests, ours: ConfigRequests
) -> None:
    topics = {f"alter-{number}": {} for number in range(len(PAIRS))}
    changes = [Change(TOPIC, topic, *pair) for topic, pair in zip(topics, PAIRS, strict=True)]
    as_made = {f"made-{number}": dict([pair]) for number, pair in enumerate(PAIRS)}
    outcomes = []
    for requests in (theirs, ours):
        requests.create(topics)
        made = requests.create(as_made, validate_only=True)
        changed = requests.change(changes)
        assert requests.replace(changes, validate_only=True) == changed == made
        taken = changed.count(None)
        values = described(requests, taken, [(TOPIC, topic) for topic in topics])
        outcomes.append(
            {
                pair: (outcome, outcome is None and entries[pair[0]].value)
                for pair, outcome, entries in zip(PAIRS, changed, values, strict=True)
            }
        )
        requests.delete(list(topics))
    kafkas, own = outcomes
    for pair in TAKEN_BY_OURS:
        assert kafkas.pop(pair)[0] == "InvalidConfigurationError"
        assert own.pop(pair) == (None, pair[1])
    assert own == kafkas


def test_change_of_a_list_or_of_no_resource_ends_alike(theirs: ConfigRequests, ours: ConfigRequests) -> None:
    policy = "cleanup.policy"
    # Each step has the value that Apache Kafka must report in the end, because it applies a change later.
    steps = [
        (Change(TOPIC, "same-lists", policy, "compact", APPEND), "delete,compact"),
        (Change(TOPIC, "same-lists", policy, "compact", APPEND), "delete,compact"),
        (Change(TOPIC, "same-lists", policy, "delete", SUBTRACT), "compact"),
        (Change(TOPIC, "same-lists", policy, "burn", APPEND), "compact"),
        (Change(TOPIC, "same-lists", policy, "compact", SUBTRACT), ""),
        (Change(TOPIC, "same-lists", policy, None, DELETE), "delete"),
        (Change(TOPIC, "same-lists", policy, None), "delete"),
        (Change(TOPIC, "same-lists", "retention.ms", "5", APPEND), "delete"),
        (Change(TOPIC, "same-lists", "no.such", None, DELETE), "delete"),
        (Change(TOPIC, "same-lists", "no.such", "5", SUBTRACT), "delete"),
        (Change(TOPIC, "never-made", "retention.ms", "5"), "delete"),
        (Change(TOPIC, "never-made", "retention.ms", "x"), "delete"),
        (Change(TOPIC, "sl/ash", "retention.ms", "5"), "delete"),
        (Change(TOPIC, "", "retention.ms", "5"), "delete"),
        (Change(BROKER, "2", "log.retention.ms", "5"), "delete"),
        (Change(BROKER, "one", "log.retention.ms", "5"), "delete"),
        (Change(BROKER, "1", "log.retention.ms", "5", APPEND), "delete"),
        (Change(0, "1", "x", "5"), "delete"),
        (Change(3, "1", "x", "5"), "delete"),
    ]
    outcomes = []
    for requests in (theirs, ours):
        requests.create({"same-lists": {}})
        outcome: list[object] = []
        for change, expected in steps:
            (error,) = requests.change([change])
            await_value(requests, "same-lists", policy, expected)
            outcome.append((change, error))
        outcomes.append(outcome)
        requests.delete(["same-lists"])
    assert outcomes[1] == outcomes[0]


@pytest.mark.parametrize("broker", ["", "1"])
def test_property_of_brokers_is_taken_or_refused_alike(
    theirs: ConfigRequests, ours: ConfigRequests, broker: str
) -> None:
    found = []
    for requests in (theirs, ours):
        outcome = {}
        for name, texts in BROKER_VALUES.items():
            for text in texts:
                (error,) = requests.change([Change(BROKER, broker, name, text)], validate_only=True)
                if broker:  # Apache Kafka requires min.insync.replicas among the settings for all brokers.
                    again = requests.replace([Change(BROKER, broker, name, text)], validate_only=True)
                    assert again == [error]
                outcome[name, text] = error
        found.append(outcome)
    kafkas, own = found
    for pair, (of_kafka, of_ours, _why) in BROKER_DIFFERENCES.items():
        assert (kafkas.pop(pair), own.pop(pair)) == (of_kafka, of_ours), pair
    assert own == kafkas
