"""Our broker knows the name of every broker property that Apache Kafka describes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from peers.apache_kafka import ApacheKafka

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.errors import KafkaConfigurationError


@pytest.fixture
def their_properties(apache_kafka: ApacheKafka) -> Iterator[dict[str, str | None]]:
    admin = KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap_servers)
    try:
        resource = ConfigResource(ConfigResourceType.BROKER, "1")
        described = admin.describe_configs([resource], config_filter="all")
        yield {name: config.get("value") for name, config in described["broker"]["1"].items()}
    finally:
        admin.close()


def test_no_property_of_apache_kafka_is_unknown(their_properties: dict[str, str | None]) -> None:
    assert len(their_properties) > 250
    unknown = []
    for name, value in their_properties.items():
        try:
            BrokerConfig.from_properties({"data.dir": "/k", name: value or ""})
        except KafkaConfigurationError as error:
            unknown += [str(error)] if "unknown" in str(error) else []
    assert unknown == []
