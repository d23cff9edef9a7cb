"""Compare the asyncio clients of kafkacore, aiokafka and confluent-kafka: CPU time per record, and latency.

    python bench/macro/asyncio_clients.py                  # about ten minutes; needs Java
    python bench/macro/asyncio_clients.py --sides embedded --works gather,iterate --rounds 3
    python bench/macro/asyncio_clients.py --small --results out --pages ''   # only checks that it still runs

Each client runs alone in a process of its own, with asyncio's own event loop, one topic with one partition,
records of 100 bytes, and acks 1.

- `gather` sends 1,000 records and gathers their futures; `tasks` sends them in a task each.
- `batch` sends 1,000 records by the client's cheapest call, with batches of up to 1 MB.
- `each` awaits every send before the next one.
- `paced` sends 1,000 records per second. Its latency is the time from when a record was due until its
  acknowledgement.
- `debug` sends and reads 100,000 records per second in asyncio's debug mode, 1,000 records by each of the
  client's cheapest calls, and counts the callbacks of the event loop that take more than 5 ms. As root, the
  client has a real-time priority, so that the broker on the same processors does not interrupt its callbacks.
- `fastapi` sends a record for each request to a FastAPI application. Its latency is that of the request; 32
  connections send requests.
- `iterate` reads records one by one.

CPU time is that of the whole process after its start and warm-up. The clients run in alternating order.
confluent-kafka's client runs librdkafka in a pool of threads, and waits for up to 1,000 records or a second
before it sends. For `each`, `paced` and `fastapi`, it is set to send every record at once, and a task polls
it for the acknowledgements.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from statistics import median
from typing import Any

from asyncio_worker import WORKS, Task
from broker import OURS, THEIRS
from setting import PROJECT

from kafkacore import KafkaAdminClient, KafkaProducer
from kafkacore.admin import NewTopic
from kafkacore.testing import EmbeddedBroker

sys.path[:0] = [str(PROJECT / "bench"), str(PROJECT / "tests" / "support")]

from measurement import Measurement, parser_of  # noqa: E402 - in the folder above
from peers.apache_kafka import started_in_scratch_folder  # noqa: E402

WORKER = PROJECT / "bench" / "macro" / "asyncio_worker.py"
SIDES = {"embedded": OURS, "kafka": THEIRS}
CLIENTS = {"kafkacore": "kafkacore", "aiokafka": "aiokafka", "confluent": "confluent-kafka"}
#: Work → measured records of each client.
RECORDS = {
    "gather": {"kafkacore": 100_000, "aiokafka": 50_000, "confluent": 5_000},
    "tasks": {"kafkacore": 100_000, "aiokafka": 50_000, "confluent": 5_000},
    "batch": {"kafkacore": 1_000_000, "aiokafka": 100_000, "confluent": 5_000},
    "each": {"kafkacore": 5_000, "aiokafka": 5_000, "confluent": 5_000},
    "paced": {"kafkacore": 3_000, "aiokafka": 3_000, "confluent": 3_000},
    # aiokafka cannot do it: its sends time out (on the machine of the results in the documentation).
    "debug": {"kafkacore": 500_000},
    "fastapi": {"kafkacore": 3_000, "aiokafka": 3_000, "confluent": 3_000},
    "iterate": {"kafkacore": 500_000, "aiokafka": 200_000, "confluent": 20_000},
}
#: Records of each client before the measured ones.
WARM_UP_RECORDS = 1_000
#: Work → measured records, and records before them, with ``--small``. A step of most works is 1,000 records.
SMALL_RECORDS = dict.fromkeys(RECORDS, 1_000) | dict.fromkeys(("each", "paced", "fastapi"), 50)
LONGEST_S = 300.0


@contextlib.contextmanager
def started(sides: list[str], is_small: bool) -> Iterator[dict[str, str]]:
    """Start the brokers, and return their addresses by side."""
    with contextlib.ExitStack() as stack:
        servers = {}
        if "embedded" in sides:
            servers["embedded"] = stack.enter_context(EmbeddedBroker(flush="os")).bootstrap_servers
        if "kafka" in sides:
            theirs = stack.enter_context(started_in_scratch_folder({}, to_measure=not is_small))
            servers["kafka"] = theirs.bootstrap_servers
        yield servers


def prepare_topic(servers: str, topic: str, records: int) -> None:
    """Create a topic with one partition and this number of records."""
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    with KafkaProducer(bootstrap_servers=servers) as producer:
        while records > 0:
            count = min(records, 100_000)
            producer.send_batch(topic, [bytes(range(100))] * count).get(timeout=60)
            records -= count


def run(task: Task) -> dict[str, Any]:
    """Run a client, and return its figures."""
    done = subprocess.run(
        [sys.executable, str(WORKER), json.dumps(asdict(task))],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{task.client}, {task.work}: {done.stderr.strip()}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def measure(side: str, servers: str, work: str, rounds: int, is_small: bool) -> dict[str, Any]:
    """Run all clients in turn, and return the medians of their figures."""
    clients = list(RECORDS[work])
    found: dict[str, list[dict[str, Any]]] = {client: [] for client in clients}
    counts = dict.fromkeys(clients, SMALL_RECORDS[work]) if is_small else RECORDS[work]
    topic = f"asyncio-{work}"
    warm_up = SMALL_RECORDS[work] if is_small else WARM_UP_RECORDS
    prepare_topic(servers, topic, max(counts.values()) + warm_up if work == "iterate" else 0)
    for number in range(rounds):
        # Each round begins with another client.
        order = clients[number % len(clients) :] + clients[: number % len(clients)]
        for client in order:
            figures = run(Task(client, work, servers, topic, counts[client], warm_up))
            found[client].append(figures)
            print(f"{SIDES[side]}, {work}, {client}: {figures}", file=sys.stderr, flush=True)
    return {
        "work": work,
        "broker": SIDES[side],
        "median": {
            client: {name: median(one[name] for one in figures) for name in figures[0]}
            for client, figures in found.items()
        },
        "rounds": found,
    }


def main() -> int:
    parser = parser_of(__doc__, rounds=5)
    parser.add_argument("--sides", default=",".join(SIDES), help="brokers to measure (default: %(default)s)")
    parser.add_argument("--works", default=",".join(WORKS), help="what to measure (default: %(default)s)")
    arguments = parser.parse_args()
    sides, works = arguments.sides.split(","), arguments.works.split(",")
    for what, given, known in (("side", sides, SIDES), ("work", works, WORKS)):
        if strange := [one for one in given if one not in known]:
            parser.error(f"unknown {what} {strange[0]}; it must be one of {', '.join(known)}")
    rounds = 1 if arguments.small else arguments.rounds
    measurement = Measurement("macro/asyncio_clients.py", "-asyncio", arguments)
    with started(sides, arguments.small) as servers:
        rows = [
            measure(side, address, work, rounds, arguments.small)
            for side, address in servers.items()
            for work in works
        ]
    versions = {name: version(name) for name in CLIENTS.values()}
    measurement.keep(asyncio_clients={"rounds": rounds, "versions": versions, "rows": rows})
    measurement.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
