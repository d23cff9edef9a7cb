"""Our log takes over a partition of Apache Kafka with transactions, and finds the same state as Apache Kafka.

Apache Kafka writes committed and aborted transactions and leaves some open. Its responses to read_committed
fetches are compared with what our log returns from a copy of the folder.
"""

from __future__ import annotations

import random
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from eventually import LONG_TRANSACTION_MS, eventually
from model.dose import new_seed
from model.new_topics import create_topics
from model.raw_line import Line
from model.topic_reader import await_markers
from model.transaction_log import check_state, read_committed
from peers.apache_kafka import started_in_scratch_folder

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic, TransactionState
from kafkacore.broker.log import LogManager, UnifiedLog
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.record import read_batches
from kafkacore.structs import TopicPartition

TOPIC = "transactions"
TP = TopicPartition(TOPIC, 0)
FOLDER = f"{TOPIC}-0"
TRANSACTIONS = 120
#: The smallest value that Apache Kafka 4.3 accepts.
SEGMENT_BYTES = 1 << 20
FETCH_VERSION = 12


class Answer(NamedTuple):
    """Apache Kafka's response to a read_committed fetch."""

    offset: int
    max_bytes: int
    high_watermark: int
    last_stable_offset: int
    #: Offset after the returned batches.
    next_offset: int
    #: Producer id and first offset.
    aborted: list[tuple[int, int]]


class Taken(NamedTuple):
    """Copies of the partition's folder, and Apache Kafka's responses before each copy."""

    folders: dict[str, Path]
    answers: dict[str, list[Answer]]


def ask(connection: Line, offset: int, max_bytes: int) -> Answer:
    make = FetchRequest
    partition = make.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    topic = make.FetchTopic(topic=TOPIC, partitions=[partition])
    request = make(max_wait_ms=0, min_bytes=1, max_bytes=1 << 25, isolation_level=1, topics=[topic])
    data = connection.ask(request, FETCH_VERSION).responses[0].partitions[0]
    assert data.error_code == 0
    batches = list(read_batches(bytes(data.records or b"")))
    return Answer(
        offset,
        max_bytes,
        data.high_watermark,
        data.last_stable_offset,
        batches[-1].next_offset if batches else offset,
        [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()],
    )


def fill(servers: str, chance: random.Random, producers: list[KafkaProducer]) -> None:
    is_open = [False] * len(producers)
    ended = 0
    while ended < TRANSACTIONS:
        number = chance.randrange(len(producers))
        producer = producers[number]
        if not is_open[number]:
            producer.begin_transaction()
            is_open[number] = True
        for _ in range(chance.randint(0, 4)):
            producer.send(TOPIC, chance.randbytes(chance.choice([10, 1000, 20_000])), partition=0)
        producer.flush()
        if chance.random() < 0.4:
            (producer.commit_transaction if chance.random() < 0.5 else producer.abort_transaction)()
            is_open[number] = False
            ended += 1
    for number in range(len(producers)):
        if is_open[number]:
            producers[number].abort_transaction()
    await_markers(servers, TOPIC, 1)


def leave_open(servers: str, producers: list[KafkaProducer]) -> None:
    """Leave two transactions open, and end others after their start, whose markers are then written."""
    for number in (0, 1, 2, 3, 2, 3):
        producers[number].begin_transaction()
        producers[number].send(TOPIC, b"open or ended", partition=0)
        producers[number].flush()
        if number == 2:
            producers[number].abort_transaction()
        elif number == 3:
            producers[number].commit_transaction()
    # The coordinator answers before the markers are written, and completes the transaction after that.
    ended = {"t2": TransactionState.COMPLETE_ABORT, "t3": TransactionState.COMPLETE_COMMIT}
    with KafkaAdminClient(bootstrap_servers=servers) as admin:

        def states() -> dict[str, TransactionState]:
            return {name: found.state for name, found in admin.describe_transactions(ended).items()}

        eventually(lambda: states() == ended, lambda: states())


