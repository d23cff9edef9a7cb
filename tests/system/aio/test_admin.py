"""AIOKafkaAdminClient with our broker, on asyncio and uvloop."""

import asyncio
import inspect
import pickle
import threading

import pytest
from eventually import BUDGET_MS

from kafkacore import KafkaAdminClient
from kafkacore.admin import NewTopic
from kafkacore.aio import AIOKafkaAdminClient
from kafkacore.errors import (
    IllegalStateError,
    KafkaConfigurationError,
    NoBrokersAvailable,
    TopicAlreadyExistsError,
)
from kafkacore.structs import OffsetAndMetadata, TopicPartition
from kafkacore.testing import FaultProxy

#: Methods of the synchronous client that the asynchronous one does not have as coroutines.
NOT_COROUTINES = {"metrics", "lag_reader"}


@pytest.fixture
def new_admin(our_broker):
    """Return a function that creates an admin client."""

    def new_admin(**configs):
        return AIOKafkaAdminClient(**{"bootstrap_servers": our_broker.bootstrap_servers} | configs)

    return new_admin


def test_every_method_of_the_synchronous_client_is_a_coroutine():
    for name, method in vars(KafkaAdminClient).items():
        if not name.startswith("_") and callable(method) and name not in NOT_COROUTINES:
            own = getattr(AIOKafkaAdminClient, name)
            assert inspect.iscoroutinefunction(own), name
            assert inspect.signature(own) == inspect.signature(method), name


def test_tasks_share_a_client(run, new_admin, topic):
    async def main():
        threads = set(threading.enumerate())
        async with new_admin() as admin:
            created = await asyncio.gather(
                *(admin.create_topics([NewTopic(f"{topic}-{n}", 2, 1)]) for n in range(3))
            )
            assert [each["topics"][0]["name"] for each in created] == [f"{topic}-{n}" for n in range(3)]
            names, cluster = await asyncio.gather(admin.list_topics(), admin.describe_cluster())
            assert {f"{topic}-{n}" for n in range(3)} <= set(names)
            assert len(cluster["brokers"]) == 1
            with pytest.raises(TopicAlreadyExistsError):
                await admin.create_topics([NewTopic(f"{topic}-0", 2, 1)])
            assert admin.metrics()["admin-metrics"]
            # Threads of an earlier test may end at any time.
            assert set(threading.enumerate()) <= threads

    run(main())


def test_groups_have_aiokafkas_names(run, new_admin, topic):
    async def main():
        partition = TopicPartition(topic, 0)
        async with new_admin() as admin:
            await admin.create_topics([topic])
            await admin.alter_group_offsets(topic, {partition: OffsetAndMetadata(0, "note")})
            assert (topic, "") in await admin.list_consumer_groups()
            assert (await admin.describe_consumer_groups([topic]))[topic]["group_state"] == "Empty"
            offsets = await admin.list_consumer_group_offsets(topic, partitions=[partition])
            assert offsets == {partition: OffsetAndMetadata(0, "note")}

    run(main())


def test_client_must_be_started_once_and_open(run, new_admin):
    async def main():
        admin = new_admin()
        with pytest.raises(IllegalStateError, match="not started: await start"):
            await admin.list_topics()
        await admin.start()
        with pytest.raises(IllegalStateError, match="twice"):
            await admin.start()
        await admin.close()
        await admin.close()
        for call in (admin.list_topics, admin.start):
            with pytest.raises(IllegalStateError, match="closed; create a new one"):
                await call()

    run(main())


def test_wrong_arguments_are_refused_at_once():
    with pytest.raises(TypeError, match=r"AIOKafkaAdminClient\(\*\*config\)"):
        AIOKafkaAdminClient({"bootstrap.servers": "localhost:9092"})
    with pytest.raises(KafkaConfigurationError, match="retries_of_mine"):
        AIOKafkaAdminClient(retries_of_mine=1)
    with pytest.warns(DeprecationWarning, match="loop is deprecated"):
        AIOKafkaAdminClient(loop=object())


def test_start_that_does_not_wait_leaves_the_connection_to_the_first_call(run, our_broker, new_admin):
    with FaultProxy(our_broker.bootstrap_servers) as proxy:
        proxy.set_refusing()

        async def main():
            admin = new_admin(bootstrap_servers=proxy.bootstrap_servers, bootstrap_timeout_ms=0)
            async with admin:
                proxy.set_refusing(False)
                assert isinstance(await admin.list_topics(), list)

        run(main())


def test_broker_that_is_away_does_not_block_the_loop(run, our_broker, new_admin):
    with FaultProxy(our_broker.bootstrap_servers) as proxy:
        proxy.set_refusing()

        async def main():
            admin = new_admin(bootstrap_servers=proxy.bootstrap_servers, bootstrap_timeout_ms=BUDGET_MS)
            starting = asyncio.create_task(admin.start())
            for _ in range(10):
                await asyncio.sleep(0.001)
            assert not starting.done()
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
            admin.config["bootstrap_timeout_ms"] = 300
            with pytest.raises(NoBrokersAvailable, match="bootstrap_timeout_ms=300"):
                await admin.start()
            # After an error, the client can be started again.
            proxy.set_refusing(False)
            admin.config["bootstrap_timeout_ms"] = BUDGET_MS
            async with admin:
                assert await admin.describe_cluster()

        run(main())


def test_cancelled_call_leaves_the_client_usable(run, new_admin, topic):
    async def main():
        async with new_admin() as admin:
            for number in range(20):
                call = asyncio.create_task(admin.create_topics([f"{topic}-{number}"]))
                for _ in range(number):
                    await asyncio.sleep(0)
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
                assert await admin.describe_cluster()

    run(main())


def test_close_ends_a_call_that_waits(run, new_admin, topic):
    async def main():
        admin = new_admin()
        await admin.start()
        waiting = asyncio.create_task(admin.wait_for_topics([topic], timeout_ms=60_000))
        requests = admin._admin._requester.client.in_flight_request_count
        while not requests():
            await asyncio.sleep(0)
        await admin.close()
        with pytest.raises(IllegalStateError, match="closed"):
            await waiting

    run(main())


def test_unclosed_client_warns_once_and_closes_its_connections(run, new_admin):
    async def main():
        admin = new_admin()
        await admin.start()
        connections = admin._admin._requester.client.connection_count
        assert connections() == 1
        held = [admin]
        del admin
        with pytest.warns(ResourceWarning, match="unclosed <AIOKafkaAdminClient") as warned:
            held.clear()
        assert len(warned) == 1

    run(main())


def test_client_that_another_thread_collects_is_closed_in_the_loop(run, new_admin):
    async def main():
        held = [new_admin()]
        await held[0].start()
        synchronous = held[0]._admin

        def collect():
            with pytest.warns(ResourceWarning, match="unclosed"):
                held.clear()

        collecting = threading.Thread(target=collect)
        collecting.start()
        collecting.join()
        while not synchronous._closed:
            await asyncio.sleep(0)

    run(main())


def test_client_cannot_be_copied(new_admin):
    with pytest.raises(TypeError, match="create one in each process"):
        pickle.dumps(new_admin())
