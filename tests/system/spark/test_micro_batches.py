"""Many micro-batches in the same processes: connections and memory do not grow."""

import os
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from model.dose import dose, note

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.bench.spark.processes import descendants
from kafkacore.testing import EmbeddedBroker

BATCHES = dose(12, 100)
ROWS_OF_A_BATCH = 100
PARTITIONS = 2
#: Maximum connections of a process to the broker: those of two consumers and two producers.
MOST_CONNECTIONS = 4
#: Batch at which all processes have started, imported their modules and connected.
SETTLED = 5
MIB = 1024 * 1024
WORKER, PLANNER = b"pyspark.daemon", b"python_streaming_source_runner"
BROKERS = dose(["our_broker"], ["our_broker", "apache_kafka"])
SINKS = dose(
    [("our_broker", "at least once"), ("our_broker", "exactly once")],
    [(broker, how) for broker in BROKERS for how in ("at least once", "exactly once")],
)


class Process(NamedTuple):
    """A worker, its daemon, or the process that plans a stream for the driver."""

    plans: bool
    connections: int
    resident: int


def connections_to(server):
    """Return the names of the sockets that are connected to a server, as /proc lists them."""
    port = int(server.rpartition(":")[2])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if int(row[2].partition(":")[2], 16) == port}


def processes(server):
    """Return Spark's Python processes among the descendants of this one, by process id.

    The workers also have connections of the tests before, so only those to this server are counted.
    """
    found = {}
    connections = connections_to(server)
    for pid in descendants(os.getpid()):
        folder = Path("/proc") / str(pid)
        try:
            command = (folder / "cmdline").read_bytes()
            if WORKER not in command and PLANNER not in command:
                continue
            descriptors = [os.readlink(each) for each in (folder / "fd").iterdir()]
            pages = int((folder / "statm").read_text().split()[1])
        except OSError:
            # The process has ended in the meantime.
            continue
        count = len(connections.intersection(descriptors))
        found[pid] = Process(PLANNER in command, count, pages * os.sysconf("SC_PAGE_SIZE"))
    return found


def assert_flat(samples, what):
    """Check that over all batches connections stay limited, and memory and processes do not grow."""
    settled, last = samples[SETTLED], samples[-1]
    stayed = settled.keys() & last.keys()
    planners = [pid for pid in stayed if last[pid].plans]
    assert len(planners) == 1
    assert len(stayed) > 1, "no worker lived until the last batch"
    grown = max(last[pid].resident - settled[pid].resident for pid in stayed)
    every = [process for sample in samples for process in sample.values()]
    note(
        f"micro-batches, {what}",
        looks=len(samples),
        processes=f"{len(settled)} to {len(last)}",
        connections=f"{sum(each.connections for each in settled.values())} to "
        f"{sum(each.connections for each in last.values())}",
        most_connections_of_one=max(each.connections for each in every),
        grown_MiB=f"{grown / MIB:.1f}",
        largest_MiB=f"{max(each.resident for each in every) / MIB:.0f}",
    )
    assert 1 <= max(each.connections for each in every) <= MOST_CONNECTIONS
    assert grown < 16 * MIB
    # There is a worker per task that runs at a time (one per core), and a planner. Allow one more.
    assert len(last) <= len(settled) + 1


class Stream:
    """A topic on one of the brokers, of which each batch reads the same number of records."""

    def __init__(self, spark, servers):
        self._spark = spark
        self.servers = servers
        self.topic = self.new_topic()

    def write(self, batches):
        """Write the records of so many batches."""
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for number in range(batches * ROWS_OF_A_BATCH):
                producer.send(self.topic, b"%d" % number, partition=number % PARTITIONS)

    def new_topic(self):
        name = f"many-{uuid.uuid4().hex[:8]}"
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            admin.create_topics([NewTopic(name, num_partitions=PARTITIONS)])
        return name

    def frame(self):
        return (
            self._spark.readStream.format("kafkacore")
            .option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", self.topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", str(ROWS_OF_A_BATCH))
            .load()
        )


@pytest.fixture
def stream(spark, request):
    """Return a stream on a broker of its own, or on Apache Kafka."""
    with ExitStack() as stack:
        if request.param == "our_broker":
            broker = stack.enter_context(EmbeddedBroker())
        else:
            broker = request.getfixturevalue(request.param)
        yield Stream(spark, broker.bootstrap_servers)


@pytest.mark.timeout(dose(120, 900))
@pytest.mark.parametrize("stream", BROKERS, indirect=True)
def test_many_micro_batches_leave_sockets_and_memory_as_they_were(stream, tmp_path, request):
    stream.write(BATCHES)
    rows, samples = [], []

    def take(frame, number):
        rows.append(len(frame.select("value").collect()))
        samples.append(processes(stream.servers))

    writer = stream.frame().writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert rows == [ROWS_OF_A_BATCH] * BATCHES
    assert_flat(samples, request.node.callspec.id)


@pytest.mark.timeout(dose(120, 900))
@pytest.mark.parametrize(("stream", "how"), SINKS, indirect=["stream"])
def test_many_micro_batches_into_a_topic_leave_sockets_and_memory_as_they_were(
    stream, how, tmp_path, request
):
    copy = stream.new_topic()
    query = (
        stream.frame()
        .select("value", "partition")
        .writeStream.format("kafkacore")
        .option("kafka.bootstrap.servers", stream.servers)
        .option("topic", copy)
        .option("exactly.once", how == "exactly once")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    samples = []
    try:
        for _ in range(BATCHES):
            stream.write(1)
            query.processAllAvailable()
            samples.append(processes(stream.servers))
    finally:
        query.stop()
    assert_flat(samples, request.node.callspec.id)
    places = [TopicPartition(copy, number) for number in range(PARTITIONS)]
    with KafkaConsumer(bootstrap_servers=stream.servers) as consumer:
        # With transactions the log also contains their markers.
        assert sum(consumer.end_offsets(places).values()) >= BATCHES * ROWS_OF_A_BATCH
