"""Event loops, topics and consumers for tests of the asynchronous clients with our broker."""

import asyncio
import uuid

import confluent_kafka
import pytest
import uvloop

from kafkacore.aio import AIOKafkaConsumer


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    """Return a function that runs a coroutine in a new event loop of each kind."""

    def run(main):
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(main)

    return run


@pytest.fixture
def topic():
    return f"aio-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def produce(our_broker):
    """Return a function that writes values to a partition."""
    producer = confluent_kafka.Producer({"bootstrap.servers": our_broker.bootstrap_servers})

    def produce(topic, values, partition=0):
        for value in values:
            producer.produce(topic, b"%d" % value, partition=partition)
        assert producer.flush(60) == 0

    return produce


@pytest.fixture
def new_consumer(our_broker):
    """Return a function that creates a consumer which starts at the first record."""

    def new_consumer(*topics, **configs):
        settings = {"auto_offset_reset": "earliest", "retry_backoff_ms": 20, "fetch_max_wait_ms": 100}
        return AIOKafkaConsumer(*topics, bootstrap_servers=our_broker.bootstrap_servers, **settings | configs)

    return new_consumer
