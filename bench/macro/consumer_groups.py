"""Compare the embedded broker with Apache Kafka in consumer groups of KIP-848.

    python bench/macro/consumer_groups.py                    # about twenty minutes; needs Java
    python bench/macro/consumer_groups.py --sides kafka      # Apache Kafka alone
    python bench/macro/consumer_groups.py --small --results out --pages ''   # only checks that it still runs

*Heartbeats*: 10,000 members are in groups of 1,000 each, and then in one group. There are as many partitions
as members. A load generator sends the raw requests of all members on a few connections. The members join as
fast as the broker answers; then each of them sends a heartbeat every 5 s, Apache Kafka's default. CPU is the
CPU time of the broker's process, in per cent of one core, after all members have their partitions.

*One more*: 20 consumers of kafkacore read 64 partitions, to each of which a record is written every 100 ms.
One more consumer joins. The table shows the time until the partitions are evenly distributed again. During
this time, a partition that stays with its consumer must not be paused: none of its records may wait longer
than 5 polls of 100 ms.
"""

from __future__ import annotations

import contextlib
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import quantiles
from typing import Any

from broker import OURS, THEIRS, Side, Sizes, in_turn, make_topic, remove_topic
from setting import PROJECT

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.testing import EmbeddedBroker

sys.path[:0] = [str(PROJECT / "bench"), str(PROJECT / "tests" / "support")]

from measurement import Measurement, parser_of  # noqa: E402 - in the folder above
from model.heartbeat_load import HeartbeatLoad  # noqa: E402
from peers.apache_kafka import started_in_scratch_folder  # noqa: E402

SIDES = {"embedded": OURS, "kafka": THEIRS}
#: Time between two records of a partition, and the timeout of a poll.
TICK_MS = 100
#: A partition is paused if a record waits for more polls than this.
POLLS = 5
_TIME = struct.Struct(">d")


@dataclass(frozen=True)
class Doses:
    """Sizes of the measurements."""

    members: int = 10_000
    groups: tuple[int, ...] = (10, 1)
    connections: int = 16
    #: Seconds of heartbeats before and while the CPU time is measured.
    settle_s: float = 10.0
    measure_s: float = 30.0
    longest_join_s: float = 600.0
    #: Time between two heartbeats of a member; 5 s is Apache Kafka's default.
    interval_ms: int = 5_000
    consumers: int = 20
    partitions: int = 64
    #: Seconds of delivery before one more consumer joins: one and a half heartbeat intervals. After one
    #: interval, it would join while the others send their heartbeats, and chance would decide whether the
    #: last of them gives up its partition before or after the next heartbeat of the new consumer.
    before_s: float = 7.5
    longest_rebalance_s: float = 120.0


SMALL = Doses(40, (2,), 2, 0.2, 1.5, 60.0, 500, 2, 6, 0.5, 60.0)


@contextlib.contextmanager
def started(names: list[str], interval_ms: int, *, is_small: bool) -> Iterator[list[Side]]:
    """Start the brokers, whose members send a heartbeat at this interval."""
    properties = {
        "group.consumer.heartbeat.interval.ms": str(interval_ms),
        "group.consumer.min.heartbeat.interval.ms": str(interval_ms),
    }
    with contextlib.ExitStack() as stack:
        sides = []
        if "embedded" in names:
            ours = stack.enter_context(
                EmbeddedBroker(
                    flush="os",
                    group_initial_rebalance_delay_ms=0,
                    group_consumer_heartbeat_interval_ms=interval_ms,
                    group_consumer_min_heartbeat_interval_ms=interval_ms,
                )
            )
            sides.append(Side(OURS, ours.bootstrap_servers, ours.pid, 0.0, Sizes()))
        if "kafka" in names:
            theirs = stack.enter_context(started_in_scratch_folder(properties, to_measure=not is_small))
            sides.append(Side(THEIRS, theirs.bootstrap_servers, theirs.pid, 0.0, Sizes()))
        yield sides


# ---- Heartbeats ---------------------------------------------------------------------------------------


