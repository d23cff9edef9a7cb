"""Compare the CPU time of `kafkacore produce` and `kafkacore consume` with that of kcat, start-up included.

    python bench/macro/cli.py                    # about two minutes; needs no Java
    python bench/macro/cli.py --small --results out --pages ''   # only checks that it still runs

Each run is a new process, in turn with kcat's, and reads or writes a file of lines of 100 bytes. The broker
is the embedded one; each run of `produce` has a topic of its own. Without kcat, only kafkacore is measured.
The compiled bytecode of all modules is in a folder that only this program uses. The result is a table of
docs/measured/clients.md and a file of its own, `bench/results/<date>-<short sha>-cli.json`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

from setting import PROJECT

from kafkacore import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafkacore.admin import NewTopic
from kafkacore.testing import EmbeddedBroker

sys.path.insert(0, str(PROJECT / "bench"))

from measurement import Measurement, parser_of

TOPIC = "lines"
LINE_BYTES = 100
FORMAT = r"%T %t-%p@%o %k: %s %h\n"
#: Work → arguments of kafkacore after the topic, and of kcat. Every line has a key, a colon and a value.
PRODUCE = {
    "produce, values": ([], []),
    "produce, keys and values": (["-K", ":"], ["-K", ":"]),
    "produce, a header": (["-H", "a=b"], ["-H", "a=b"]),
}
#: The records to read have a key, a value and a header.
CONSUME = {
    "consume, values": ([], []),
    "consume, keys and values": (["-K", ":"], ["-K", ":"]),
    "consume, --format with all fields": (["-f", FORMAT], ["-f", FORMAT]),
    "consume, --json": (["--json"], ["-J"]),
}


class Commands:
    """Runs the commands of both programs.

    Parameters
    ----------
    servers:
        Address of the broker.
    folder:
        Folder of the input, the output and the bytecode.
    lines:
        Number of lines.
    """

    def __init__(self, servers: str, folder: Path, lines: int) -> None:
        self._servers = servers
        self._input = folder / "input"
        self._output = folder / "output"
        self._lines = lines
        self._environment = os.environ | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        filling = "x" * (LINE_BYTES - 10)
        self._input.write_text("".join(f"{number:08d}:{filling}\n" for number in range(lines)))

    def produce(self, program: str, topic: str, ours: list[str], kcats: list[str]) -> dict[str, float]:
        """Send all lines, check their number, and return the seconds of CPU and wall time."""
        command = {
            "kafkacore": [sys.executable, "-m", "kafkacore", "produce", topic, "-b", self._servers, *ours],
            "kcat": ["kcat", "-P", "-b", self._servers, "-t", topic, *kcats],
        }[program]
        with KafkaAdminClient(bootstrap_servers=self._servers) as admin:
            admin.create_topics([NewTopic(topic, 1, 1)])
        found = self._measured(command)
        with KafkaConsumer(bootstrap_servers=self._servers) as consumer:
            self._check(command, *consumer.end_offsets([TopicPartition(topic, 0)]).values())
        return found

    def delete(self, topic: str) -> None:
        """Delete the records of a run."""
        with KafkaAdminClient(bootstrap_servers=self._servers) as admin:
            admin.delete_topics([topic])

    def consume(self, program: str, topic: str, ours: list[str], kcats: list[str]) -> dict[str, float]:
        """Print all records, check their number, and return the seconds of CPU and wall time."""
        command = {
            "kafkacore": [sys.executable, "-m", "kafkacore", "consume", topic, "-b", self._servers,
                          "--from-beginning", "--exit", *ours],
            "kcat": ["kcat", "-C", "-b", self._servers, "-t", topic, "-o", "beginning", "-e", "-q", *kcats],
        }[program]  # fmt: skip
        found = self._measured(command)
        self._check(command, self._output.read_bytes().count(b"\n"))
        return found

    def _check(self, command: list[str], count: int) -> None:
        if count != self._lines:
            raise SystemExit(f"{shlex.join(command)}: {count} lines instead of {self._lines}")

    def _measured(self, command: list[str]) -> dict[str, float]:
        began_s = time.monotonic()
        with self._input.open("rb") as source, self._output.open("wb") as target:
            process = subprocess.Popen(command, env=self._environment, stdin=source, stdout=target)
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{shlex.join(command)} failed with status {process.returncode}")
        return {"cpu_s": usage.ru_utime + usage.ru_stime, "wall_s": time.monotonic() - began_s}


def compare(servers: str, folder: Path, rounds: int, lines: int) -> dict[str, Any]:
    """Run all commands alternately, and return the medians."""
    programs = ["kafkacore", *(["kcat"] if shutil.which("kcat") else [])]
    commands = Commands(servers, folder, lines)
    commands.produce("kafkacore", TOPIC, ["-K", ":", "-H", "a=b"], [])
    rows = []
    for what, (ours, kcats) in (PRODUCE | CONSUME).items():
        runs: dict[str, list[dict[str, float]]] = {program: [] for program in programs}
        # The first round compiles all modules to bytecode and does not count.
        for number in range(rounds + 1):
            for program in programs if number % 2 == 0 else reversed(programs):
                if what in CONSUME:
                    figures = commands.consume(program, TOPIC, ours, kcats)
                else:
                    topic = f"{program}-{len(rows)}-{number}"
                    figures = commands.produce(program, topic, ours, kcats)
                    commands.delete(topic)
                if number:
                    runs[program].append(figures)
        medians = {
            program: {figure: median(one[figure] for one in many) for figure in many[0]}
            for program, many in runs.items()
        }
        rows.append({"what": what, "runs": runs, "median": medians})
    return {"rounds": rounds, "lines": lines, "versions": versions(programs), "rows": rows}


def versions(programs: list[str]) -> dict[str, str]:
    found = {"kafkacore": metadata.version("kafkacore")}
    if "kcat" in programs:
        shown = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
        numbers = re.search(r"Version ([0-9.]+).*(librdkafka [0-9.]+)", shown)
        assert numbers is not None
        found["kcat"] = f"{numbers[1]} ({numbers[2]})"
    return found


def main() -> int:
    small = "use one round of 1,000 lines to check that the script runs; the figures mean nothing"
    parser = parser_of(__doc__, rounds=5, small=small)
    parser.add_argument("--lines", type=int, default=500_000, help="lines of each run (default: 500,000)")
    arguments = parser.parse_args()
    if arguments.small:
        arguments.rounds, arguments.lines = 1, 1000
    measurement = Measurement("macro/cli.py", "-cli", arguments)
    with EmbeddedBroker(flush="os") as broker, tempfile.TemporaryDirectory(prefix="cli-") as folder:
        cli = compare(broker.bootstrap_servers, Path(folder), arguments.rounds, arguments.lines)
    measurement.keep(cli=cli)
    measurement.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
