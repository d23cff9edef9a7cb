"""Exactly once into Apache Kafka: an attempt at a batch is killed or stopped at each step of the protocol.

An attempt is a process that does the work of Spark's workers and driver for one micro-batch. A proxy holds it
at the n-th request of a kind, before the broker receives the request or before the response arrives. There it
gets SIGKILL, and its successor repeats the batch; or SIGSTOP, and it resumes after its successor has
finished.
"""

import dataclasses
import multiprocessing
import os
import signal
import uuid

import pyarrow as pa
import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually
from model.dose import dose, note
from model.topic_reader import await_markers, records_of
from peers.proxied_kafka import kafka_behind_proxy

from kafkacore import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.protocol import ApiKey
from kafkacore.spark.sink.columns import SinkColumns
from kafkacore.spark.sink.exactly_once import ExactlyOnceError, abort_batch, commit_batch, write_task
from kafkacore.spark.sink.options import parse_sink_options
from kafkacore.spark.sink.producers import PRODUCERS

ROWS = 20
TASKS = 2
PARTITIONS = 2
COLUMNS = SinkColumns((("value", 0),), None, False)
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["kafkacore.spark.sink.exactly_once", "pyarrow", "pyarrow.compute"])

#: Request, and its number among those of its kind in an attempt: each step of the protocol, in order.
STEPS = [
    (ApiKey.INIT_PRODUCER_ID, 1), (ApiKey.PRODUCE, 1), (ApiKey.INIT_PRODUCER_ID, 2), (ApiKey.PRODUCE, 2),
    (ApiKey.OFFSET_FETCH, 1), (ApiKey.TXN_OFFSET_COMMIT, 1), (ApiKey.END_TXN, 1),
    (ApiKey.TXN_OFFSET_COMMIT, 2), (ApiKey.END_TXN, 2),
]  # fmt: skip


def attempt(servers: str, topic: str, query_id: str, batch_id: int, stays_away_ms: int = 50) -> int:
    """Write a micro-batch as the tasks and the driver do, and return how many tasks were repetitions."""
    options = parse_sink_options(
        {
            "kafka.bootstrap.servers": servers,
            "topic": topic,
            "exactly.once": "true",
            # After a lost connection, the attempt does not reconnect before it is killed.
            "kafka.reconnect.backoff.ms": str(stays_away_ms),
            "kafka.reconnect.backoff.max.ms": str(stays_away_ms),
        },
        streaming=True,
    )
    tasks = []
    try:
        for task in range(TASKS):
            batch = pa.record_batch({"value": [f"{batch_id}-{task}-{row}" for row in range(ROWS)]})
            tasks.append(write_task(options, COLUMNS, [batch], query_id, task))
        return commit_batch(options, tasks, batch_id)
    except BaseException:
        abort_batch(options, tasks)
        raise
    finally:
        PRODUCERS.close()


class Proxied:
    """Apache Kafka behind a proxy, with one query and its batches so far."""

    def __init__(self, proxy, servers):
        self.proxy = proxy
        self.servers = servers
        self.query_id = str(uuid.uuid4())
        self.topic = f"once-{self.query_id[:8]}"
        self.batches = 0
        self.disturbed = 0
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic(self.topic, num_partitions=PARTITIONS)])

    def start_attempt(self, batch_id, stays_away_ms):
        process = PROCESSES.Process(
            target=attempt, args=(self.servers, self.topic, self.query_id, batch_id, stays_away_ms)
        )
        process.start()
        self.disturbed += 1
        return process

    def hold_at(self, step, lost):
        """Cut the connection from now on at this step of an attempt, and return the number of cuts so far."""
        key, number = step
        cut = self.proxy.cut_request if lost == "request" else self.proxy.cut_response
        cut(int(key), after=0, number=number)
        return self.proxy.counters.cut_frames

    def await_cut(self, before, process):
        def is_cut():
            return self.proxy.counters.cut_frames > before

        eventually(lambda: is_cut() or process.exitcode is not None)
        assert is_cut(), f"the attempt exited with status {process.exitcode} before this step"

    def succeed(self):
        """Run the next attempt in this process, and return how many tasks were repetitions."""
        repeated = attempt(self.servers, self.topic, self.query_id, self.batches)
        self.batches += 1
        return repeated

    def values(self):
        await_markers(self.servers, self.topic, PARTITIONS)
        found = records_of(self.servers, [self.topic], PARTITIONS, "read_committed")
        return sorted(record.value.decode() for record in found)

    def check(self):
        """Check that each row of each batch was written once."""
        rows = (f"{b}-{t}-{row}" for b in range(self.batches) for t in range(TASKS) for row in range(ROWS))
        assert self.values() == sorted(rows)


#: Values of transaction.version; clusters that were not upgraded have version 1.
VERSIONS = dose([2], [1, 2])


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda version: f"transactions-{version}")
def kafka(request, tmp_path_factory):
    features = {"transaction.version": request.param}
    with kafka_behind_proxy(tmp_path_factory.mktemp("kafka"), features) as proxy:
        query = Proxied(proxy, proxy.bootstrap_servers)
        yield query
        note(
            f"exactly once, attempts killed or put to sleep, transactions {request.param}",
            attempts=query.disturbed,
            batches=query.batches,
            records=query.batches * TASKS * ROWS,
        )


