"""Invalid calls raise the documented error with a one-sentence message, and the producer stays usable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from eventually import BUDGET_S

from kafkacore import KafkaProducer
from kafkacore.errors import IllegalStateError, MessageSizeTooLargeError
from kafkacore.partitioner import Partitioner
from kafkacore.serializer import JsonSerializer
from kafkacore.testing import EmbeddedBroker

TOPIC = "bad-calls"
#: Maximum length of an error message that contains the topic's name.
LONGEST = 400
LARGE = b"v" * 1_100_000


class FixedPartitioner(Partitioner):
    """A partitioner that chooses an invalid partition for every value but the good one."""

    def __init__(self, chosen: Any) -> None:
        self.chosen = chosen

    def partition(
        self, topic: str, key: Any, serialized_key: Any, value: Any, serialized_value: Any, cluster: Any
    ) -> int:
        if value == b"good":
            return 0
        if isinstance(self.chosen, Exception):
            raise self.chosen
        return self.chosen  # type: ignore[no-any-return]


def serializing_to(data: object) -> Callable[[Any], Any]:
    return lambda value: value if value in (b"good", None) else data


def failing(value: Any) -> Any:
    if value not in (b"good", None):
        raise RuntimeError("this cannot be serialised")
    return value


BAD_ARGUMENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"topic": None}, TypeError, "topic must be a str, not NoneType"),
    ({"topic": 5}, TypeError, "topic must be a str, not int"),
    ({"topic": b"bytes"}, TypeError, "topic must be a str, not bytes"),
    ({"topic": ["list"]}, TypeError, "topic must be a str, not list"),
    ({"topic": ""}, ValueError, "topic '' is not a valid name"),
    ({"topic": "."}, ValueError, "is not a valid name"),
    ({"topic": ".."}, ValueError, "is not a valid name"),
    ({"topic": "no/name"}, ValueError, "is not a valid name"),
    ({"topic": "line\n"}, ValueError, "is not a valid name"),
    ({"topic": "nul\0"}, ValueError, "is not a valid name"),
    ({"topic": "тема"}, ValueError, "is not a valid name"),
    ({"topic": "n" * 250}, ValueError, "1 to 249"),
    ({"value": None}, ValueError, "a record needs a key or a value"),
    ({"value": "text"}, TypeError, "value must be bytes.*not str.*value_serializer"),
    ({"value": 5}, TypeError, "value must be bytes.*not int"),
    ({"value": [1]}, TypeError, "value must be bytes.*not list"),
    ({"value": memoryview(b"abcd")[::2]}, TypeError, "contiguous"),
    ({"key": "text"}, TypeError, "key must be bytes.*not str.*key_serializer"),
    ({"key": object()}, TypeError, "key must be bytes.*not object"),
    ({"headers": "text"}, TypeError, "headers must be a list"),
    ({"headers": {"a": b"b"}}, TypeError, "headers must be a list.*not dict"),
    ({"headers": [None]}, TypeError, "a header must be a tuple.*not NoneType"),
    ({"headers": [["a", b"b"]]}, TypeError, "a header must be a tuple.*not list"),
    ({"headers": [("a", b"b", LARGE)]}, TypeError, "'str', 'bytes', 'bytes'"),
    ({"headers": [(b"a", b"b")]}, TypeError, "'bytes', 'bytes'"),
    (
        {"headers": [("a", "b" * 1_000_000)]},
        TypeError,
        "the value of a header must be bytes or None, not str",
    ),
    ({"partition": -1}, ValueError, "partition must be 0 or more, not -1"),
    ({"partition": 1}, ValueError, "has no partition 1: it has 1 partition"),
    ({"partition": 2**70}, ValueError, "has no partition 1180591620717411303424"),
    ({"partition": "0"}, TypeError, "partition must be an int or None, not str"),
    ({"partition": 0.0}, TypeError, "partition must be an int or None, not float"),
    ({"timestamp_ms": -1}, ValueError, "timestamp_ms must be milliseconds since the epoch, not -1"),
    ({"timestamp_ms": 2**63}, ValueError, "timestamp_ms must be milliseconds"),
    ({"timestamp_ms": 1.5}, TypeError, "timestamp_ms must be an int or None, not float"),
    ({"timestamp_ms": "now"}, TypeError, "timestamp_ms must be an int or None, not str"),
    ({"value": LARGE}, MessageSizeTooLargeError, r"1100088 bytes.*max_request_size \(1048576\)"),
    ({"key": LARGE}, MessageSizeTooLargeError, "max_request_size"),
    ({"headers": [("h", LARGE)]}, MessageSizeTooLargeError, "max_request_size"),
]

BAD_SETTINGS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"value_serializer": serializing_to("text")}, TypeError, "value must be bytes.*not str"),
    ({"value_serializer": serializing_to(5)}, TypeError, "value must be bytes.*not int"),
    ({"key_serializer": serializing_to("text")}, TypeError, "key must be bytes.*not str"),
    ({"value_serializer": failing}, RuntimeError, "this cannot be serialised"),
    ({"key_serializer": failing}, RuntimeError, "this cannot be serialised"),
    ({"partitioner": FixedPartitioner(None)}, ValueError, "must return an int, but returned None"),
    ({"partitioner": FixedPartitioner("0")}, ValueError, "must return an int, but returned '0'"),
    ({"partitioner": FixedPartitioner(-1)}, ValueError, "partition must be 0 or more, not -1"),
    ({"partitioner": FixedPartitioner(7)}, ValueError, "has no partition 7"),
    ({"partitioner": FixedPartitioner(RuntimeError("no idea"))}, RuntimeError, "no idea"),
    ({"buffer_memory": 20_000}, MessageSizeTooLargeError, r"buffer_memory \(20000\)"),
]


def assert_refused(
    producer: KafkaProducer, arguments: dict[str, Any], expected: type[Exception], named: str
) -> None:
    good = {"topic": TOPIC, "value": b"good", "key": None, "partition": None}
    before = producer.send(TOPIC, b"good").get(BUDGET_S).offset
    with pytest.raises(expected, match=named) as raised:
        producer.send(**(good | arguments))
    said = str(raised.value)
    assert len(said) < LONGEST
    assert "\n" not in said
    assert producer.send(TOPIC, b"good").get(BUDGET_S).offset == before + 1
    free = producer.metrics()["producer-metrics"]
    assert free["buffer-available-bytes"] == free["buffer-total-bytes"]


@pytest.fixture(scope="module", params=["plain", "seen by a partitioner"])
def producer(request: pytest.FixtureRequest, our_broker: EmbeddedBroker) -> Any:
    """Start a producer without a partitioner (the fast path) or with one (the path through user code)."""
    partitioner = None if request.param == "plain" else FixedPartitioner(0)
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, partitioner=partitioner) as made:
        yield made


@pytest.mark.parametrize(("arguments", "expected", "named"), BAD_ARGUMENTS)
def test_argument_that_cannot_be_is_refused_and_the_producer_stays_usable(
    producer: KafkaProducer, arguments: dict[str, Any], expected: type[Exception], named: str
) -> None:
    assert_refused(producer, arguments, expected, named)


@pytest.mark.parametrize(("config", "expected", "named"), BAD_SETTINGS)
def test_what_a_setting_makes_of_a_record_is_checked_and_the_producer_stays_usable(
    our_broker: EmbeddedBroker, config: dict[str, Any], expected: type[Exception], named: str
) -> None:
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, **config) as producer:
        assert_refused(producer, {"value": b"bad" * 10_000, "key": b"bad"}, expected, named)


def test_error_of_a_serializer_is_raised_as_it_is(our_broker: EmbeddedBroker) -> None:
    servers = our_broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers, value_serializer=JsonSerializer()) as producer:
        with pytest.raises(TypeError, match="not JSON serializable"):
            producer.send("bad-json", object())
        assert producer.send("bad-json", [1]).get(BUDGET_S).offset == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda producer: producer.send(TOPIC, b"v"),
        lambda producer: producer.send("bad-calls-not-known", b"v"),
        lambda producer: producer.send_batch(TOPIC, [b"v"]),
        lambda producer: producer.partitions_for(TOPIC),
    ],
    ids=["send", "send to a new topic", "send_batch", "partitions_for"],
)
def test_closed_producer_refuses_every_call(
    our_broker: EmbeddedBroker, call: Callable[[KafkaProducer], object]
) -> None:
    producer = KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers)
    producer.send(TOPIC, b"good").get(BUDGET_S)
    producer.close()
    with pytest.raises(IllegalStateError, match="KafkaProducer is closed"):
        call(producer)
    producer.flush(BUDGET_S)
    producer.close()
