"""The load of an idle query on its brokers: Spark asks the source for the latest offsets every 11 ms."""

from collections import Counter

import pytest
from eventually import BUDGET_S

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.spark.columns.output import KafkaColumns
from kafkacore.spark.reader.options import parse_options
from kafkacore.spark.reader.stream_reader import KafkaStreamReader

LOOKS = 10


@pytest.fixture
def reader(kafka_proxy):
    with KafkaAdminClient(bootstrap_servers=kafka_proxy.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("idle", num_partitions=3)])
    servers = {"kafka.bootstrap.servers": kafka_proxy.bootstrap_servers, "subscribe": "idle"}
    made = KafkaStreamReader(parse_options(servers, streaming=True), KafkaColumns(("value",)))
    yield made
    made._plan().close()


def test_each_look_asks_for_topics_and_ends_once_and_sees_what_has_just_come(reader, kafka_proxy):
    start = reader.initialOffset()
    limit = reader.getDefaultReadLimit()
    assert reader.latestOffset(start, limit) == start
    before = len(kafka_proxy.requests)
    for _ in range(LOOKS):
        assert reader.latestOffset(start, limit) == start == reader.reportLatestOffset()
    asked = Counter(request.api_key for request in kafka_proxy.requests[before:])
    assert asked == {MetadataRequest.API_KEY: LOOKS, ListOffsetsRequest.API_KEY: LOOKS}
    with KafkaProducer(bootstrap_servers=kafka_proxy.bootstrap_servers) as producer:
        producer.send("idle", b"x", partition=1).get(timeout=BUDGET_S)
    assert reader.latestOffset(start, limit) == {"idle": {"0": 0, "1": 1, "2": 0}}
