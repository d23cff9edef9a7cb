"""A broker that is lost under a running stream: the planner retries as often as the options allow."""

import pytest

from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.clock import Clock
from kafkacore.errors import KafkaTimeoutError
from kafkacore.spark.reader.options import parse_options
from kafkacore.spark.reader.planner import OffsetPlanner
from kafkacore.structs import TopicPartition
from kafkacore.testing.embedded_broker import EmbeddedBroker

T0 = TopicPartition("t", 0)


class WhileWaiting(Clock):
    """A clock that runs a function instead of sleeping between two attempts."""

    def __init__(self):
        super().__init__()
        self.do = None

    def sleep_ms(self, duration_ms):
        if self.do is not None:
            do, self.do = self.do, None
            do()


@pytest.fixture
def broker():
    with EmbeddedBroker() as started:
        with KafkaAdminClient(bootstrap_servers=started.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", num_partitions=1)])
        yield started


@pytest.fixture
def planner_of(broker):
    """Return a function that makes a planner with so many retries."""
    made = []

    def of(retries):
        options = {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "subscribe": "t",
            "fetchOffset.numRetries": str(retries),
            "kafka.request.timeout.ms": "600",
        }
        made.append(OffsetPlanner(parse_options(options, streaming=True), WhileWaiting()))
        return made[-1]

    yield of
    for planner in made:
        planner.close()


def test_stream_goes_on_when_the_broker_is_back_within_the_retries(broker, planner_of):
    # There is no pause between retries here. An attempt that a slow machine lets time out is repeated.
    planner = planner_of(retries=100)
    assert planner.latest() == {T0: 0}
    broker.stop()
    planner._clock.do = broker.start
    assert planner.latest({T0: 0}) == {T0: 0}


def test_stream_fails_with_a_sentence_when_the_broker_stays_away(broker, planner_of):
    planner = planner_of(retries=2)
    assert planner.latest() == {T0: 0}
    broker.stop()
    with pytest.raises(KafkaTimeoutError, match=r"within 600 ms \(bootstrap_servers=127.0.0.1:\d+\)"):
        planner.latest({T0: 0})
