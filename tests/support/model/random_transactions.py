"""Random transactions of several producers with restarts, determined by a seed, and what must hold of them.

Producers with the same transactional id fence each other. Partitions are flushed one at a time, so that
appends are in every state when requests, failures and losses of power come. After each step:

- Each request has at most one response.
- The state in memory is that of the log, read from its beginning.
- Markers are appended only when the outcome is safe, and a transaction is complete only when they are safe.
- No producer gets an id and epoch that another one has, and a producer that was replaced does nothing.

At the end, consumers see all records of each transaction that was committed, and none of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from model.coordinated_transactions import T0, T1, T2, Answer, CoordinatedTransactions, Outcome

from kafkacore.broker.coordinator.interfaces import EndTransactionMarker
from kafkacore.broker.topics.internal_topics import TRANSACTIONS_TOPIC
from kafkacore.broker.transaction.transaction_coordinator import ProducerIdAndEpoch
from kafkacore.broker.transaction.transaction_metadata import (
    COMPLETED,
    NO_PRODUCER_EPOCH,
    PREPARED,
    TransactionMetadata,
)
from kafkacore.errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InvalidProducerEpochError,
    KafkaStorageError,
    NotCoordinatorError,
)
from kafkacore.record import read_batches
from kafkacore.structs import TopicPartition

DATA = (T0, T1, T2)
STATES = tuple(TopicPartition(TRANSACTIONS_TOPIC, partition) for partition in range(4))
#: Errors after which a producer repeats its request.
RETRIABLE = {
    ConcurrentTransactionsError.errno,
    CoordinatorLoadInProgressError.errno,
    CoordinatorNotAvailableError.errno,
    NotCoordinatorError.errno,
}


@dataclass
class Producer:
    """A producer, the request that it waits for, and its open transaction."""

    name: str
    version: int
    identity: ProducerIdAndEpoch | None = None
    answer: Answer | None = None
    #: Kind of the request: ``init``, ``add``, ``commit`` or ``abort``.
    asked: str = ""
    partitions: list[TopicPartition] = field(default_factory=list)
    #: Whether the request names the id and epoch that the producer has.
    has_expected: bool = False
    #: How many times it does nothing when it is its turn.
    sleeps: int = 0
    #: Whether another producer had the transactional id when the request was sent.
    was_replaced: bool = False
    is_open: bool = False
    added: set[TopicPartition] = field(default_factory=set)
    values: set[bytes] = field(default_factory=set)
    #: Whether a commit of the transaction was sent, so that its outcome is unknown until the response.
    is_uncertain: bool = False
    #: Whether a record was lost, so that the transaction must be aborted.
    is_broken: bool = False

    def close(self) -> None:
        self.is_open = self.is_uncertain = self.is_broken = False
        self.added, self.values = set(), set()


class RandomTransactions:
    """One run. Each method that finds a violation raises an AssertionError."""

    def __init__(self, seed: int, tmp_path: Path) -> None:
        self.chance = Random(seed)
        self.harness = CoordinatedTransactions(tmp_path)
        self.harness.on_marker = self.check_marker
        self.producers = [Producer(name, self.chance.choice((0, 2))) for name in "aabcc"]
        #: The newest producer of each transactional id, and its first id and epoch.
        self.owners: dict[str, tuple[ProducerIdAndEpoch, Producer]] = {}
        #: Index of the producer that has received an id and epoch.
        self.issued: dict[ProducerIdAndEpoch, int] = {}
        self.committed: set[bytes] = set()
        self.aborted: set[bytes] = set()
        self.uncertain: list[set[bytes]] = []
        self.count = 0
        self._checked = dict.fromkeys(STATES, 0)
        self._last: dict[str, TransactionMetadata | None] = {}

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
            self.take_answers()
            self.check()
        self.finish()

    # ---- Steps --------------------------------------------------------------------------------------------

    def step(self) -> None:
        chance, harness = self.chance, self.harness
        action = chance.random()
        if chance.random() < 0.1:
            self.free_disks()
        if action < 0.55:
            producer = chance.choice(self.producers)
            if producer.answer is None and producer.sleeps == 0:
                self.act(producer)
                if chance.random() < 0.05:
                    # It misses what others do meanwhile.
                    producer.sleeps = 20
            producer.sleeps -= producer.sleeps > 0
        elif action < 0.75:
            harness.flush(*chance.sample([*DATA, *STATES], 2))
        elif action < 0.85:
            harness.settle()
        elif action < 0.90:
            harness.turns()
        elif action < 0.94:
            self.wait(chance.choice((50.0, 1_000.0, 20_000.0)))
        elif action < 0.945:
            self.wait(70_000.0)
        elif action < 0.96:
            self.fill_disk()
        elif action < 0.97:
            place = chance.choice(STATES)
            harness.cluster.move_leader(place, 3 - harness.cluster.leader(place))
            harness.wait_for_load()
        else:
            self.restart(loses_power=chance.random() < 0.5)

    def wait(self, duration_ms: float) -> None:
        """Let time pass without a flush."""
        harness = self.harness
        held, harness.held = harness.held, {*DATA, *STATES}
        harness.pass_ms(duration_ms)
        harness.held = held

    def fill_disk(self) -> None:
        """Let appends to a partition fail, until :meth:`free_disks`."""
        place = self.chance.choice([*DATA, *STATES])
        self.harness.logs.logs[place].refusal = KafkaStorageError("the disk is full")

    def free_disks(self) -> None:
        for log in self.harness.logs.logs.values():
            log.refusal = None

    def restart(self, *, loses_power: bool) -> None:
        harness = self.harness
        self.free_disks()
        if loses_power:
            for producer in self.producers:
                for place in producer.added:
                    log = harness.logs.logs[place]
                    producer.is_broken |= log.high_watermark < log.log_end_offset
        self.harness = harness.restarted(loses_power=loses_power)
        self.harness.on_marker = self.check_marker
        for place in STATES:
            self._checked[place] = min(self._checked[place], harness.logs.logs[place].log_end_offset)
        self._last = {
            name: metadata for place in STATES for name, metadata, _ in self.harness.records_of(place)
        }
        # The connections are closed, so responses are lost.
        for producer in self.producers:
            if producer.answer is not None:
                if producer.answer.outcome is None:
                    producer.answer.give(NotCoordinatorError.errno)
                self.take_answer(producer)

    # ---- Producers ----------------------------------------------------------------------------------------

    def act(self, producer: Producer) -> None:
        chance = self.chance
        if producer.identity is None or (not producer.is_open and chance.random() < 0.1):
            # The producers of one id do not fence each other all the time.
            is_rare = producer.identity is None and producer.name in self.owners
            if not is_rare or chance.random() < 0.1:
                self.send_init(producer)
        elif producer.asked == "retry":
            self.send_end(producer)
        elif not producer.is_open or chance.random() < 0.2:
            self.send_add(producer)
        elif not producer.is_broken and chance.random() < 0.6:
            self.write(producer)
        else:
            commits = not producer.is_broken and chance.random() < 0.7
            producer.asked = "commit" if commits else "abort"
            if commits:
                # The records are acknowledged before a commit.
                self.harness.flush(*producer.added)
            self.send_end(producer)

    def send_init(self, producer: Producer) -> None:
        self.resolve(producer)
        # A producer that has an epoch may ask for the next one (KIP-360).
        expected = producer.identity if self.chance.random() < 0.7 else None
        producer.has_expected = expected is not None
        answer = self.harness.send_init(producer.name, expected, timeout_ms=60_000, node_id=None)
        self.ask(producer, "init", answer)

    def send_add(self, producer: Producer) -> None:
        assert producer.identity is not None
        producer.partitions = self.chance.sample(DATA, self.chance.randint(1, 2))
        answer = self.harness.send_add(
            producer.identity,
            *producer.partitions,
            transactional_id=producer.name,
            version=producer.version,
            node_id=None,
        )
        self.ask(producer, "add", answer)

    def send_end(self, producer: Producer) -> None:
        assert producer.identity is not None
        commits = producer.asked == "commit" or producer.is_uncertain
        producer.is_uncertain |= commits
        answer = self.harness.send_end(
            producer.identity,
            commits=commits,
            transactional_id=producer.name,
            version=producer.version,
            node_id=None,
        )
        self.ask(producer, "commit" if commits else "abort", answer)

    def ask(self, producer: Producer, what: str, answer: Answer) -> None:
        producer.asked, producer.answer = what, answer
        needs_ownership = what != "init" or producer.has_expected
        producer.was_replaced = needs_ownership and self.owners[producer.name][1] is not producer

    def write(self, producer: Producer) -> None:
        assert producer.identity is not None
        if not producer.added:
            return
        place = self.chance.choice(sorted(producer.added))
        log = self.harness.logs.logs[place]
        if not log.has_open_transaction(*producer.identity):
            codes = self.harness.verify(
                producer.identity, place, transactional_id=producer.name, node_id=None
            )
            if codes[place]:
                if codes[place] not in RETRIABLE:
                    self.give_up(producer)
                return
        self.count += 1
        value = b"%d" % self.count
        try:
            self.harness.write(producer.identity, place, value=value)
        except InvalidProducerEpochError:
            self.give_up(producer)
        except KafkaStorageError:
            pass  # It may succeed later.
        else:
            producer.values.add(value)

    def give_up(self, producer: Producer) -> None:
        """Begin again, because another producer has the transactional id or the transaction has timed out."""
        self.resolve(producer)
        producer.identity, producer.asked = None, ""

    def resolve(self, producer: Producer) -> None:
        """Note what may have become of a transaction whose producer does not learn it."""
        if producer.is_uncertain:
            self.uncertain.append(producer.values)
        else:
            self.aborted |= producer.values
        producer.close()

    # ---- Responses ----------------------------------------------------------------------------------------

    def take_answers(self) -> None:
        for producer in self.producers:
            if producer.answer is not None and producer.answer.outcome is not None:
                self.take_answer(producer)

    def take_answer(self, producer: Producer) -> None:
        assert producer.answer is not None
        outcome, producer.answer = producer.answer.got, None
        if outcome.code in RETRIABLE:
            if producer.asked in ("commit", "abort"):
                producer.asked = "retry"
            elif producer.asked == "init" and not producer.has_expected:
                producer.identity = None
        elif outcome.code:
            self.give_up(producer)
        else:
            assert not producer.was_replaced, f"a producer of {producer.name} was not fenced: {outcome}"
            self.succeed(producer, outcome)

    def succeed(self, producer: Producer, outcome: Outcome) -> None:
        if producer.asked == "init":
            self.issue(producer, outcome.producer)
            # Ids and epochs increase. Another producer may have got a later one in the same turn.
            if producer.name not in self.owners or self.owners[producer.name][0] < outcome.producer:
                self.owners[producer.name] = (outcome.producer, producer)
        elif producer.asked == "add":
            producer.is_open = True
            producer.added.update(producer.partitions)
        else:
            if producer.asked == "commit":
                self.committed |= producer.values
            else:
                self.aborted |= producer.values
            producer.close()
            if producer.version >= 2:
                self.issue(producer, outcome.producer)
            producer.asked = ""

    def issue(self, producer: Producer, identity: ProducerIdAndEpoch) -> None:
        number = self.producers.index(producer)
        is_repeated = producer.has_expected and self.issued.get(identity) == number
        assert is_repeated or identity not in self.issued, f"{identity} was given out twice"
        self.issued[identity] = number
        producer.identity = identity

    # ---- Checks -------------------------------------------------------------------------------------------

    def check_marker(self, topic_partition: TopicPartition, marker: EndTransactionMarker) -> None:
        """Check that the outcome of a transaction is safe before its marker."""
        for place in STATES:
            safe = {}
            high_watermark = self.harness.logs.logs[place].high_watermark
            for name, metadata, offset in self.harness.records_of(place):
                if offset < high_watermark:
                    safe[name] = metadata
            for metadata in safe.values():
                if metadata is not None and metadata.producer_id == marker.producer_id:
                    assert metadata.state in PREPARED, f"{marker} in state {metadata.state.title}"
                    assert (metadata.producer_epoch, metadata.commits) == (
                        marker.producer_epoch,
                        marker.commit,
                    )
                    assert topic_partition in metadata.partitions
                    return
        raise AssertionError(f"no transactional id has the producer of {marker}")

    def check(self) -> None:
        for place in STATES:
            written = self.harness.records_of(place)
            self.check_memory(place, {name: metadata for name, metadata, _ in written})
            for name, metadata, offset in written:
                if offset >= self._checked[place]:
                    if metadata is not None and metadata.state in COMPLETED:
                        self.check_completion(self._last[name], metadata)
                    self._last[name] = metadata
            self._checked[place] = self.harness.logs.logs[place].log_end_offset

    def check_memory(self, place: TopicPartition, in_log: dict[str, TransactionMetadata | None]) -> None:
        if not self.harness.services.log.is_active(place.partition):
            return
        in_memory = {
            each.transactional_id: replace(each, last_producer_epoch=NO_PRODUCER_EPOCH)
            for each in self.harness.services.state.of_partition(place.partition)
        }
        assert in_memory == {name: metadata for name, metadata in in_log.items() if metadata is not None}

    def check_completion(self, prepared: TransactionMetadata | None, completed: TransactionMetadata) -> None:
        """Check that all markers of a transaction are safe when it is complete."""
        assert prepared is not None
        assert prepared.state in PREPARED
        assert prepared.commits == (completed.state is COMPLETED[0])
        for place in prepared.partitions:
            high_watermark = self.harness.logs.logs[place].high_watermark
            assert any(
                batch.is_control
                and batch.producer_id == prepared.producer_id
                and batch.producer_epoch == prepared.producer_epoch
                and batch.last_offset < high_watermark
                for _, _, data in self.harness.logs.logs[place].batches
                for batch in read_batches(data)
            ), f"{place} has no safe marker of {completed}"

    def finish(self) -> None:
        """End all transactions and compare the records that consumers see with the responses."""
        harness = self.harness
        self.free_disks()
        harness.settle()
        harness.pass_ms(30_000)
        self.take_answers()
        for producer in self.producers:
            assert producer.answer is None, f"{producer} got no answer"
            self.resolve(producer)
        for name in "abc":
            harness.init(name, node_id=None)
            assert harness.state(name).state not in PREPARED
        self.check()
        visible = {value for place in DATA for value in self.visible_in(place)}
        assert self.committed <= visible, f"lost: {self.committed - visible}"
        assert not self.aborted & visible, f"aborted, and visible: {self.aborted & visible}"
        for values in self.uncertain:
            assert values <= visible or not values & visible, f"partial: {values & visible} of {values}"

    def visible_in(self, place: TopicPartition) -> set[bytes]:
        """Return the records that consumers with read_committed see."""
        visible: set[bytes] = set()
        pending: dict[int, set[bytes]] = {}
        for _, _, data in self.harness.logs.logs[place].batches:
            for batch in read_batches(data):
                for record in batch:
                    if batch.is_control:
                        values = pending.pop(batch.producer_id, set())
                        visible |= values if (record.key or b"")[3] else set()
                    else:
                        pending.setdefault(batch.producer_id, set()).add(record.value or b"")
        assert not pending, f"{place} has open transactions: {pending}"
        return visible
