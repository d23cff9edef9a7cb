"""Transactions in files: Kafka's tools read ours, and our broker continues with those of Apache Kafka."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from eventually import LONG_TRANSACTION_MS, eventually
from peers.apache_kafka import started_in_scratch_folder
from peers.jars import run_java

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.log import LogManager
from kafkacore.broker.topics.internal_topics import TRANSACTIONS_TOPIC
from kafkacore.broker.transaction.records import transaction_record
from kafkacore.broker.transaction.transaction_metadata import TransactionMetadata, TransactionState
from kafkacore.clock import Clock
from kafkacore.coordinator import partition_for
from kafkacore.record import RecordBatchBuilder
from kafkacore.structs import OffsetAndMetadata
from kafkacore.testing.embedded_broker import EmbeddedBroker

DUMP = "org.apache.kafka.tools.DumpLogSegments"
T0 = TopicPartition("t", 0)
#: State of each transactional id, in the order of their records in the topic.
STATES = {
    "empty": "Empty",
    "done": "CompleteCommit",
    "dropped": "CompleteAbort",
    "prepared": "Ongoing",
    "open": "Ongoing",
}


def leave(servers: str) -> list[KafkaProducer]:
    """Leave a transactional id in each state. The returned producers must be closed later, without a time."""
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(T0.topic, 1, 1)])
    producers = []
    for name, state in STATES.items():
        producer = KafkaProducer(
            bootstrap_servers=servers, transactional_id=name, transaction_timeout_ms=LONG_TRANSACTION_MS
        )
        producers.append(producer)
        producer.init_transactions()
        if state != "Empty":
            producer.begin_transaction()
            producer.send(T0.topic, name.encode()).get(60)
            producer.send_offsets_to_transaction({T0: OffsetAndMetadata(7)}, f"group of {name}")
        if state == "CompleteCommit":
            producer.commit_transaction()
        elif state == "CompleteAbort":
            producer.abort_transaction()
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        # The markers of the ended ones are written after the response.
        eventually(lambda: listed(admin) == STATES)
    return producers


def listed(admin: KafkaAdminClient) -> dict[str, str]:
    """Return the state of each transactional id."""
    found = admin.list_transactions().values()
    return {each.transactional_id: each.state.value for listings in found for each in listings}


def committed(servers: str) -> list[bytes]:
    """Return the values that a read_committed consumer receives up to the last stable offset."""
    values: list[bytes] = []
    with KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([T0])
        last = consumer.end_offsets([T0])[T0]
        eventually(
            lambda: consumer.position(T0) >= last,
            step=lambda: values.extend(record.value for record in consumer.poll(100).get(T0, [])),
        )
    return values


def offset_of(admin: KafkaAdminClient, name: str) -> int | None:
    found = admin.list_group_offsets(f"group of {name}")[f"group of {name}"]
    return found[T0].offset if T0 in found else None


def dump(files: list[Path], *options: str) -> str:
    return run_java(DUMP, *options, "--files", ",".join(map(str, files))).decode()


def test_kafkas_dump_tool_reads_our_transactions(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path, transaction_state_log_num_partitions=1) as broker:
        producers = leave(broker.bootstrap_servers)
        broker.stop()
    for producer in producers:
        producer.close(0)
    output = dump(
        sorted(tmp_path.glob(f"{TRANSACTIONS_TOPIC}-*/*.log")),
        "--transaction-log-decoder",
        "--print-data-log",
    )
    last = dict(re.findall(r"transactional_?[iI]d[\"=:]+ ?\"?(\w+).*?[sS]tatus\"?[=:] ?(\d+)", output))
    assert {name: TransactionState(int(number)).title for name, number in last.items()} == STATES, output
    log = dump(sorted(tmp_path.glob("t-0/*.log")), "--print-data-log", "--deep-iteration")
    assert re.findall(r"endTxnMarker: (\w+)", log) == ["COMMIT", "ABORT"]
    index = dump(sorted(tmp_path.glob("t-0/*.txnindex")))
    assert len(re.findall(r"producerId: \d+ firstOffset: 2 lastOffset: 3", index)) == 1, index


def prepare(folder: Path, found: TransactionMetadata) -> None:
    """Append the record that a coordinator writes last before it is killed: the transaction is to commit."""
    prepared = found.prepared(commits=True, client_version=2, next_producer_id=-1, now_ms=Clock().wall_ms())
    record: CoordinatorRecord = transaction_record(prepared, 2)
    with LogManager(folder, clock=Clock()) as manager:
        count = manager.topics()[TRANSACTIONS_TOPIC].partition_count
        log = manager.log(TopicPartition(TRANSACTIONS_TOPIC, partition_for(prepared.transactional_id, count)))
        assert log is not None
        builder = RecordBatchBuilder(1 << 16)
        builder.append(Clock().wall_ms(), record.key, record.value)
        log.append(bytearray(builder.close()), now_ms=Clock().wall_ms())


def test_transactions_of_apache_kafka_are_taken_over(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with started_in_scratch_folder() as kafka:
        producers = leave(kafka.bootstrap_servers)
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            before = admin.describe_transactions(["prepared"])["prepared"]
        kafka.kill()
        shutil.copytree(kafka.segments_dir, folder)
    for producer in producers:
        producer.close(0)
    node_id = int(re.findall(r"^node.id=(\d+)", (folder / "meta.properties").read_text(), re.MULTILINE)[0])
    prepare(
        folder,
        TransactionMetadata(
            transactional_id="prepared",
            producer_id=before.producer_id,
            producer_epoch=before.producer_epoch,
            timeout_ms=before.transaction_timeout_ms,
            state=TransactionState.ONGOING,
            partitions=frozenset(before.topic_partitions),
            start_ms=before.transaction_start_time_ms or 0,
        ),
    )
    with EmbeddedBroker(folder, node_id=node_id) as broker:
        servers = broker.bootstrap_servers
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            eventually(lambda: listed(admin) == STATES | {"prepared": "CompleteCommit"})
            assert committed(servers) == [b"done", b"prepared"]
            assert [offset_of(admin, name) for name in STATES] == [None, 7, None, 7, None]
            for name in ("open", "done"):
                with KafkaProducer(bootstrap_servers=servers, transactional_id=name) as producer:
                    producer.init_transactions()
                    producer.begin_transaction()
                    producer.send(T0.topic, b"next of " + name.encode())
                    producer.commit_transaction()
            expected = [b"done", b"prepared", b"next of open", b"next of done"]
            eventually(lambda: committed(servers) == expected)
            assert offset_of(admin, "open") is None
