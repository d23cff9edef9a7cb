"""Compare how long a new process takes to create a producer and to get its first record acknowledged.

    python bench/macro/startup.py                    # about a minute; needs no Java
    python bench/macro/startup.py --small --results out --pages ''   # only checks that it still runs

Each run is a new process, in turn with those of the other clients. It imports the client, creates a producer
with default settings, sends one record to the embedded broker, and waits until the broker has acknowledged
it. Times count from the start of the process, so they include the 10 ms of the interpreter. CPU is that of
all threads of the process. The compiled bytecode of all modules is in a folder that only this program uses.
The result is a table of docs/measured/clients.md and a file of its own,
`bench/results/<date>-<short sha>-startup.json`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from statistics import median
from typing import Any

from setting import PROJECT

from kafkacore import KafkaAdminClient
from kafkacore.admin import NewTopic
from kafkacore.testing import EmbeddedBroker

sys.path.insert(0, str(PROJECT / "bench"))

from measurement import Measurement, parser_of

TOPIC = "startup"
#: The start of each program. `note` prints how much time has passed, as the parent process cannot measure it.
PROLOGUE = """
import os, sys, time
def note(what):
    print(what, time.monotonic(), time.process_time())
servers, topic = sys.argv[1:]
"""
#: The last line skips the end of the interpreter, which is not measured.
EPILOGUE = """
note("acknowledged")
sys.stdout.flush()
os._exit(0)
"""
#: Client → its program. An idempotent producer is the default only of kafkacore and kafka-python.
PROGRAMS = {
    "kafkacore": """
from kafkacore import KafkaProducer
producer = KafkaProducer(bootstrap_servers=servers)
note("created")
producer.send(topic, b"value").get()
""",
    "confluent": """
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
note("created")
producer.produce(topic, b"value")
producer.flush()
""",
    "kafka-python": """
from kafka import KafkaProducer
producer = KafkaProducer(bootstrap_servers=servers)
note("created")
producer.send(topic, b"value").get()
""",
}
DISTRIBUTIONS = {
    "kafkacore": "kafkacore",
    "confluent": "confluent-kafka",
    "kafka-python": "kafka-python",
}


def start(program: str, servers: str, bytecode: str) -> dict[str, float]:
    """Run a program in a new process, and return its times in milliseconds."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", PROLOGUE + program + EPILOGUE, servers, TOPIC]
    began_s = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = {}
    for line in done.stdout.splitlines():
        what, at_s, cpu_s = line.split()
        found[f"{what}_ms"] = (float(at_s) - began_s) * 1000
        found[f"{what}_cpu_ms"] = float(cpu_s) * 1000
    return found


def compare(servers: str, rounds: int) -> dict[str, Any]:
    """Run all clients alternately, and return all times and their medians."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory(prefix="startup-") as bytecode:
        for number in range(rounds + 1):
            # Change the order, so that no client always follows the same other one.
            for name in PROGRAMS if number % 2 == 0 else reversed(PROGRAMS):
                figures = start(PROGRAMS[name], servers, bytecode)
                # The first round compiles all modules to bytecode and does not count.
                if number:
                    runs[name].append(figures)
    medians = {
        name: {figure: median(one[figure] for one in many) for figure in many[0]}
        for name, many in runs.items()
    }
    versions = {name: metadata.version(package) for name, package in DISTRIBUTIONS.items()}
    return {"rounds": rounds, "versions": versions, "runs": runs, "median": medians}


def main() -> int:
    small = "use one round to check that the script runs; the figures mean nothing"
    arguments = parser_of(__doc__, rounds=21, small=small).parse_args()
    measurement = Measurement("macro/startup.py", "-startup", arguments)
    with EmbeddedBroker(flush="os") as broker:
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, 1, 1)])
        startup = compare(broker.bootstrap_servers, 1 if arguments.small else arguments.rounds)
    measurement.keep(startup=startup)
    measurement.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
