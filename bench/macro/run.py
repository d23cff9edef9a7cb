"""Compare whole client processes against Apache Kafka: produce, consume, both Arrow modes, and latency.

    python bench/macro/run.py --output figures.json        # about six minutes
    python bench/macro/run.py --tls --output figures.json  # the same with TLS
    python bench/macro/run.py --embedded --small           # only checks that it still runs

`kafkacore bench` runs each client in a process of its own, one after the other in each round, and counts
every record. confluent-kafka takes part in every case. The slower peers take part in one case of each kind,
with fewer records.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from setting import Broker, add_broker, broker, java_classpath

from kafkacore.bench.options import PEERS, BenchOptions
from kafkacore.bench.runner import run_bench
from kafkacore.bench.table import tables
from kafkacore.cli.report import Reporter, print_table


def plan(records: int, rounds: int, has_groups: bool, has_tls: bool) -> list[BenchOptions]:
    """Return the runs in the order of the table.

    Consuming as a group member is included if the broker supports groups. The embedded broker's own runs are
    left out if only clients are compared.
    """
    few, paced = max(1, records // 5), max(20, min(records // 50, 10_000))
    fast: dict[str, Any] = {"peers": ("confluent",), "records": records, "rounds": rounds}
    codecs = ("none", "lz4", "zstd")
    return [
        BenchOptions(modes=("produce",), codecs=codecs, partitions=(1, 6), **fast),
        BenchOptions(modes=("consume",), **fast),
        *([BenchOptions(modes=("group",), **fast)] if has_groups else ()),
        # Five times as many records, because a million are read in a tenth of a second.
        BenchOptions(modes=("arrow",), **fast | {"records": records * 5}),
        BenchOptions(modes=("consume",), codecs=("lz4",), partitions=(6,), **fast),
        BenchOptions(modes=("produce", "consume"), peers=PEERS, records=few, rounds=rounds),
        BenchOptions(
            modes=("produce",), peers=PEERS, records=paced, rate=2_000.0, rounds=rounds, linger_ms=0
        ),
        BenchOptions(
            modes=("roundtrip",), peers=PEERS, records=paced, rate=2_000.0, rounds=rounds, linger_ms=0
        ),
        *([] if has_tls else [BenchOptions(modes=("broker",), **fast)]),
    ]


def measure(where: Broker, records: int, rounds: int, small: bool) -> dict[str, Any]:
    """Measure all runs of the plan and return them as one result."""
    classpath = None if small else java_classpath()
    whole: dict[str, Any] = {}
    for options in plan(records, rounds, where.bootstrap is not None, bool(where.security)):
        options = replace(
            options,
            bootstrap=where.bootstrap,
            broker_pid=where.pid,
            security=where.security,
            java_classpath=classpath,
            warm_up_records=min(options.warm_up_records, options.records),
        )
        result = run_bench(options, Reporter())
        if whole:
            whole["results"] += result["results"]
            whole["versions"] |= result["versions"]
            whole["missing"] |= result["missing"]
            whole["void"] = whole["void"] or result["void"]
        else:
            whole = result
    # The other options differ between runs and are in their entries, or are paths of this machine.
    common = {"records": records, "rounds": rounds, "bootstrap": where.bootstrap}
    return whole | {"broker": where.name, "options": common}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_broker(parser)
    parser.add_argument(
        "--records", type=int, default=1_000_000, help="number of records per run (default: 1,000,000)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each client (default: 3)")
    parser.add_argument("--output", type=Path, metavar="FILE.json")
    arguments = parser.parse_args()
    records, rounds = (200, 1) if arguments.small else (arguments.records, arguments.rounds)
    with broker(arguments) as where:
        result = measure(where, records, rounds, arguments.small)
    if arguments.output:
        arguments.output.write_text(json.dumps(result) + "\n")
    for title, header, rows in tables(result):
        print(title)
        print_table(header, rows, has_sum=False)
    return 1 if result["void"] else 0


if __name__ == "__main__":
    sys.exit(main())