def heartbeats(doses: Doses, groups: int, side: Side, number: int) -> dict[str, float]:
    """Let all members join, and measure the broker while they only send heartbeats."""
    topics = {f"heartbeats-{groups}-{number}-{one}": f"of-{groups}-{number}-{one}" for one in range(groups)}
    for topic in topics.values():
        make_topic(side, topic, doses.members // groups)
    with contextlib.closing(HeartbeatLoad(side.servers, topics, doses.members, doses.connections)) as load:
        cpu_s = side.cpu_s()
        join_s = load.run(lambda: load.is_stable(doses.members), doses.longest_join_s)
        join_cpu_s = side.cpu_s() - cpu_s
        load.run(after(doses.settle_s), doses.longest_join_s)
        load.forget_figures()
        cpu_s = side.cpu_s()
        measured_s = load.run(after(doses.measure_s), doses.longest_join_s)
        used_s = side.cpu_s() - cpu_s
        if load.errors or load.assignments:
            raise SystemExit(f"{side.name}: {load.assignments} assignments while stable; {load.state()}")
        count = len(load.latencies_ms)
        cuts = quantiles(load.latencies_ms, n=100)
        load.leave(doses.longest_join_s)
    for topic in topics.values():
        remove_topic(side, topic)
    return {
        "join_s": join_s,
        "join_cpu_s": join_cpu_s,
        "heartbeats_per_s": count / measured_s,
        "cpu_percent": used_s / measured_s * 100,
        "cpu_us_per_heartbeat": used_s / count * 1e6,
        "p50_ms": cuts[49],
        "p99_ms": cuts[98],
    }


def after(seconds: float) -> Callable[[], bool]:
    """Return a condition that is true after this number of seconds."""
    until = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= until


# ---- One more -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Delivery:
    """A record that a consumer has returned: the partition, and when it was written and returned."""

    consumer: int
    partition: int
    written_s: float
    returned_s: float


class Readers:
    """Consumers of one group, each in a thread of its own."""

    def __init__(self, side: Side, topic: str) -> None:
        self._side = side
        self._topic = topic
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self.owned: list[frozenset[int]] = []
        self.deliveries: list[Delivery] = []

    def join(self) -> None:
        """Start one more consumer."""
        number = len(self._threads)
        self.owned.append(frozenset())
        thread = threading.Thread(target=self._read, args=(number,))
        self._threads.append(thread)
        thread.start()

    def _read(self, number: int) -> None:
        with KafkaConsumer(
            self._topic,
            bootstrap_servers=self._side.servers,
            group_id=self._topic,
            group_protocol="consumer",
            auto_offset_reset="earliest",
        ) as consumer:
            while not self._stopped.is_set():
                found = consumer.poll(timeout_ms=TICK_MS)
                now_s = time.perf_counter()
                self.owned[number] = frozenset(one.partition for one in consumer.assignment())
                for partition, records in found.items():
                    for record in records:
                        (written_s,) = _TIME.unpack(record.value)
                        self.deliveries.append(Delivery(number, partition.partition, written_s, now_s))

    def are_stable(self, partitions: int) -> bool:
        """Return whether each partition has one owner and the partitions are evenly distributed."""
        counts = list(map(len, self.owned))
        every = frozenset().union(*self.owned)
        return sum(counts) == len(every) == partitions and max(counts) - min(counts) <= 1

    def await_stable(self, partitions: int, longest_s: float) -> float:
        """Wait until the consumers are stable, and return the seconds that this took."""
        began_s = time.perf_counter()
        while not self.are_stable(partitions):
            if time.perf_counter() - began_s > longest_s:
                raise SystemExit(f"{self._side.name}: not stable after {longest_s} s: {self.owned}")
            time.sleep(0.005)
        return time.perf_counter() - began_s

    def close(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()


@contextlib.contextmanager
def writing(side: Side, topic: str, partitions: int) -> Iterator[None]:
    """Write the time to each partition once per tick, within the block."""
    stopped = threading.Event()

    def write() -> None:
        with KafkaProducer(bootstrap_servers=side.servers, linger_ms=0) as producer:
            while not stopped.wait(TICK_MS / 1000):
                for partition in range(partitions):
                    producer.send(topic, _TIME.pack(time.perf_counter()), partition=partition)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def one_more(doses: Doses, side: Side, number: int) -> dict[str, float]:
    """Let one more consumer join, and measure the time and the longest wait of a record."""
    topic = f"one-more-{number}"
    make_topic(side, topic, doses.partitions)
    readers = Readers(side, topic)
    with contextlib.closing(readers), writing(side, topic, doses.partitions):
        for _ in range(doses.consumers):
            readers.join()
        first_s = readers.await_stable(doses.partitions, doses.longest_rebalance_s)
        time.sleep(doses.before_s)
        before, begun_s = list(readers.owned), time.perf_counter()
        readers.join()
        stable_s = readers.await_stable(doses.partitions, doses.longest_rebalance_s)
        over_s = time.perf_counter()
        # The consumers may not have received the last records yet.
        time.sleep(10 * TICK_MS / 1000)
        kept = [(each & readers.owned[member]) for member, each in enumerate(before)]
    remove_topic(side, topic)
    waits: dict[bool, list[float]] = {False: [0.0], True: [0.0]}
    for one in readers.deliveries:
        is_kept = one.consumer < len(kept) and one.partition in kept[one.consumer]
        if is_kept and begun_s - doses.before_s <= one.written_s <= over_s:
            waits[one.written_s >= begun_s].append((one.returned_s - one.written_s) * 1000)
    return {
        "first_s": first_s,
        "stable_s": stable_s,
        "kept": sum(map(len, kept)),
        "longest_wait_before_ms": max(waits[False]),
        "longest_wait_ms": max(waits[True]),
        "paused_records": sum(wait > POLLS * TICK_MS for wait in waits[True]),
    }


# ---- The result ---------------------------------------------------------------------------------------


def row(
    what: str, sides: list[Side], rounds: int, measure: Callable[[Side, int], dict[str, float]]
) -> dict[str, Any]:
    """Measure all sides, and return the row of the result."""
    return {"what": what, **in_turn(what, sides, rounds, measure)}


def main() -> int:
    parser = parser_of(__doc__, rounds=3)
    parser.add_argument(
        "--sides", default=",".join(SIDES), help=f"brokers to measure (default: {','.join(SIDES)})"
    )
    arguments = parser.parse_args()
    names = arguments.sides.split(",")
    if strange := [name for name in names if name not in SIDES]:
        parser.error(f"unknown side {strange[0]}; the sides are {', '.join(SIDES)}")
    doses, rounds = (SMALL, 1) if arguments.small else (Doses(), arguments.rounds)
    measurement = Measurement("macro/consumer_groups.py", "-consumer-groups", arguments)
    with started(names, doses.interval_ms, is_small=arguments.small) as sides:
        rows = [
            row(
                f"{doses.members:,} members in {groups} group{'s' if groups > 1 else ''}",
                sides,
                rounds,
                partial(heartbeats, doses, groups),
            )
            for groups in doses.groups
        ]
        what = f"one consumer joins {doses.consumers} consumers of {doses.partitions} partitions"
        last = row(what, sides, rounds, partial(one_more, doses))
    measurement.keep(
        consumer_groups={
            "rounds": rounds,
            "polls": POLLS,
            "poll_ms": TICK_MS,
            "heartbeats": rows,
            "one_more": last,
        }
    )
    measurement.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
