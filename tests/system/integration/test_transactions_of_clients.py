"""Transactions of five producers on our broker, alone and together while the broker is killed.

Java's read_committed consumer and ours read the records back. Java's producer and ours use transaction
version 2, the others version 1.
"""

from __future__ import annotations

import gc
import itertools
import logging
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import BUDGET_S, eventually
from model.dose import dose, new_seed, note
from model.topic_reader import await_markers, read_log
from peers.java_peer import JavaPeer, started_java_peer
from peers.mixed_kills import MixedKills
from peers.transactional_clients import CLIENT_NAMES, Client, Ids, Outcome, Transaction, clients

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.testing import EmbeddedBroker

#: kafka-python leaves sockets open. They are collected within the test (``collected_sockets``).
pytestmark = pytest.mark.filterwarnings(r"ignore:unclosed <socket:ResourceWarning")

PARTITIONS = 2
#: Milliseconds after which a transaction times out in the test of that.
SHORT_MS = 2_000
KILLS = dose(4, 200)
_names = itertools.count(1)


@pytest.fixture(autouse=True)
def collected_sockets() -> Iterator[None]:
    """Collect kafka-python's sockets. Its log records, which pytest keeps, would hold them by tracebacks."""
    logger = logging.getLogger("kafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(before)
    gc.collect()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    settings = {
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": 100,
        # A commit of offsets may wait for the disk of a busy machine longer than Kafka's 5 s.
        "offsets_commit_timeout_ms": 60_000,
    }
    with EmbeddedBroker(group_initial_rebalance_delay_ms=0, **settings) as broker:
        yield broker


@pytest.fixture
def ids(broker: EmbeddedBroker, java_peer: JavaPeer) -> Ids:
    name = f"clients-{next(_names)}"
    java_peer.create_topic(broker.bootstrap_servers, name, PARTITIONS)
    return Ids(broker.bootstrap_servers, name, name)


@pytest.fixture(params=CLIENT_NAMES)
def client(request: pytest.FixtureRequest, java_peer: JavaPeer) -> Client:
    return clients(java_peer)[request.param]


def read_committed(java_peer: JavaPeer, ids: Ids) -> list[bytes | None]:
    """Return the committed values in the order of their offsets, as both consumers read them."""
    await_markers(ids.servers, ids.topic, PARTITIONS)
    config = {"isolation.level": "read_committed"}
    received = java_peer.consume(ids.servers, ids.topic, None, config)
    by_java = sorted((each.partition, each.offset, each.value) for each in received)
    by_ours = sorted(
        (each.partition, each.offset, each.value)
        for each in read_log(ids.servers, ids.topic, PARTITIONS, "read_committed")
    )
    assert by_java == by_ours
    return [value for _, _, value in by_java]


def test_client_commits_and_aborts(client: Client, java_peer: JavaPeer, ids: Ids) -> None:
    wanted = [
        Transaction([(n % PARTITIONS, b"%d-%d" % (number, n)) for n in range(4)], commits=number % 2 == 0)
        for number in range(6)
    ]
    client.run(ids, wanted)
    assert [(each.outcome, each.error) for each in wanted] == [
        (Outcome.COMMITTED, ""),
        (Outcome.ABORTED, ""),
    ] * 3
    committed = [b"%d-%d" % (number, n) for p in range(2) for number in (0, 2, 4) for n in (p, p + 2)]
    assert read_committed(java_peer, ids) == committed


def test_client_commits_offsets_in_transactions(client: Client, java_peer: JavaPeer, ids: Ids) -> None:
    wanted = [
        Transaction([(0, b"first")], offset=5),
        Transaction([(0, b"never")], offset=6, commits=False),
    ]
    client.run(ids, wanted)
    assert [each.error for each in wanted] == ["", ""]
    assert java_peer.group_offsets(ids.servers, ids.group, ids.topic)[0][0] == 5
    more = [Transaction([(1, b"second")], offset=7)]
    client.run(ids, more)
    assert java_peer.group_offsets(ids.servers, ids.group, ids.topic)[0][0] == 7
    assert read_committed(java_peer, ids) == [b"first", b"second"]


def run_held(client: Client, ids: Ids, held: Transaction) -> threading.Thread:
    """Start a thread with a transaction that stays open, and wait until its records are in the log.

    The transaction may also end before that, if it times out.
    """
    thread = threading.Thread(target=client.run, args=(ids, [held]))
    place = TopicPartition(ids.topic, 0)
    with KafkaConsumer(bootstrap_servers=ids.servers) as consumer:
        before = consumer.end_offsets([place])[place]
        thread.start()
        eventually(lambda: consumer.end_offsets([place])[place] > before or not thread.is_alive())
    return thread


def test_second_producer_fences_a_client(
    client: Client, java_peer: JavaPeer, ids: Ids, tmp_path: Path
) -> None:
    held = Transaction([(0, b"fenced")], held_until=tmp_path / "continue")
    thread = run_held(client, ids, held)
    with KafkaProducer(bootstrap_servers=ids.servers, transactional_id=ids.transactional_id) as second:
        second.init_transactions()
        (tmp_path / "continue").touch()
        thread.join(2 * BUDGET_S)
        assert held.outcome is Outcome.UNKNOWN
        assert held.error
        second.begin_transaction()
        second.send(ids.topic, b"second", partition=0)
        second.commit_transaction()
    assert read_committed(java_peer, ids) == [b"second"]


def test_broker_aborts_a_clients_slow_transaction(
    client: Client, java_peer: JavaPeer, ids: Ids, tmp_path: Path
) -> None:
    short = Ids(ids.servers, ids.topic, ids.transactional_id, SHORT_MS)
    numbers = itertools.count()

    def is_aborted() -> bool:
        """Return whether a transaction timed out after its records were written.

        On a slow machine it may time out before that, and fails before it asks for the commit.
        """
        held = Transaction([(0, b"slow")], held_until=tmp_path / f"continue {next(numbers)}")
        thread = run_held(client, short, held)
        await_markers(ids.servers, ids.topic, PARTITIONS)
        held.held_until.touch()
        thread.join(2 * BUDGET_S)
        assert held.outcome in (Outcome.UNKNOWN, Outcome.FAILED), held.outcome
        return held.outcome is Outcome.UNKNOWN

    eventually(is_aborted)
    # With the default timeout, which a slow machine does not reach.
    quick = [Transaction([(0, b"quick")])]
    client.run(ids, quick)
    assert quick[0].outcome is Outcome.COMMITTED, quick[0].error
    assert read_committed(java_peer, ids) == [b"quick"]


# ---- Together, under kills ---------------------------------------------------------------------------------


@pytest.fixture
def second_peer() -> Iterator[JavaPeer]:
    """Start a JVM for the Java producer, which runs while the test uses the other one."""
    with started_java_peer() as peer:
        yield peer


@pytest.mark.behaviour(
    "Reliability", "transactions of four clients are atomic while the broker is killed under them"
)
@pytest.mark.timeout(dose(150, 1_800))
def test_interleaved_transactions_are_atomic_while_the_broker_is_killed(
    java_peer: JavaPeer, second_peer: JavaPeer
) -> None:
    seed = new_seed()
    with EmbeddedBroker(group_initial_rebalance_delay_ms=0, offsets_commit_timeout_ms=60_000) as broker:
        servers = broker.bootstrap_servers
        java_peer.create_topic(servers, "mixed", PARTITIONS)
        found = clients(second_peer)
        run = MixedKills(broker, "mixed", PARTITIONS, {name: found[name] for name in CLIENT_NAMES[:4]})
        run.run(random.Random(seed), KILLS)
        await_markers(servers, "mixed", PARTITIONS)
        received = java_peer.consume(
            servers, "mixed", None, {"isolation.level": "read_committed"}, timeout_ms=60_000
        )
        offsets = {
            name: java_peer.group_offsets(servers, run.ids(name).group, "mixed") for name in run.clients
        }
    note("transactions of four clients, our broker killed", seed, kills=KILLS, **run.figures())
    assert run.findings([(each.partition, each.value or b"") for each in received]) == []
    assert run.findings_about_offsets({name: each[0][0] for name, each in offsets.items() if each}) == []
    assert all(run.count(name, Outcome.COMMITTED) for name in run.clients), run.figures()
