"""Every public object says what it is."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

from kafkacore import JsonSerializer, KafkaConsumer, TopicPartition
from kafkacore.aio._batch_builder import BatchBuilder
from kafkacore.testing import EmbeddedBroker, EmbeddedCluster, FaultProxy, VirtualClock

#: Packages whose public classes are checked.
PACKAGES = ("kafkacore", "kafkacore.admin", "kafkacore.aio", "kafkacore.consumer", "kafkacore.testing")
#: Base classes for classes of the application, and a class without state to show.
WITHOUT = {
    "AsyncConsumerRebalanceListener",
    "BrokerFaults",
    "ConsumerInterceptor",
    "ConsumerRebalanceListener",
    "Deserializer",
    "ProducerInterceptor",
    "Serializer",
}


def public_classes() -> Iterator[type]:
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            found = getattr(package, name)
            if inspect.isclass(found) and not issubclass(found, BaseException):
                yield found


def test_public_classes_have_a_repr() -> None:
    bare = {found.__name__ for found in public_classes() if found.__repr__ is object.__repr__}
    assert bare == WITHOUT


def test_what_the_objects_of_clients_say(kafka_broker: EmbeddedBroker) -> None:
    builder = BatchBuilder(1000)
    builder.append(timestamp=None, key=None, value=b"v")
    assert repr(builder) == "<BatchBuilder 1 records, 69 bytes>"
    builder.close()
    assert repr(builder) == "<BatchBuilder closed, 1 records, 69 bytes>"
    assert repr(JsonSerializer()) == "JsonSerializer('utf-8')"
    with KafkaConsumer(bootstrap_servers=kafka_broker.bootstrap_servers) as consumer:
        consumer.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
        with consumer.hold() as hold:
            assert repr(hold) == "<Hold 2 partitions held, 0 revoked, 0 lost>"


def test_what_the_objects_for_tests_say() -> None:
    assert repr(VirtualClock(5.0)) == "<VirtualClock 5 ms>"
    with FaultProxy("localhost:9092") as proxy:
        assert repr(proxy) == f"<FaultProxy {proxy.bootstrap_servers} in front of localhost:9092>"
    cluster = EmbeddedCluster(nodes=2)
    assert repr(cluster) == "<EmbeddedCluster 2 nodes, not running>"
    with cluster:
        assert repr(cluster) == f"<EmbeddedCluster 2 nodes, {cluster.bootstrap_servers}>"
