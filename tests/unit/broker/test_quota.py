"""Quotas: the figures of Kafka's tests, the throttle time of clients, and no delay for other clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.broker_harness import BrokerHarness, batch
from model.fetch_client import FetchClient

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.quota_overrides import parse_overrides
from kafkacore.broker.quota import (
    ClientQuota,
    ControllerMutationQuota,
    IpConnectionQuota,
    QuotaEntity,
    QuotaKind,
    WindowedRate,
    canonical_ip,
)
from kafkacore.errors import (
    InvalidPartitionsError,
    KafkaConfigurationError,
    ThrottlingQuotaExceededError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.create_partitions import CreatePartitionsRequest
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.structs import TopicPartition


def a_quota(
    default: float | None = 500, max_throttle_ms: float | None = None, **overrides: float
) -> ClientQuota:
    return ClientQuota(default, overrides, sample_count=11, sample_ms=1000, max_throttle_ms=max_throttle_ms)


# ---- The figures of ClientQuotaManagerTest -------------------------------------------------------------


@pytest.mark.kafka("ClientQuotaManagerTest.testQuotaViolation")
def test_spike_pauses_for_as_long_as_kafka_says() -> None:
    quota = a_quota()
    for second in range(10):
        assert quota.record_and_get_throttle_ms("c", 400, second * 1000) == 0
    # 400 * 10 + 2300 in 10.5 s are 600 per second, so the pause is (600 - 500) / 500 * 10.5 s.
    assert quota.record_and_get_throttle_ms("c", 2300, 10_500) == 2100
    now = 12_600
    for _ in range(10):
        quota.record_and_get_throttle_ms("c", 400, now)
        now += 1000
    assert quota.record_and_get_throttle_ms("c", 0, now) == 0


def test_request_time_pauses_for_as_long_as_kafka_says_and_never_longer_than_a_sample() -> None:
    quota = a_quota(1, max_throttle_ms=1000)
    for second in range(10):
        assert quota.record_and_get_throttle_ms("c", 0.4, second * 1000) == 0
    assert quota.record_and_get_throttle_ms("c", 6.71, 10_500) == 210
    assert quota.record_and_get_throttle_ms("c", 50, 10_710) == 1000


@pytest.mark.kafka(
    "ClientQuotaManagerTest.testUserQuotaParsing",
    "ClientQuotaManagerTest.testUserClientIdQuotaParsing",
    "ClientQuotaManagerTest.testUserQuotaParsingWithDefaultClientIdQuota",
    "ClientQuotaManagerTest.testUserClientQuotaParsingIdWithDefaultClientIdQuota",
    "ClientQuotaManagerTest.testSetAndRemoveDefaultUserQuota",
    "ClientQuotaManagerTest.testSetAndRemoveUserQuota",
    "ClientQuotaManagerTest.testSetAndRemoveUserClientQuota",
)
def test_most_precise_quota_of_user_and_client_applies() -> None:
    """The order is that of ClientQuotaManager; "" is the default. Without a quota, the next one applies."""
    users = [(user, client) for user in ("alice", "") for client in ("c", "", None)]
    order = [*users, (None, "c"), (None, "")]
    quota = a_quota(default=1000)
    for limit, entity in enumerate(order):
        quota.set_entity(QuotaEntity(*entity), limit)
    for limit, entity in enumerate(order):
        assert quota.limit("c", "alice") == limit
        quota.set_entity(QuotaEntity(*entity), None)
    assert quota.limit("c", "alice") == 1000


@pytest.mark.kafka("ClientQuotaManagerTest.testGetMaxValueInQuotaWindowWithNonDefaultQuotaWindow")
def test_rate_of_a_new_client_is_of_the_whole_window() -> None:
    quota = a_quota()
    assert quota.record_and_get_throttle_ms("c", 5000, 0) == 0
    assert quota.record_and_get_throttle_ms("c", 500, 0) == 1000
    assert quota.max_in_window("c") == 5000


@pytest.mark.kafka(
    "ClientQuotaManagerTest.testClientIdQuotaParsing",
    "ClientQuotaManagerTest.testGetMaxValueInQuotaWindowWithNonDefaultQuotaWindow",
    "ClientQuotaManagerTest.testQuotaConfigPrecedence",
)
def test_client_has_its_own_limit_or_the_default_or_none() -> None:
    quota = a_quota(None, slow=10)
    assert quota.is_enabled
    assert (quota.limit("slow"), quota.limit("other"), quota.max_in_window("other")) == (10, None, None)
    assert quota.record_and_get_throttle_ms("other", 10**9, 0) == 0
    assert quota.record_and_get_throttle_ms("slow", 1000, 0) > 0
    quota.set_limit(None, 20)
    quota.set_limit("slow", None)
    assert quota.limit("slow") == quota.limit("other") == 20
    quota.set_limit(None, None)
    assert not quota.is_enabled


@pytest.mark.kafka(
    "ClientQuotaManagerTest.testExpireThrottleTimeSensor",
    "ClientQuotaManagerTest.testExpireQuotaSensors",
)
def test_clients_whose_last_sample_is_over_are_forgotten() -> None:
    """A client may send a new id of 32 KiB with each request, so ids must be dropped soon."""
    quota = a_quota()
    window_ms = 11 * 1000.0
    for number in range(100):
        quota.record(f"old-{number}", 1, number)
    quota.record("new", 1, window_ms + 50.5)
    assert len(quota._rates.keys()) == 50
    quota.record("new", 1, 3 * window_ms)
    assert quota._rates.keys() == [QuotaEntity(None, "new")]


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 1000)), max_size=40))
def test_rate_is_what_the_samples_say(steps: list[tuple[int, int]]) -> None:
    """The oracle keeps every sample and recounts them at each step."""
    rate, now = WindowedRate(11, 1000), 0.0
    samples: list[tuple[float, int]] = []
    for wait, amount in steps:
        now += wait
        rate.record(amount, now)
        if not samples or now - samples[-1][0] >= 1000:
            samples.append((now, 0))
        samples[-1] = (samples[-1][0], samples[-1][1] + amount)
        live = [sample for sample in samples if now - sample[0] < 11_000]
        elapsed = now - live[0][0]
        window = max(elapsed + max(10 - elapsed // 1000, 0) * 1000, 1)
        observed, window_ms = rate.measure(now)
        assert window_ms == window
        assert observed == pytest.approx(sum(amount for _, amount in live) / window * 1000)


@pytest.mark.parametrize("text", ["a", "a=", "=1x", "a=0", "a=-1", "a=1.5", "a=1;b"])
def test_overrides_that_cannot_be_read_are_refused_with_their_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"quota\.producer\.overrides=.* list of client=limit"):
        BrokerConfig.from_properties({"data_dir": tmp_path, "quota.producer.overrides": text})


@pytest.mark.kafka(
    "ClientQuotaManagerTest.testClientIdQuotaParsing",
    "ClientQuotaManagerTest.testClientIdNotSanitized",
)
def test_overrides_are_clients_and_their_limits() -> None:
    assert parse_overrides("q", " a=1, b.c-d = 20 ,,x=y=3") == {"a": 1, "b.c-d": 20, "x=y": 3}
    assert parse_overrides("q", "") == {}


# ---- The figures of ControllerMutationQuotaManagerTest ---------------------------------------------------


def mutations(limit: float = 10) -> ControllerMutationQuota:
    quota = ControllerMutationQuota(10, 1000)
    quota.set_entity(QuotaEntity(None, "c"), limit)
    return quota


@pytest.mark.kafka(
    "StrictControllerMutationQuotaTest.testControllerMutationQuotaViolation",
    "ControllerMutationQuotaManagerTest.testControllerMutationQuotaViolation",
)
def test_strict_quota_rejects_only_what_follows_a_violation() -> None:
    quota = mutations()
    found = [quota.throttle_ms("c", 90, 0, is_strict=True) for _ in range(3)]
    assert found == [0, 0, 8000]
    # A rejected change is not recorded.
    assert quota.throttle_ms("c", 90, 5000, is_strict=True) == 3000
    assert quota.throttle_ms("c", 90, 8000, is_strict=True) == 0
    assert quota.throttle_ms("other", 10**6, 0, is_strict=True) == 0


@pytest.mark.kafka("PermissiveControllerMutationQuotaTest.testControllerMutationQuotaViolation")
def test_permissive_quota_records_and_throttles() -> None:
    quota = mutations()
    assert [quota.throttle_ms("c", 90, 0, is_strict=False) for _ in range(3)] == [0, 8000, 17_000]


def test_clients_whose_bucket_is_full_are_forgotten() -> None:
    quota = ControllerMutationQuota(10, 1000)
    quota.set_entity(QuotaEntity(None, ""), 10)
    for number in range(100):
        quota.throttle_ms(f"old-{number}", 10 if number else 110, 0, is_strict=True)
    quota.throttle_ms("new", 1, 1000, is_strict=True)
    assert list(quota._buckets) == [QuotaEntity(None, "old-0"), QuotaEntity(None, "new")]


def test_removed_mutation_rate_is_no_limit() -> None:
    quota = mutations(1)
    quota.set_entity(QuotaEntity(None, "c"), None)
    assert not quota.is_enabled
    assert quota.limit("c") is None
    assert quota.throttle_ms("c", 10**6, 0, is_strict=True) == 0


# ---- Requests ------------------------------------------------------------------------------------------


def a_broker(tmp_path: Path, **config: Any) -> BrokerHarness:
    broker = BrokerHarness(tmp_path, **config)
    broker.topics.create("t", 1, {})
    return broker


def produce(broker: BrokerHarness, size: int, *, acks: int = 1, version: int = 12) -> Any:
    data = ProduceRequest.PartitionProduceData(index=0, records=batch(b"x" * size))
    request = ProduceRequest(
        acks=acks,
        timeout_ms=100,
        topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[data])],
    )
    return broker.send(request, version)


@pytest.mark.parametrize("version", [3, 9, 12])
def test_producer_over_its_quota_is_told_to_pause(tmp_path: Path, version: int) -> None:
    broker = a_broker(tmp_path, quota_producer_default=1000)
    answer = produce(broker, 5_000, version=version)
    assert (answer.message.throttle_time_ms, answer.request.throttle_ms) == (0, 0)
    answer = produce(broker, 10_000, version=version)
    assert 5_000 < answer.message.throttle_time_ms < 6_500
    assert answer.request.throttle_ms == answer.message.throttle_time_ms
    assert broker.log("t").log_end_offset == 2
    broker.clock.advance(60_000)
    assert produce(broker, 5_000, version=version).message.throttle_time_ms == 0


def test_producer_that_wants_no_answer_pauses_too(tmp_path: Path) -> None:
    broker = a_broker(tmp_path, quota_producer_overrides="test=1000")
    answer = produce(broker, 30_000, acks=0)
    assert answer.message is None
    assert answer.request.throttle_ms > 10_000


def test_consumer_over_its_quota_gets_nothing_until_the_pause_is_over(tmp_path: Path) -> None:
    broker = a_broker(tmp_path, quota_consumer_default=1000)
    for _ in range(4):
        broker.replica_manager.append(TopicPartition("t", 0), memoryview(batch(b"x" * 4000)), 1)
    client = FetchClient(broker)
    client.want("t", 0, 0)
    first = client.fetch()
    key = client.key("t", 0)
    # A response has at most the bytes that the quota allows in a whole window.
    assert (first.throttle_time_ms, len(client.view[key].values)) == (0, 2)
    session_id = first.session_id
    client.want("t", 0, 2)
    second = client.fetch()
    assert second.throttle_time_ms > 0
    assert (second.error_code, second.session_id, list(second.responses)) == (0, session_id, [])
    assert len(client.view[key].values) == 2
    client.view.clear()
    paused_ms = 0
    while throttle_ms := client.fetch().throttle_time_ms:
        paused_ms += throttle_ms
        broker.clock.advance(throttle_ms)
    # The recorded bytes expire with the window.
    assert paused_ms <= 13_000
    assert len(client.view[key].values) == 2


def test_full_fetch_that_is_throttled_begins_no_session(tmp_path: Path) -> None:
    broker = a_broker(tmp_path, quota_consumer_default=1000)
    broker.replica_manager.append(TopicPartition("t", 0), memoryview(batch(b"x" * 20_000)), 1)
    client = FetchClient(broker)
    client.want("t", 0, 0)
    # A batch is never split, and this one exceeds the whole window. Kafka, too, throttles it forever.
    response = client.fetch()
    assert response.throttle_time_ms > 0
    assert response.session_id == 0
    assert len(broker.fetch_sessions) == 0


def test_time_of_the_thread_is_counted_for_every_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = a_broker(tmp_path, quota_request_default=1)
    api = broker.apis._apis[MetadataRequest.API_KEY]
    handle = api.handle

    def slow(request: Any, services: Any) -> Any:
        broker.clock.advance(150)
        return handle(request, services)

    monkeypatch.setattr(api, "handle", slow)
    first = broker.send(MetadataRequest(topics=[]), 12)
    # 15 % of one second in a window of ten are 1.5 % per second.
    assert first.message.throttle_time_ms == 1000
    assert first.request is not None
    assert first.request.throttle_ms == 1000
    assert broker.quotas.of(QuotaKind.REQUEST).rate("test", broker.clock.monotonic_ms()) == pytest.approx(1.5)


def test_waiting_costs_a_client_nothing(tmp_path: Path) -> None:
    broker = a_broker(tmp_path, quota_request_default=1)
    client = FetchClient(broker)
    client.want("t", 0, 0)
    client.fetch()
    answer = client.send(max_wait_ms=5000)
    broker.clock.advance(5000)
    broker.settle()
    assert client.take(answer.message).throttle_time_ms == 0


def test_broker_without_quotas_counts_nothing(tmp_path: Path) -> None:
    broker = a_broker(tmp_path)
    assert not broker.quotas.is_enabled
    answer = produce(broker, 100_000)
    assert (answer.request.quotas, answer.message.throttle_time_ms) == (None, 0)
    broker.quotas.set_limit(QuotaKind.PRODUCE, "test", 10)
    assert produce(broker, 1000).message.throttle_time_ms > 0
    broker.quotas.set_limit(QuotaKind.PRODUCE, "test", None)
    assert produce(broker, 100_000).message.throttle_time_ms == 0


# ---- Connections of an IP address --------------------------------------------------------------------------


def accepted(quota: IpConnectionQuota, host: str, count: int, now_ms: float) -> int:
    """Return how many of ``count`` connections the quota accepts."""
    return sum(quota.count_and_get_throttle_ms(host, now_ms) == 0 for _ in range(count))


def test_connections_of_an_address_have_its_limit_or_the_default() -> None:
    quota = IpConnectionQuota(11, 1000.0)
    assert accepted(quota, "10.0.0.1", 1000, 0) == 1000
    quota.set_limit("10.0.0.1", 5)
    # Ten complete windows of a second precede the first connection.
    assert accepted(quota, "10.0.0.1", 1000, 20_000) == 50
    assert accepted(quota, "10.0.0.2", 1000, 20_000) == 1000
    quota.set_limit("", 2)
    assert accepted(quota, "10.0.0.2", 1000, 40_000) == 20
    assert accepted(quota, "10.0.0.3", 1000, 40_000) == 20
    assert accepted(quota, "10.0.0.1", 1000, 40_000) == 50
    quota.set_limit("10.0.0.1", None)
    assert accepted(quota, "10.0.0.1", 1000, 60_000) == 20
    quota.set_limit("", None)
    assert accepted(quota, "10.0.0.1", 1000, 60_000) == 1000


def test_connection_over_the_limit_is_throttled_and_does_not_count() -> None:
    quota = IpConnectionQuota(11, 1000.0)
    quota.set_limit("::1", 1)
    assert accepted(quota, "::1", 100, 0) == 10
    # One connection too many of ten in ten seconds, and at most the length of a sample.
    assert quota.count_and_get_throttle_ms("::1", 0) == 1000
    assert accepted(quota, "0:0:0:0:0:0:0:1", 100, 5_000) == 0
    assert accepted(quota, "::1", 100, 11_000) == 10


def test_ipv4_address_in_ipv6_notation_is_the_same_address() -> None:
    quota = IpConnectionQuota(11, 1000.0)
    quota.set_limit("10.0.0.1", 1)
    assert accepted(quota, "::ffff:10.0.0.1", 100, 0) == 10
    assert canonical_ip("FE80::0001%eth0") == "fe80::1%eth0"
    with pytest.raises(ValueError, match="localhost"):
        canonical_ip("localhost")


# ---- Partition changes (KIP-599) ---------------------------------------------------------------------------


def limited_broker(tmp_path: Path) -> BrokerHarness:
    """Return a broker with topics ``a`` and ``b`` whose client may change a partition per second."""
    broker = BrokerHarness(tmp_path)
    for name in ("a", "b"):
        broker.topics.create(name, 2, {})
    broker.quotas.set_entity(QuotaKind.CONTROLLER_MUTATION, QuotaEntity(None, "test"), 1)
    return broker


def creation(*counts: int, validate_only: bool = False) -> CreateTopicsRequest:
    topics = [
        CreateTopicsRequest.CreatableTopic(name=f"new-{count}", num_partitions=count, replication_factor=1)
        for count in counts
    ]
    return CreateTopicsRequest(topics=topics, validate_only=validate_only)


def growth(name: str, count: int, validate_only: bool = False) -> CreatePartitionsRequest:
    topic = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=[topic], validate_only=validate_only)


def deletion(name: str, version: int) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[name])
    return DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)])


def outcome(broker: BrokerHarness, message: Any, version: int) -> tuple[list[int], int]:
    """Return the error codes of a response and its throttle time, which is also that of the connection."""
    answer = broker.send(message, version)
    response = answer.message
    results = getattr(response, "topics", None) or getattr(response, "responses", None) or response.results
    assert answer.request.throttle_ms == response.throttle_time_ms
    return [result.error_code for result in results], response.throttle_time_ms


EXCEEDED = ThrottlingQuotaExceededError.errno


def test_request_of_a_new_version_over_the_mutation_rate_is_rejected(tmp_path: Path) -> None:
    broker = limited_broker(tmp_path)
    # The burst is 11 partitions. The topic that exceeds it is created, and what follows is rejected.
    assert outcome(broker, creation(3, 10, 1), 7) == ([0, 0, EXCEEDED], 2000)
    assert outcome(broker, deletion("a", 6), 6) == ([EXCEEDED], 2000)
    assert outcome(broker, growth("b", 3), 3) == ([EXCEEDED], 2000)
    assert broker.topics.get("a") is not None
    assert broker.log_manager.topic_states["b"].partition_count == 2
    broker.clock.advance(2000)
    assert outcome(broker, deletion("a", 6), 6) == ([0], 0)
    assert outcome(broker, creation(1), 6) == ([EXCEEDED], 2000)
    broker.clock.advance(2000)
    assert outcome(broker, growth("b", 3), 3) == ([0], 0)


def test_request_of_an_old_version_over_the_mutation_rate_is_throttled(tmp_path: Path) -> None:
    broker = limited_broker(tmp_path)
    assert outcome(broker, creation(11, 1), 5) == ([0, 0], 1000)
    assert outcome(broker, deletion("a", 4), 4) == ([0], 3000)
    assert outcome(broker, growth("b", 3), 2) == ([0], 4000)


def test_validation_counts_as_a_change_of_partitions(tmp_path: Path) -> None:
    broker = limited_broker(tmp_path)
    assert outcome(broker, creation(12, validate_only=True), 7) == ([0], 0)
    assert outcome(broker, growth("b", 3, validate_only=True), 3) == ([EXCEEDED], 1000)
    assert outcome(broker, creation(1, validate_only=True), 7) == ([EXCEEDED], 1000)


def test_invalid_changes_of_partitions_do_not_count(tmp_path: Path) -> None:
    broker = limited_broker(tmp_path)
    for _ in range(20):
        assert outcome(broker, deletion("none", 6), 6) == ([UnknownTopicOrPartitionError.errno], 0)
        assert outcome(broker, growth("b", 1), 3) == ([InvalidPartitionsError.errno], 0)
    assert outcome(broker, creation(1), 7) == ([0], 0)


def test_topics_are_created_by_metadata_within_the_mutation_rate(tmp_path: Path) -> None:
    broker = limited_broker(tmp_path)
    assert outcome(broker, creation(12), 7) == ([0], 0)
    missing = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name="auto")], allow_auto_topic_creation=True
    )
    assert outcome(broker, missing, 12) == ([UnknownTopicOrPartitionError.errno], 0)
    broker.clock.advance(1000)
    assert outcome(broker, missing, 12) == ([0], 0)


def test_throttle_time_is_less_by_the_time_that_the_request_waited(tmp_path: Path) -> None:
    broker = limited_broker(tmp_path)
    request = broker.send(creation(12), 7).request
    with pytest.raises(ThrottlingQuotaExceededError, match="The throttling quota has been exceeded"):
        broker.quotas.record_mutation(request, 1, strict_since=6)
    broker.clock.advance(400)
    response = CreateTopicsResponse()
    broker.quotas.on_response(request, response)
    assert response.throttle_time_ms == 600
