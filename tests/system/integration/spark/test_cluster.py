"""A streaming job on Spark clusters reads every record once while its workers and driver are killed."""

from __future__ import annotations

import os
import random
import signal
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from model.dose import dose, new_seed, note
from model.topic_reader import await_markers
from peers.submitted import Job, Program, standalone_cluster, written

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.clock import SYSTEM_CLOCK

PARTITIONS = 2
BATCHES = dose(4, 20)
WORKER_KILLS = dose(1, 10)
DRIVER_KILLS = dose(1, 20)
#: Rows of one batch; enough that a kill finds a task running.
ROWS_A_BATCH = 20_000
PADDING = b"x" * 100
MASTERS = dose(["local-cluster[2,1,1024]"], ["local-cluster[2,1,1024]", "standalone"])
SINKS = dose(["parquet"], ["parquet", "topic, exactly once"])


def make_topic(bootstrap: str, records: int) -> str:
    """Create a topic with ``records`` records in all, numbered from 0 in each partition."""
    topic = f"cluster-{uuid.uuid4().hex[:8]}"
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS)])
    with KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
        for partition in range(PARTITIONS):
            values = [b"%d %d " % (number, partition) + PADDING for number in range(records // PARTITIONS)]
            producer.send_batch(topic, values, partition=partition)
        producer.flush()
    return topic


def assert_every_record_once(rows: Iterator[tuple[int, int, bytes]], records: int) -> None:
    """Check that offsets have no gap and no repeat, and that each value belongs to its offset."""
    offsets = defaultdict(list)
    for partition, offset, value in rows:
        assert value.split()[:2] == [b"%d" % offset, b"%d" % partition]
        offsets[partition].append(offset)
    for partition in range(PARTITIONS):
        assert sorted(offsets[partition]) == list(range(records // PARTITIONS)), f"partition {partition}"


@contextmanager
def cluster(kind: str, folder: Path) -> Iterator[tuple[str, list[Program]]]:
    """Yield the master's URL and the programs that run executors, if the driver does not run them."""
    if kind == "standalone":
        with standalone_cluster(folder) as found:
            yield found
    else:
        yield kind, []


def kill_workers_at_work(job: Job, hosts: list[Program]) -> None:
    """Send SIGKILL to the executors' Python workers until a task is lost."""
    before = job.said().count("Lost task")

    def has_hit() -> bool:
        for program in hosts or [job]:
            for pid in program.python_workers():
                # A worker that has already exited needs no kill.
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return job.said().count("Lost task") > before

    job.wait_until(has_hit, "a task is lost with its worker")


@pytest.mark.timeout(dose(480, 1_800))
@pytest.mark.parametrize("kind", MASTERS)
def test_killed_python_workers_lose_and_double_nothing(apache_kafka, tmp_path, kind):
    records = BATCHES * ROWS_A_BATCH
    bootstrap = apache_kafka.bootstrap_servers
    topic = make_topic(bootstrap, records)
    rate = f"maxOffsetsPerTrigger={ROWS_A_BATCH}"
    with (
        cluster(kind, tmp_path / "cluster") as (master, hosts),
        Job(master, bootstrap, topic, tmp_path / "job", "--option", rate) as job,
    ):
        for kill in range(WORKER_KILLS):
            job.wait_until(lambda kill=kill: job.planned() > kill, "a batch begins")
            kill_workers_at_work(job, hosts)
        assert job.wait() == 0, job.said()[-6000:]
        assert job.committed() >= BATCHES
        lost = job.said().count("Lost task")
    assert_every_record_once(written(tmp_path / "job"), records)
    note(
        f"Python workers killed, {kind}",
        batches=BATCHES,
        kills=WORKER_KILLS,
        lost_tasks=lost,
        records=records,
    )


@pytest.mark.timeout(dose(480, 3_600))
@pytest.mark.parametrize("sink", SINKS)
def test_driver_killed_at_random_points_goes_on_from_its_checkpoint(apache_kafka, tmp_path, sink):
    seed = new_seed()
    chance = random.Random(seed)
    # More batches than the job commits before its last kill, even if that kill is late.
    batches = 4 * DRIVER_KILLS + 4
    records = batches * 1_000
    bootstrap = apache_kafka.bootstrap_servers
    topic = make_topic(bootstrap, records)
    arguments = ["--option", "maxOffsetsPerTrigger=1000"]
    if sink != "parquet":
        copy = make_topic(bootstrap, 0)
        arguments += ["--to", copy, "--sink-option", "exactly.once=true"]

    def job() -> Job:
        return Job("local[2]", bootstrap, topic, tmp_path, *arguments)

    for _ in range(DRIVER_KILLS):
        with job() as run:
            # In each life, the job commits at least one more batch before the kill, so that it makes
            # progress.
            goal = run.committed() + chance.randint(1, 3)
            run.wait_until(lambda run=run, goal=goal: run.planned() > goal, "some batches more")
            SYSTEM_CLOCK.sleep_ms(chance.uniform(0, 400))
            run.kill()
    with job() as last:
        assert last.wait() == 0, last.said()[-6000:]
    if sink == "parquet":
        assert_every_record_once(written(tmp_path), records)
    else:
        await_markers(bootstrap, copy, PARTITIONS)
        assert sorted(values_of(bootstrap, copy)) == sorted(values_of(bootstrap, topic))
    note(f"driver killed, {sink}", seed, kills=DRIVER_KILLS, records=records)


def values_of(bootstrap: str, topic: str) -> list[bytes]:
    """Return the values of all records of committed transactions."""
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    with KafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found: list[bytes] = []
        while any(consumer.position(place) < ends[place] for place in places):
            for records in consumer.poll(timeout_ms=1_000).values():
                found += [record.value for record in records]
    return found
