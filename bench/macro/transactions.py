"""Compare the embedded broker with Apache Kafka in transactions of 1,000 records.

    python bench/macro/transactions.py               # about three minutes; needs Java
    python bench/macro/transactions.py --small --results out --pages ''   # only checks that it still runs

One producer commits one transaction after the other, to each broker in turn; the client is kafkacore's. Like
Apache Kafka with its default settings, the embedded broker with `flush=os` does not wait for the disk. With
`flush=ack`, its default, four syncs follow each other in each transaction: the partition, the records, the
outcome, and the marker. CPU time is that of the broker's process alone. The result is a table of
docs/measured/broker.md and a file of its own, `bench/results/<date>-<short sha>-transactions.json`.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

from broker import THEIRS, Side, Sizes, in_turn, make_topic, remove_topic
from setting import PROJECT

from kafkacore import KafkaProducer
from kafkacore.testing import EmbeddedBroker

sys.path[:0] = [str(PROJECT / "bench"), str(PROJECT / "tests" / "support")]

from measurement import Measurement, parser_of  # noqa: E402 - in the folder above
from peers.apache_kafka import started_in_scratch_folder  # noqa: E402

PER_TRANSACTION = 1_000
#: Sizes of a record in bytes.
RECORD_SIZES = (100, 1024)


def commit(side: Side, topic: str, size: int, count: int) -> dict[str, float]:
    """Commit ``count`` transactions, after a tenth as many that are not measured."""
    values = [b"v" * size] * PER_TRANSACTION
    with KafkaProducer(bootstrap_servers=side.servers, transactional_id=topic) as producer:
        producer.init_transactions()

        def transact(times: int) -> None:
            for _ in range(times):
                producer.begin_transaction()
                producer.send_batch(topic, values, partition=0)
                producer.commit_transaction()

        transact(max(count // 10, 1))
        cpu_s, began_s = side.cpu_s(), time.perf_counter()
        transact(count)
        took_s = time.perf_counter() - began_s
    records = count * PER_TRANSACTION
    return {
        "records_per_s": records / took_s,
        "ms_per_transaction": took_s / count * 1000,
        "cpu_s_per_million": (side.cpu_s() - cpu_s) / records * 1e6,
    }


def row(sides: list[Side], size: int, count: int, rounds: int) -> dict[str, Any]:
    """Measure all sides with one size of records."""

    def measure(side: Side, number: int) -> dict[str, float]:
        topic = f"transactions-{size}-{number}"
        make_topic(side, topic, 1)
        figures = commit(side, topic, size, count)
        remove_topic(side, topic)
        return figures

    return {"size": size, **in_turn(f"{size} B", sides, rounds, measure)}


def main() -> int:
    arguments = parser_of(__doc__, rounds=5).parse_args()
    count, rounds = (3, 1) if arguments.small else (200, arguments.rounds)
    measurement = Measurement("macro/transactions.py", "-transactions", arguments)
    with contextlib.ExitStack() as stack:
        sides = []
        for flush in ("os", "ack"):
            ours = stack.enter_context(EmbeddedBroker(flush=flush))
            sides.append(Side(f"flush={flush}", ours.bootstrap_servers, ours.pid, 0.0, Sizes()))
        theirs = stack.enter_context(started_in_scratch_folder(to_measure=not arguments.small))
        sides.append(Side(THEIRS, theirs.bootstrap_servers, theirs.pid, 0.0, Sizes()))
        for side in sides:
            make_topic(side, "warm-up", 1)
            commit(side, "warm-up", RECORD_SIZES[0], count)
        rows = [row(sides, size, count, rounds) for size in RECORD_SIZES]
    measurement.keep(transactions={"rounds": rounds, "per_round": count, "rows": rows})
    measurement.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
