"""The options of ``kafkacore bench spark``."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kafkacore.bench.spark.rows import ROWS
from kafkacore.errors import KafkaConfigurationError

#: Advice on how to get Spark's own source, which has no matching release for PySpark 4.3.
JARS_SENTENCE = (
    "set --spark-kafka-jars 'DIR/*' to the jars of Spark's own kafka source. For PySpark 4.3, Maven Central "
    "has only jars of different versions that work together: spark-sql-kafka-0-10_2.13:4.2.0, "
    "spark-token-provider-kafka-0-10_2.13:4.1.0-preview1, kafka-clients:3.9.2, commons-pool2 and "
    "scala-parallel-collections_2.13"
)


@dataclass(frozen=True)
class JsonValues:
    """JSON values from a data set of the caller.

    Parameters
    ----------
    schema:
        Schema of the JSON objects in Spark's DDL.
    values:
        Function that returns a new iterator over the values.
    """

    schema: str
    values: Callable[[], Iterator[bytes]]


@dataclass(frozen=True)
class SparkBenchOptions:
    """Options of a benchmark. :meth:`check` validates them."""

    #: Brokers; ``None`` starts the embedded broker.
    bootstrap: str | None = None
    rows: tuple[str, ...] = tuple(ROWS)
    records: int = 2_000_000
    #: Bytes of a value.
    size: int = 100
    partitions: int = 2
    codec: str = "none"
    rounds: int = 3
    #: Number of cores of Spark (``local[N]``).
    cores: int = 2
    #: Jars of Spark's own source, as ``DIR/*``; ``None`` measures only kafkacore.
    kafka_jars: str | None = None
    #: Number of bytes to read for the row ``memory`` of the result table.
    memory_bytes: int = 10**10
    #: Process ID of the broker, if it runs on this machine.
    broker_pid: int | None = None
    #: Values for the rows of the result table that decode JSON.
    json_values: JsonValues | None = None
    #: Maximum duration of one side (one of the compared queries) of one row, in seconds.
    run_limit_s: float = 900.0
    #: Further settings of Spark.
    configs: dict[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Validate the options.

        Raises
        ------
        KafkaConfigurationError
            An option is invalid.
        """
        if strange := [name for name in self.rows if name not in ROWS]:
            raise KafkaConfigurationError(f"unknown row {strange[0]!r}: it must be one of {', '.join(ROWS)}")
        for what, wrong in (
            ("--records must be at least 100", self.records < 100),
            ("--rounds must be at least 1", self.rounds < 1),
            ("--size must be at least 1", self.size < 1),
            ("--partitions must be at least 1", self.partitions < 1),
            (
                "bench spark needs /proc, which only Linux has",
                not Path("/proc/self/stat").exists(),
            ),
        ):
            if wrong:
                raise KafkaConfigurationError(what)
        if self.kafka_jars is not None and not self.jars():
            raise KafkaConfigurationError(
                f"--spark-kafka-jars {self.kafka_jars} does not contain Spark's kafka source: {JARS_SENTENCE}"
            )

    def jars(self) -> list[str]:
        """Return the jars in ``kafka_jars``, or an empty list if Spark's own source is not among them."""
        if self.kafka_jars is None:
            return []
        parts = self.kafka_jars.split(os.pathsep)
        found = sorted({path for part in parts for path in glob.glob(part) if path.endswith(".jar")})
        has_source = any(Path(path).name.startswith("spark-sql-kafka") for path in found)
        return found if has_source else []

    def to_dict(self) -> dict[str, object]:
        """Return the options for the result, without paths of this machine."""
        names = ("rows", "records", "size", "partitions", "codec", "rounds", "cores", "memory_bytes")
        return {name: getattr(self, name) for name in names} | {"bootstrap": self.bootstrap}
