"""Compatibility with aiokafka's consumer: each method and argument exists, with the same default."""

from __future__ import annotations

import inspect

import aiokafka
import pytest
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from kafkacore import aio
from kafkacore.aio import AIOKafkaConsumer
from kafkacore.errors import IllegalStateError, KafkaConfigurationError
from kafkacore.testing import VirtualClock

#: Arguments whose default differs in its form, but not in its meaning, and arguments that are ignored.
OWN_DEFAULTS = {
    "api_version",
    "client_id",
    "client_rack",
    "connections_max_idle_ms",
    "consumer_timeout_ms",
    "loop",
    "max_poll_records",
    "partition_assignment_strategy",
    "rebalance_timeout_ms",
    "sasl_mechanism",
}


@pytest.fixture
def new_consumer():
    made = []

    def new_consumer(*topics, **configs):
        made.append(AIOKafkaConsumer(*topics, clock=VirtualClock(), **configs))
        return made[-1]

    yield new_consumer
    for consumer in made:
        consumer._is_closed = True
        consumer._close_all()


def public_methods(kind):
    return {
        name: method
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") or name in ("__aiter__", "__anext__", "__aenter__", "__aexit__")
    }


def test_every_method_of_aiokafkas_consumer_is_there_with_its_arguments():
    methods = public_methods(aiokafka.AIOKafkaConsumer)
    assert len(methods) >= 25
    for name, theirs in methods.items():
        ours = getattr(AIOKafkaConsumer, name)
        assert inspect.iscoroutinefunction(ours) == inspect.iscoroutinefunction(theirs), name
        if name != "__aexit__":
            expected = [
                (each.name, each.kind, each.default) for each in inspect.signature(theirs).parameters.values()
            ]
            found = [
                (each.name, each.kind, each.default) for each in inspect.signature(ours).parameters.values()
            ]
            assert found == expected, name


def test_every_setting_of_aiokafkas_consumer_has_its_default(new_consumer):
    config = new_consumer()._consumer.config
    theirs = inspect.signature(aiokafka.AIOKafkaConsumer.__init__).parameters
    defaults = {
        name: parameter.default
        for name, parameter in theirs.items()
        if parameter.default is not inspect.Parameter.empty and name not in OWN_DEFAULTS
    }
    assert len(defaults) > 25
    assert {name: config[name] for name in defaults} == defaults | {"enable_auto_commit": False}


def test_settings_without_effect_are_accepted(new_consumer):
    new_consumer(
        api_version="auto", consumer_timeout_ms=200, rebalance_timeout_ms=1000, max_poll_records=None
    )
    with pytest.warns(DeprecationWarning, match="loop"):
        new_consumer(loop=object())


def test_settings_are_checked_by_the_constructor(new_consumer):
    with pytest.raises(KafkaConfigurationError, match="auto_offset_reset"):
        new_consumer(auto_offset_reset="first")
    with pytest.raises(KafkaConfigurationError, match="bootstrap_timeout_ms"):
        new_consumer(bootstrap_timeout_ms=-1)
    with pytest.raises(ValueError, match="max_poll_records"):
        new_consumer(max_poll_records=0)


def test_settings_of_the_classic_protocol_are_left_out_with_the_other(new_consumer):
    assert new_consumer(group_id="g", group_protocol="consumer")._consumer.config["session_timeout_ms"]


def test_the_sasl_mechanism_is_plain_by_default(new_consumer):
    settings = {"sasl_plain_username": "alice", "sasl_plain_password": "secret"}
    config = new_consumer(security_protocol="SASL_SSL", **settings)._consumer.config
    assert config["sasl_mechanism"] == "PLAIN"


def test_subscription_and_assignment_before_start(new_consumer):
    consumer = new_consumer("a", "b")
    assert consumer.subscription() == {"a", "b"}
    assert consumer.assignment() == consumer.paused() == set()
    assert consumer.partitions_for_topic("a") is None
    consumer.unsubscribe()
    assert consumer.subscription() == frozenset()
    partition = aio.TopicPartition("a", 0)
    consumer.assign([partition])
    assert consumer.assignment() == {partition}
    consumer.pause(partition)
    assert consumer.paused() == {partition}
    consumer.seek(partition, 5)
    with pytest.raises(IllegalStateError, match="subscribe"):
        consumer.subscribe(["a"])


def test_partitions_and_assignors_of_aiokafka_are_accepted(new_consumer):
    consumer = new_consumer(partition_assignment_strategy=[RoundRobinPartitionAssignor, "range"])
    assert consumer._consumer.config["partition_assignment_strategy"] == ["roundrobin", "range"]
    theirs = aiokafka.TopicPartition("a", 0)
    consumer.assign([theirs])
    assert consumer.assignment() == {aio.TopicPartition("a", 0)}
    assert type(next(iter(consumer.assignment()))) is aio.TopicPartition
    consumer.pause(theirs)
    assert consumer.paused() == {theirs}
    consumer.resume(theirs)
    consumer.seek(theirs, 3)
    assert consumer.highwater(theirs) is None
    for other in (("a", 0), "a-0", None):
        with pytest.raises(TypeError, match="TopicPartition"):
            consumer.pause(other)


def test_names_that_programs_import_from_aiokafka_are_there():
    for name in ("AIOKafkaConsumer", "ConsumerRebalanceListener", "ConsumerStoppedError", "IllegalOperation"):
        assert hasattr(aiokafka, name)
        assert hasattr(aio, name)
    for name in ("ConsumerRecord", "OffsetAndMetadata", "OffsetAndTimestamp", "TopicPartition"):
        assert hasattr(aio, name)
