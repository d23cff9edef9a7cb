"""The same benchmark settings for each client, under the client's own names."""

from __future__ import annotations

import pytest

from kafkacore.bench.options import PEERS, BenchOptions
from kafkacore.bench.settings import consumer_settings, producer_settings
from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import KafkaConfigurationError
from kafkacore.producer import KafkaProducer

CLIENTS = ("kafkacore", *PEERS)


def spellings(settings: dict[str, object], *names: str) -> list[object]:
    return [settings[name] for name in names if name in settings]


@pytest.mark.parametrize("client", CLIENTS)
def test_tuned_profile_gives_every_producer_the_same(client):
    settings = producer_settings(client, BenchOptions(), "h:1", "lz4")
    assert spellings(settings, "bootstrap_servers", "bootstrap.servers") == ["h:1"]
    assert spellings(settings, "batch_size", "batch.size", "max_batch_size") == [1_000_000]
    assert spellings(settings, "linger_ms", "linger.ms") == [5]
    assert spellings(settings, "compression_type", "compression.type") == ["lz4"]
    assert str(settings["acks"]) == "1"


@pytest.mark.parametrize("client", ["kafka-python", "java"])
def test_linger_is_an_integer_where_the_client_needs_one(client):
    settings = producer_settings(client, BenchOptions(linger_ms=0.0), "h:1", "none")
    assert [str(value) for value in spellings(settings, "linger_ms", "linger.ms")] == ["0"]


@pytest.mark.parametrize("client", CLIENTS)
def test_default_profile_leaves_each_client_as_it_comes(client):
    options = BenchOptions(profile="default")
    assert len(producer_settings(client, options, "h:1", "none")) <= 2
    asked = producer_settings(client, BenchOptions(profile="default", acks="all"), "h:1", "none")
    assert asked["acks"] == "all"


def test_settings_of_ours_are_known_to_our_clients():
    assert set(producer_settings("kafkacore", BenchOptions(), "h:1", "zstd")) <= set(
        KafkaProducer.DEFAULT_CONFIG
    )
    assert set(consumer_settings("kafkacore-arrow", BenchOptions(), "h:1")) <= set(
        KafkaConsumer.DEFAULT_CONFIG
    )


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"modes": ("swim",)}, "unknown mode 'swim'"),
        ({"peers": ("sarama",)}, "unknown peer 'sarama'"),
        ({"size": 3}, "--size must be at least 8"),
        ({"records": 0}, "--records"),
        ({"rounds": 0}, "--rounds"),
        ({"partitions": (1, 0)}, "--partitions"),
        ({"rate": 0.0}, "--rate"),
        ({"compressible": 1.5}, "--compressible"),
        ({"acks": "0", "rate": 10.0}, "without acknowledgements"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_sentence(wrong, sentence):
    with pytest.raises(KafkaConfigurationError, match=sentence):
        BenchOptions(**wrong).check()