def answers(servers: str, chance: random.Random) -> list[Answer]:
    with Line(servers) as connection:
        whole = ask(connection, 0, 1 << 25)
        found = [whole]
        for _ in range(150):
            offset = chance.randrange(whole.last_stable_offset + 1)
            found.append(ask(connection, offset, chance.choice([1, 500, 30_000, 1 << 22])))
    return found


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Taken:
    made = tmp_path_factory.mktemp("taken")
    chance = random.Random(new_seed())
    found = Taken({}, {})
    with started_in_scratch_folder() as kafka, ExitStack() as stack:
        servers = kafka.bootstrap_servers
        create_topics(servers, NewTopic(TOPIC, 1, 1, topic_configs={"segment.bytes": str(SEGMENT_BYTES)}))
        producers = [
            KafkaProducer(
                bootstrap_servers=servers,
                transactional_id=f"t{number}",
                transaction_timeout_ms=LONG_TRANSACTION_MS,
            )
            for number in range(4)
        ]
        for producer in producers:
            stack.callback(producer.close, timeout=0)
            producer.init_transactions()
        fill(servers, chance, producers)
        leave_open(servers, producers)
        found.answers["killed"] = answers(servers, chance)
        kafka.kill()
        shutil.copytree(kafka.segments_dir, made / "killed")
        kafka.start()
        found.answers["closed"] = answers(servers, chance)
        kafka.stop()
        shutil.copytree(kafka.segments_dir, made / "closed")
    found.folders.update({how: made / how for how in ("killed", "closed")})
    return found


def only_the_partition(folder: Path, target: Path) -> None:
    """Copy the partition and the files of the data folder."""
    target.mkdir()
    for path in folder.iterdir():
        if path.is_file():
            shutil.copy(path, target)
    shutil.copytree(folder / FOLDER, target / FOLDER)


def files(folder: Path, suffix: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob(f"*{suffix}")}


def opened(folder: Path) -> tuple[LogManager, UnifiedLog]:
    manager = LogManager(folder, clock=SYSTEM_CLOCK, background=False)
    log = manager.log(TP)
    assert log is not None
    return manager, log


def check(log: UnifiedLog, expected: list[Answer]) -> None:
    for answer in expected:
        assert (log.high_watermark, log.last_stable_offset) == (
            answer.high_watermark,
            answer.last_stable_offset,
        )
        found = log.read(
            answer.offset, answer.max_bytes, max_offset=log.last_stable_offset, with_aborted=True
        )
        assert found.next_offset == answer.next_offset
        aborted = [(one.producer_id, one.first_offset) for one in found.aborted_transactions]
        # The end of the range in Apache Kafka is that of an index entry, so it may return a few more.
        assert [one for one in answer.aborted if one[1] < answer.next_offset] == aborted


@pytest.mark.behaviour(
    "Reliability", "a partition of Apache Kafka with open and aborted transactions is taken over as it is"
)
@pytest.mark.parametrize("is_rebuilt", [False, True], ids=["with its indexes", "without them"])
@pytest.mark.parametrize("how", ["killed", "closed"])
def test_partition_of_apache_kafka_with_transactions_is_continued(
    taken: Taken, tmp_path: Path, how: str, is_rebuilt: bool
) -> None:
    only_the_partition(taken.folders[how], tmp_path / "data")
    folder = tmp_path / "data" / FOLDER
    indexes = files(folder, ".txnindex")
    assert len(indexes) > 1
    if is_rebuilt:
        for path in [*folder.glob("*.txnindex"), *folder.glob("*.snapshot")]:
            path.unlink()
    manager, log = opened(tmp_path / "data")
    with manager:
        assert log.segment_count > 2
        check(log, taken.answers[how])
        model = check_state(log, offset_step=11)
        assert {name: data for name, data in files(folder, ".txnindex").items() if data} == indexes
        assert len(model.open_offsets()) == 2
        assert read_committed(log) == model.committed_before(log.last_stable_offset)
        for entry in log.active_producers():
            if entry.current_txn_first_offset >= 0:
                options: dict[str, Any] = {"transaction_version": 2, "now_ms": SYSTEM_CLOCK.wall_ms()}
                log.append_marker(
                    entry.producer_id,
                    entry.producer_epoch + 1,
                    commit=entry.producer_id % 2 == 0,
                    coordinator_epoch=entry.coordinator_epoch + 1,
                    **options,
                )
        log.flush()
        assert log.last_stable_offset == log.log_end_offset
        check_state(log, offset_step=11)
    manager, log = opened(tmp_path / "data")
    with manager:
        check_state(log, offset_step=11)
