"""Producers of several clients whose transactions interleave while the broker is killed.

They write to the same partitions. Each transaction also commits an offset, its number, so that records and
offsets can be compared.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from eventually import BUDGET_S
from peers.transactional_clients import Client, Ids, Outcome, Transaction

from kafkacore.testing import EmbeddedBroker

#: Range of the seconds between a start and the next kill; shorter times are more likely.
SHORTEST_LIFE_S, LONGEST_LIFE_S = 0.1, 2.5
#: Number of transactions of one producer.
MOST_TRANSACTIONS = 6
RECORDS = (1, 2, 5, 20)


@dataclass
class MixedKills:
    """One run; call :meth:`run`, then compare what a consumer reads with :meth:`findings`."""

    broker: EmbeddedBroker
    topic: str
    partitions: int
    clients: dict[str, Client]
    transactions: dict[str, list[Transaction]] = field(default_factory=dict)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _crashes: list[BaseException] = field(default_factory=list)

    def ids(self, client: str) -> Ids:
        return Ids(self.broker.bootstrap_servers, self.topic, f"mixed-{client}")

    def run(self, chance: random.Random, kills: int) -> None:
        """Kill the broker ``kills`` times, then wait until the last transactions have ended."""
        self.transactions = {name: [] for name in self.clients}
        chances = {name: random.Random(chance.random()) for name in self.clients}
        threads = [threading.Thread(target=self._produce, args=each) for each in chances.items()]
        for thread in threads:
            thread.start()
        try:
            for _ in range(kills):
                # This waits for no condition: the time of the kill is random.
                self._stopped.wait(SHORTEST_LIFE_S * (LONGEST_LIFE_S / SHORTEST_LIFE_S) ** chance.random())
                assert not self._crashes, self._crashes
                self.broker.kill()
                self.broker.start()
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join(4 * BUDGET_S)
        assert not self._crashes, self._crashes
        assert not any(thread.is_alive() for thread in threads)
        self._end_last()

    def _produce(self, name: str, chance: random.Random) -> None:
        try:
            while not self._stopped.is_set():
                self._run_some(name, chance)
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            self._crashes.append(error)

    def _run_some(self, name: str, chance: random.Random) -> None:
        done = self.transactions[name]
        wanted = []
        for number in range(len(done), len(done) + chance.randint(1, MOST_TRANSACTIONS)):
            records = [
                (chance.randrange(self.partitions), b"%s %d %d" % (name.encode(), number, index))
                for index in range(chance.choice(RECORDS))
            ]
            wanted.append(Transaction(records, commits=chance.random() < 0.7, offset=number))
        done += wanted
        self.clients[name].run(self.ids(name), wanted)

    def _end_last(self) -> None:
        """Commit a transaction of each client, which ends the one that its last producer left open."""
        for name in self.clients:
            last = Transaction([(0, b"%s last" % name.encode())], offset=len(self.transactions[name]))
            self.transactions[name].append(last)
            self.clients[name].run(self.ids(name), [last])
            assert last.outcome is Outcome.COMMITTED, f"{name}: {last.error}"

    # ---- Checks -------------------------------------------------------------------------------------------

    def count(self, name: str, outcome: Outcome) -> int:
        return sum(each.outcome is outcome for each in self.transactions[name])

    def figures(self) -> dict[str, str]:
        """Return the number of transactions of each client by outcome."""
        return {
            name: ", ".join(f"{count} {outcome.value}" for outcome, count in sorted_counts(done))
            for name, done in self.transactions.items()
        }

    def errors(self) -> list[str]:
        """Return the errors of the transactions that failed."""
        return [
            f"{name}: {each.error}" for name, done in self.transactions.items() for each in done if each.error
        ]

    def findings(self, received: Sequence[tuple[int, bytes]]) -> list[str]:
        """Compare the committed records with the outcomes that the producers reported."""
        seen = Counter(received)
        found = [f"{record} was read {count} times" for record, count in seen.items() if count > 1]
        for name, done in self.transactions.items():
            for number, each in enumerate(done):
                present = sum(record in seen for record in each.records)
                for record in each.records:
                    seen.pop(record, None)
                least, most = 0, 0
                if each.outcome is Outcome.COMMITTED:
                    least = most = len(each.records)
                elif each.outcome is Outcome.UNKNOWN:
                    most = len(each.records)
                if present not in (least, most):
                    found.append(
                        f"{name}: {present} of {len(each.records)} records of transaction {number} "
                        f"({each.outcome.value}) were read: {each.error}"
                    )
                each.is_present = present > 0
        return found + [f"{record} was never sent" for record in seen]

    def findings_about_offsets(self, committed: dict[str, int]) -> list[str]:
        """Compare the committed offset of each client with its last transaction that was read."""
        found = []
        for name, done in self.transactions.items():
            last = max((number for number, each in enumerate(done) if each.is_present), default=None)
            if committed.get(name) != last:
                found.append(f"{name}: offset {committed.get(name)} is committed, expected {last}")
        return found


def sorted_counts(transactions: Sequence[Transaction]) -> list[tuple[Outcome, int]]:
    counts = Counter(each.outcome for each in transactions)
    return sorted(counts.items(), key=lambda item: item[0].value)