#: Each step, with its request or its response lost. A quick run does each step once.
POINTS = [(step, lost) for step in STEPS for lost in ("request", "answer")]
KILLS = dose([(step, ("answer", "request")[place % 2]) for place, step in enumerate(STEPS)], POINTS)
SLEEPS = dose(POINTS[1::5], POINTS)


def committed_before(step, lost):
    """Return how many tasks an attempt has committed when it reaches this step."""
    key, number = step
    ended = number if key is ApiKey.END_TXN and lost == "answer" else number - 1
    return ended if key in (ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN) else 0


def name_of(each):
    return each if isinstance(each, str) else f"{each[0].name}-{each[1]}"


@pytest.mark.parametrize(("step", "lost"), KILLS, ids=name_of)
def test_attempt_killed_at_any_step_is_repeated_without_loss_or_doubling(kafka, step, lost):
    before = kafka.hold_at(step, lost)
    process = kafka.start_attempt(kafka.batches, stays_away_ms=int(10 * BUDGET_MS))
    kafka.await_cut(before, process)
    os.kill(process.pid, signal.SIGKILL)
    process.join(BUDGET_S)
    assert process.exitcode == -signal.SIGKILL
    kafka.proxy.lift()
    assert kafka.succeed() == committed_before(step, lost)
    kafka.check()


@pytest.mark.parametrize(("step", "lost"), SLEEPS, ids=name_of)
def test_attempt_that_sleeps_and_wakes_after_its_successor_changes_nothing(kafka, step, lost):
    before = kafka.hold_at(step, lost)
    process = kafka.start_attempt(kafka.batches, stays_away_ms=5_000)
    try:
        kafka.await_cut(before, process)
        os.kill(process.pid, signal.SIGSTOP)
        kafka.proxy.lift()
        kafka.succeed()
        kafka.check()
    finally:
        os.kill(process.pid, signal.SIGCONT)
    process.join(2 * BUDGET_S)
    assert process.exitcode is not None
    kafka.check()
    # The query resumes.
    kafka.succeed()
    kafka.check()


# ---- Repetitions that are rejected -------------------------------------------------------------------------


def tasks_of(options, query_id, batch_id, tasks=TASKS, rows=ROWS):
    return [
        write_task(
            options,
            COLUMNS,
            [pa.record_batch({"value": [f"{batch_id}-{task}-{row}" for row in range(rows)]})],
            query_id,
            task,
        )
        for task in range(tasks)
    ]


@pytest.fixture
def options(kafka):
    yield parse_sink_options(
        {"kafka.bootstrap.servers": kafka.servers, "topic": kafka.topic, "exactly.once": "true"},
        streaming=True,
    )
    PRODUCERS.close()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"tasks": TASKS + 1}, "was committed with 2 tasks, but is repeated with 3"),
        ({"tasks": TASKS - 1}, "was committed with 2 tasks, but is repeated with 1"),
        ({"rows": ROWS - 1}, "is repeated with other rows"),
        ({"batch_id": -1}, "was run after batch .* outdated"),
    ],
)
def test_repetition_of_something_else_is_refused_and_leaves_nothing(kafka, options, changed, sentence):
    kafka.succeed()
    # Copied because the parameter is used again with the other transaction version.
    changed = dict(changed)
    batch_id = kafka.batches - 1 + changed.pop("batch_id", 0)
    tasks = tasks_of(options, kafka.query_id, batch_id, **changed)
    with pytest.raises(ExactlyOnceError, match=sentence):
        commit_batch(options, tasks, batch_id)
    abort_batch(options, tasks)
    # read_committed can read to the end of the log, so no transaction is left open.
    kafka.check()


def test_offsets_that_somebody_else_has_committed_are_not_taken_for_progress(kafka, options):
    query_id = str(uuid.uuid4())
    place = TopicPartition(kafka.topic, 0)
    group = f"kafkacore-spark-{query_id}"
    with KafkaConsumer(bootstrap_servers=kafka.servers, group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign([place])
        consumer.commit({place: OffsetAndMetadata(5, "of mine", -1)})
    tasks = tasks_of(options, query_id, 0)
    with pytest.raises(ExactlyOnceError, match="'of mine', which the sink did not write"):
        commit_batch(options, tasks, 0)
    abort_batch(options, tasks)
    kafka.check()


def test_topic_of_the_progress_that_does_not_exist_is_named(kafka, options):
    options = dataclasses.replace(options, marker_topic="nowhere")
    tasks = tasks_of(options, str(uuid.uuid4()), 0)
    with pytest.raises(ExactlyOnceError, match=r"topic nowhere, .*does not exist"):
        commit_batch(options, tasks, 0)
    abort_batch(options, tasks)
    kafka.check()


def test_batch_without_rows_is_committed_and_recognised(kafka, options):
    query_id = str(uuid.uuid4())
    assert commit_batch(options, tasks_of(options, query_id, 0, rows=0), 0) == 0
    assert commit_batch(options, tasks_of(options, query_id, 0, rows=0), 0) == TASKS
    kafka.check()
