"""Our idempotent producer while its broker is SIGKILLed and restarted on its data.

No acknowledged record is lost, duplicated or reordered, and each send completes once. Kafka's Java consumer
reads the topic, and ``model.history`` checks it. A kill of the process takes nothing from the page cache, so
that a single broker without fsync can keep this guarantee.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from model.dose import dose, new_seed, note
from model.history import LogRecord
from model.killed_producer import PARTITIONS, KilledProducer
from model.paused_process import paused
from peers.apache_kafka import RESTARTS_SOON, ApacheKafka
from peers.java_peer import JavaPeer

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.testing import EmbeddedBroker, FaultProxy

#: Apache Kafka needs about 2.5 s for a start, ours a fraction of a second.
KILLS = {"apache": dose(20, 50), "ours": dose(50, 200)}
#: Seconds after which a run ends, even if it has not reached its number of kills.
KILLING_S = dose(8.0, 900.0)
#: A run with fewer kills shows nothing, however slow the machine is.
LEAST_KILLS = dose(3, 50)
SEGMENT_BYTES = 1 << 20
#: Short enough that requests to a paused broker time out before it is killed.
SHORT_TIMEOUT_MS = 400

Broker = ApacheKafka | EmbeddedBroker


@pytest.fixture(params=["apache", "ours"])
def killable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Broker]]:
    """Start a broker for one test, and yield its name and the broker."""
    broker: Broker
    if request.param == "apache":
        properties = RESTARTS_SOON | {"log.segment.bytes": str(SEGMENT_BYTES)}
        broker = ApacheKafka(tmp_path / "kafka", properties)
    else:
        broker = EmbeddedBroker(tmp_path / "ours", num_partitions=PARTITIONS, log_segment_bytes=SEGMENT_BYTES)
    with broker:
        yield request.param, broker


def log_by_java(java_peer: JavaPeer, servers: str, topic: str) -> list[LogRecord]:
    """Return all records of the topic, read by Kafka's own consumer."""
    received = java_peer.consume(servers, topic, None, timeout_ms=dose(30_000, 120_000))
    return [LogRecord(each.partition, each.offset, each.value or b"") for each in received]


def check(run: KilledProducer, log: list[LogRecord]) -> None:
    run.check_each_was_answered_once()
    assert run.failures == []
    assert "\n".join(map(str, run.history.check(log))) == ""
    assert len(log) == run.acknowledged


@pytest.mark.behaviour(
    "Reliability",
    "a killed broker loses, duplicates and reorders no acknowledged record; each send completes once",
)
@pytest.mark.timeout(dose(150, 1_200))
def test_idempotent_producer_keeps_its_word_through_kills_of_its_broker(
    killable: tuple[str, Broker], java_peer: JavaPeer
) -> None:
    whose, broker = killable
    seed = new_seed()
    java_peer.create_topic(broker.bootstrap_servers, "killed", PARTITIONS)
    run = KilledProducer(broker, "killed", {"enable_idempotence": True})
    run.run(random.Random(seed), KILLS[whose], KILLING_S, LEAST_KILLS)
    log = log_by_java(java_peer, broker.bootstrap_servers, "killed")
    recoveries = sorted(run.recoveries_ms)
    median_ms = recoveries[len(recoveries) // 2]
    note(
        f"producer under SIGKILLs of {'Apache Kafka' if whose == 'apache' else 'the embedded broker'}",
        seed,
        kills=run.kills,
        acknowledged=run.acknowledged,
        in_the_log=len(log),
        failed=len(run.failures),
        first_acknowledgement=f"{median_ms:.0f} ms median, {recoveries[-1]:.0f} at most",
    )
    assert run.kills >= LEAST_KILLS
    check(run, log)


@dataclass
class PausedBeforeItIsKilled:
    """A broker that is paused longer than a request may take, so that it may receive retries."""

    broker: EmbeddedBroker
    chance: random.Random

    @property
    def bootstrap_servers(self) -> str:
        return self.broker.bootstrap_servers

    def kill(self) -> None:
        with paused(self.broker.pid):
            SYSTEM_CLOCK.sleep_ms(self.chance.uniform(0, 2.5 * SHORT_TIMEOUT_MS))
            if self.chance.random() < 0.5:
                os.kill(self.broker.pid, signal.SIGKILL)
        # If the broker was only paused, it now has time for some of the requests that arrived meanwhile.
        SYSTEM_CLOCK.sleep_ms(self.chance.uniform(0, 20))
        self.broker.kill()

    def start(self) -> None:
        self.broker.start()


@dataclass
class KilledBehindASlowLink:
    """A broker behind a proxy that delays and splits requests and responses."""

    broker: EmbeddedBroker
    chance: random.Random
    proxy: FaultProxy

    @property
    def bootstrap_servers(self) -> str:
        return self.proxy.bootstrap_servers

    def kill(self) -> None:
        self.broker.kill()

    def start(self) -> None:
        self.proxy.set_delay(self.chance.uniform(0, 60), self.chance.uniform(0, 30))
        self.proxy.set_rate(self.chance.choice([200_000, 1_000_000]))
        self.broker.start()


@pytest.mark.behaviour(
    "Reliability",
    "the same holds if the broker was paused before the kill, or if the link is slow",
)
@pytest.mark.timeout(dose(120, 1_200))
@pytest.mark.parametrize("also", ["paused", "slow link"])
def test_second_fault_beside_the_kill_changes_nothing(tmp_path: Path, java_peer: JavaPeer, also: str) -> None:
    seed = new_seed()
    chance = random.Random(seed)
    with FaultProxy() as proxy:
        advertised = {"advertised_port": proxy.port} if also == "slow link" else {}
        with EmbeddedBroker(tmp_path, num_partitions=PARTITIONS, **advertised) as broker:
            proxy.target = broker.bootstrap_servers
            java_peer.create_topic(broker.bootstrap_servers, "killed", PARTITIONS)
            if also == "slow link":
                run = KilledProducer(KilledBehindASlowLink(broker, chance, proxy), "killed")
            else:
                options = {"request_timeout_ms": SHORT_TIMEOUT_MS}
                run = KilledProducer(PausedBeforeItIsKilled(broker, chance), "killed", options)
            run.run(chance, dose(10, 100), dose(5.0, 900.0), LEAST_KILLS)
            proxy.lift()
            log = log_by_java(java_peer, broker.bootstrap_servers, "killed")
    note(
        f"producer under SIGKILLs of the embedded broker, also: {also}",
        seed,
        kills=run.kills,
        acknowledged=run.acknowledged,
        in_the_log=len(log),
        failed=len(run.failures),
    )
    assert run.kills >= LEAST_KILLS
    check(run, log)
