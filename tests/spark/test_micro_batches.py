"""Micro-batch after micro-batch in the same workers: their sockets and memory stay what they were."""

import os
from pathlib import Path

import pytest
from model.dose import dose

BATCHES = dose(12, 100)
ROWS_OF_A_BATCH = 100
#: Until then workers start, import and connect.
SETTLED = 5
MIB = 1024 * 1024


def workers():
    """Sockets and resident bytes of each Python worker below us."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if b"pyspark.daemon" not in (folder / "cmdline").read_bytes() or not is_ours(int(folder.name)):
                continue
            descriptors = [os.readlink(each) for each in (folder / "fd").iterdir()]
            pages = int((folder / "statm").read_text().split()[1])
        except OSError:
            # It has ended meanwhile.
            continue
        sockets = sum(each.startswith("socket:") for each in descriptors)
        found[int(folder.name)] = (sockets, pages * os.sysconf("SC_PAGE_SIZE"))
    return found


def is_ours(pid):
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    return False


@pytest.fixture
def stream(spark, our_broker, make_topic):
    count = BATCHES * ROWS_OF_A_BATCH
    topic = make_topic([(n % 2, None, b"%d" % n) for n in range(count)])
    return (
        spark.readStream.format("kafkacore")
        .option("kafka.bootstrap.servers", our_broker.bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(ROWS_OF_A_BATCH))
        .load()
    )


def test_many_micro_batches_leave_sockets_and_memory_as_they_were(stream, tmp_path):
    rows, samples = [], []

    def take(frame, number):
        rows.append(len(frame.select("value").collect()))
        samples.append(workers())

    writer = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert rows == [ROWS_OF_A_BATCH] * BATCHES
    settled, last = samples[SETTLED], samples[-1]
    stayed = settled.keys() & last.keys()
    assert stayed
    for pid in stayed:
        assert last[pid][0] <= settled[pid][0]
        assert last[pid][1] - settled[pid][1] < 16 * MIB
    # No worker more than tasks at a time, for which there are as many as cores, and one that plans.
    assert len(last) <= len(settled) + 1
