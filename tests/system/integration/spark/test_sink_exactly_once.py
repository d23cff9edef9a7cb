"""A streaming query writes to Apache Kafka exactly once: workers are killed and batches repeated."""

import contextlib
import os
import signal
import uuid

import pytest
from eventually import BUDGET_MS, BUDGET_S
from model.dose import dose, note
from model.topic_reader import await_markers, records_of
from peers.proxied_kafka import kafka_behind_proxy
from peers.submitted import python_processes
from pyspark.errors import PySparkException

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.protocol import ApiKey

BATCHES = dose(12, 100)
ROWS_PER_BATCH = 20
PARTITIONS = 2
#: Requests at which all Python processes of Spark are killed; a worker or the driver's helper has sent them.
STEPS = [ApiKey.INIT_PRODUCER_ID, ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN]
KILLS = dose(4, 40)
#: Timeout of a query, which runs in many processes, as a multiple of the usual timeout.
BUDGETS = dose(3, 10)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    """Start Apache Kafka behind a proxy, which shows how far a query has progressed."""
    with kafka_behind_proxy(tmp_path_factory.mktemp("kafka")) as proxy:
        yield proxy


class Copy:
    """A query that copies one topic to another in small batches, exactly once."""

    def __init__(self, spark, proxy, checkpoint, batches=BATCHES):
        self.spark = spark
        self.proxy = proxy
        self.servers = proxy.bootstrap_servers
        self.checkpoint = checkpoint
        self.rows = batches * ROWS_PER_BATCH
        name = uuid.uuid4().hex[:8]
        self.source, self.target = f"from-{name}", f"to-{name}"
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            admin.create_topics(
                [NewTopic(each, num_partitions=PARTITIONS) for each in (self.source, self.target)]
            )
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for number in range(self.rows):
                producer.send(self.source, b"%d" % number, partition=number % PARTITIONS)

    def start(self, min_partitions=PARTITIONS, **options):
        frame = (
            self.spark.readStream.format("kafkacore")
            .option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", self.source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", ROWS_PER_BATCH)
            .option("minPartitions", min_partitions)
            .load()
        )
        return (
            frame.selectExpr("value", "partition")
            .writeStream.format("kafkacore")
            .option("kafka.bootstrap.servers", self.servers)
            .option("topic", self.target)
            .option("exactly.once", "true")
            .option("kafka.reconnect.backoff.ms", "1000")
            .option("checkpointLocation", str(self.checkpoint))
            .options(**options)
            .trigger(availableNow=True)
            .start()
        )

    def run(self, **options):
        query = self.start(**options)
        try:
            assert query.awaitTermination(BUDGETS * BUDGET_S), "the query did not stop"
        finally:
            query.stop()

    def done_batches(self):
        return max((int(p.name) for p in (self.checkpoint / "commits").glob("[0-9]*")), default=-1) + 1

    def forget_commit(self, batch_id):
        """Simulate a driver that died after the batch's commit, before Spark's commit log recorded it."""
        for name in (f"{batch_id}", f".{batch_id}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)

    def values(self):
        """Return the values that a read_committed consumer reads from each partition."""
        await_markers(self.servers, self.target, PARTITIONS)
        found = {number: [] for number in range(PARTITIONS)}
        for record in records_of(self.servers, [self.target], PARTITIONS, "read_committed"):
            found[record.partition].append(int(record.value))
        return found

    def check(self):
        """Check that all rows were written once, in order."""
        assert self.values() == {
            partition: list(range(partition, self.rows, PARTITIONS)) for partition in range(PARTITIONS)
        }


@pytest.mark.timeout(dose(400, 3_600))
def test_nothing_is_lost_or_doubled_while_workers_are_killed_at_each_step(spark, kafka, tmp_path):
    copy = Copy(spark, kafka, tmp_path)
    kills = 0
    for kill in range(KILLS):
        kafka.cut_response(int(STEPS[kill % len(STEPS)]), after=0, number=2 + kill % 3)
        before = kafka.counters.cut_frames
        query = copy.start()
        reached = kafka.wait_for(
            lambda counters, before=before: counters.cut_frames > before, BUDGETS * BUDGET_MS
        )
        assert reached, f"kill {kill}: {query.exception()} {query.lastProgress}"
        for pid in python_processes(os.getpid()):
            # A process that has already exited needs no kill.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills += 1
        kafka.lift()
        with contextlib.suppress(PySparkException):
            query.awaitTermination(BUDGETS * BUDGET_S)
        query.stop()
    assert kills >= KILLS
    copy.run()
    copy.check()
    assert copy.done_batches() == BATCHES
    note("exactly once, workers killed", kills=KILLS, processes=kills, batches=BATCHES, records=copy.rows)


@pytest.mark.timeout(300)
def test_committed_batch_that_spark_repeats_is_recognised(spark, kafka, tmp_path):
    copy = Copy(spark, kafka, tmp_path, batches=3)
    copy.run()
    copy.forget_commit(2)
    copy.run()
    assert copy.done_batches() == 3
    copy.check()


@pytest.mark.timeout(300)
def test_committed_batch_repeated_by_other_tasks_is_refused_and_nothing_doubled(spark, kafka, tmp_path):
    copy = Copy(spark, kafka, tmp_path, batches=2)
    copy.run()
    copy.forget_commit(1)
    with pytest.raises(PySparkException, match=r"was committed with 2 tasks, but is repeated with [3-9]"):
        copy.run(min_partitions=5)
    copy.check()
    copy.run()
    copy.check()
