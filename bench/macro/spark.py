"""Measure Spark's reads and writes by kafkacore and by Spark's own source, against Apache Kafka.

    python bench/macro/spark.py                              # about twenty minutes
    python bench/macro/spark.py --rows read,json --rounds 5
    python bench/macro/spark.py --embedded --small --results out --pages ''   # only checks that it still runs

It runs `kafkacore bench spark` with Apache Kafka and with the jars of Spark's source that the tests fetch.
The result is written to a separate file, `bench/results/<date>-<short sha>-spark.json`.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from setting import PROJECT, add_broker, broker

from kafkacore.bench.spark.options import SparkBenchOptions
from kafkacore.bench.spark.rows import ROWS
from kafkacore.bench.spark.runner import run_spark_bench
from kafkacore.bench.table import tables
from kafkacore.cli.bench import flights_as_json
from kafkacore.cli.report import Reporter, print_table

sys.path.insert(0, str(PROJECT / "bench"))

from measurement import Measurement, add_results


def jars() -> str:
    """Return the jars of Spark's own source, downloaded once by Maven."""
    sys.path.insert(0, str(PROJECT / "tests" / "support"))
    from peers.jars import spark_kafka_jars

    return f"{spark_kafka_jars()}/*"


def merged(whole: dict[str, Any], one: dict[str, Any]) -> dict[str, Any]:
    """Return a result with another row added."""
    if not whole:
        return one
    options = whole["options"] | {"rows": [*whole["options"]["rows"], *one["options"]["rows"]]}
    return whole | {
        "options": options,
        "results": whole["results"] + one["results"],
        "missing": whole["missing"] | one["missing"],
        "void": whole["void"] or one["void"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_broker(parser)
    parser.add_argument(
        "--records", type=int, default=4_000_000, help="number of records per run (default: 4,000,000)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each side (default: 3)")
    parser.add_argument("--rows", default=",".join(ROWS), help="rows to measure (default: all)")
    parser.add_argument(
        "--gigabytes", type=float, default=10.0, help="gigabytes of the row memory (default: 10)"
    )
    add_results(parser)
    arguments = parser.parse_args()
    small = {"records": 2_000, "rounds": 1, "memory_bytes": 10**6} if arguments.small else {}
    measurement = Measurement("macro/spark.py", "-spark", arguments)
    spark: dict[str, Any] = {}
    with broker(arguments) as where:
        for row in arguments.rows.split(","):
            given = {
                "bootstrap": where.bootstrap,
                "broker_pid": where.pid,
                "rows": (row,),
                "records": arguments.records,
                "rounds": arguments.rounds,
                "memory_bytes": int(arguments.gigabytes * 1e9),
                "kafka_jars": jars(),
                "json_values": flights_as_json(),
            }
            spark = merged(spark, run_spark_bench(SparkBenchOptions(**given | small), Reporter()))
            # Write the file after each row, so that an interrupted run keeps what it has measured.
            measurement.keep(spark=spark | {"broker": where.name})
    measurement.update_pages()
    for title, header, rows in tables(spark):
        print(title)
        print_table(header, rows, has_sum=False)
    return 1 if spark["void"] else 0


if __name__ == "__main__":
    sys.exit(main())
