"""The arguments of ``AIOKafkaProducer``."""

from __future__ import annotations

import inspect
import math

import aiokafka
import pytest

from kafkacore.aio import AIOKafkaProducer
from kafkacore.producer.config import producer_defaults


def test_the_constructor_needs_no_loop():
    producer = AIOKafkaProducer(bootstrap_servers="nowhere.invalid:1", client_id="c")
    assert repr(producer) == "<AIOKafkaProducer client_id=c>"
    assert producer.config["request_timeout_ms"] == 40_000


def test_names_of_aiokafka_are_translated():
    config = AIOKafkaProducer(max_batch_size=7, connections_max_idle_ms=None).config
    assert (config["batch_size"], config["connections_max_idle_ms"]) == (7, math.inf)
    config = AIOKafkaProducer(
        security_protocol="SASL_SSL", sasl_plain_username="u", sasl_plain_password="p"
    ).config
    assert config["sasl_mechanism"] == "PLAIN"


def test_defaults_of_aiokafka_that_a_framework_passes_are_ours():
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(aiokafka.AIOKafkaProducer).parameters.items()
    }
    config = AIOKafkaProducer(**defaults | {"enable_idempotence": True}).config
    assert (config["acks"], config["enable_idempotence"], config["partitioner"]) == (-1, True, None)
    assert config["batch_size"] == 16384


@pytest.mark.parametrize("name", ["loop", "api_version"])
def test_deprecated_arguments_warn(name):
    with pytest.warns(DeprecationWarning, match=name) as warned:
        AIOKafkaProducer(**{name: "auto"})
    assert warned[0].filename == __file__


@pytest.mark.parametrize(
    "configs", [{"acks": 2}, {"unknown": 1}, {"max_batch_size": 1, "batch_size": 1}, {"linger_ms": -1}]
)
def test_invalid_arguments_are_value_errors(configs):
    with pytest.raises(ValueError, match=next(iter(configs))):
        AIOKafkaProducer(**configs)


def test_every_argument_of_aiokafka_is_known():
    names = set(inspect.signature(aiokafka.AIOKafkaProducer).parameters)
    assert names - {"loop", "max_batch_size"} <= producer_defaults().keys()


def test_methods_have_the_arguments_of_aiokafka():
    for name in (
        "start", "stop", "send", "send_and_wait", "flush", "partitions_for", "create_batch", "send_batch",
        "begin_transaction", "commit_transaction", "abort_transaction", "transaction",
        "send_offsets_to_transaction",
    ):  # fmt: skip
        theirs = inspect.signature(getattr(aiokafka.AIOKafkaProducer, name)).parameters
        ours = inspect.signature(getattr(AIOKafkaProducer, name)).parameters
        assert list(ours)[: len(theirs)] == list(theirs), name
        for argument in theirs:
            assert ours[argument].default == theirs[argument].default, (name, argument)
            assert ours[argument].kind == theirs[argument].kind, (name, argument)
        assert inspect.iscoroutinefunction(getattr(AIOKafkaProducer, name)) == inspect.iscoroutinefunction(
            getattr(aiokafka.AIOKafkaProducer, name)
        )
