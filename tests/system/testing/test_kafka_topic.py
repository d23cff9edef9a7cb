"""The fixtures for topics, as the tests of a user's program use them."""

from __future__ import annotations

import asyncio

import pytest
from eventually import BUDGET_S

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient
from kafkacore.aio import AIOKafkaProducer
from kafkacore.testing import AIOKafkaTopic, EmbeddedBroker, KafkaTopic

pytest_plugins = ["pytester"]


def producer_of(topic: KafkaTopic, **settings: object) -> KafkaProducer:
    return KafkaProducer(**topic.client_settings(), **settings)


def test_topic_is_new_and_has_the_name_of_its_test(kafka_topic: KafkaTopic) -> None:
    assert kafka_topic.name.startswith("test_topic_is_new_and_has_the_name_of_its_test-")
    assert kafka_topic.records() == []
    assert repr(kafka_topic) == f"<KafkaTopic {kafka_topic.name!r} on {kafka_topic.bootstrap_servers}>"


@pytest.mark.parametrize("case", ["a b/ü"])
def test_name_of_a_case_becomes_a_valid_name(kafka_topic: KafkaTopic, case: str) -> None:
    assert kafka_topic.name.rpartition("-")[0] == "test_name_of_a_case_becomes_a_valid_name-a-b-xfc"


def test_records_are_all_that_there_are(kafka_topic: KafkaTopic) -> None:
    with producer_of(kafka_topic) as producer:
        producer.send_batch(kafka_topic.name, [b"%d" % number for number in range(3000)])
    assert [record.value for record in kafka_topic.records()] == [b"%d" % number for number in range(3000)]
    assert kafka_topic.records(value_deserializer=int)[-1].value == 2999


def test_records_of_a_transaction_wait_for_its_end(kafka_topic: KafkaTopic) -> None:
    committed = {"isolation_level": "read_committed"}
    with producer_of(kafka_topic, transactional_id=kafka_topic.name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(kafka_topic.name, b"open").get(BUDGET_S)
        assert kafka_topic.records(**committed) == []
        assert len(kafka_topic.wait_for(1)) == 1
        producer.commit_transaction()
    assert [record.value for record in kafka_topic.wait_for(1, **committed)] == [b"open"]
    assert len(kafka_topic.records(**committed)) == 1


def test_too_few_records_are_an_error_that_counts_them(kafka_topic: KafkaTopic) -> None:
    with producer_of(kafka_topic) as producer:
        producer.send(kafka_topic.name, b"one").get(BUDGET_S)
    assert kafka_topic.wait_for(0) == []
    with pytest.raises(AssertionError, match=rf"{kafka_topic.name} has [01] of 2 records after 0\.3 s"):
        kafka_topic.wait_for(2, timeout=0.3)


def test_asynchronous_test_waits_while_its_program_runs(aio_kafka_topic: AIOKafkaTopic) -> None:
    async def program() -> None:
        async with AIOKafkaProducer(**aio_kafka_topic.client_settings()) as producer:
            for value in (b"one", b"two"):
                await producer.send_and_wait(aio_kafka_topic.name, value)

    async def main() -> None:
        assert await aio_kafka_topic.records() == []
        async with asyncio.TaskGroup() as group:
            found = group.create_task(aio_kafka_topic.wait_for(2, BUDGET_S))
            group.create_task(program())
        assert [record.value for record in found.result()] == [b"one", b"two"]
        assert await aio_kafka_topic.records() == found.result()
        with pytest.raises(AssertionError, match=r"has [0-2] of 3 records after 0\.3 s"):
            await aio_kafka_topic.wait_for(3, timeout=0.3)

    asyncio.run(main())
    assert "<AIOKafkaTopic" in repr(aio_kafka_topic)


PROGRAM = """
    from kafkacore import KafkaProducer

    def test_program(kafka_topic, kafka_broker):
        print(kafka_broker, kafka_topic)
        with KafkaProducer(bootstrap_servers=kafka_topic.bootstrap_servers) as producer:
            producer.send(kafka_topic.name, b"v")
        assert [record.value for record in kafka_topic.wait_for(1)] == [b"v"]
"""


def test_same_tests_run_on_an_existing_cluster(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        PROGRAM
        + """
    def test_kill(kafka_broker):
        kafka_broker.kill()
"""
    )
    with EmbeddedBroker() as broker:
        servers = broker.bootstrap_servers
        result = pytester.runpytest_subprocess(
            "-q", "-s", "-p", "no:cacheprovider", "--kafka-bootstrap", servers
        )
        result.assert_outcomes(passed=1, failed=1)
        result.stdout.fnmatch_lines(
            [f"*<ExistingCluster {servers}> <KafkaTopic 'test_program-* on {servers}>*"]
        )
        result.stdout.fnmatch_lines(["*kafka_broker.kill needs the embedded broker, and --kafka-bootstrap *"])
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            assert admin.list_topics() == []
