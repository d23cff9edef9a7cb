"""What ``kafkacore bench spark`` is asked for, checked."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kafkacore.bench.spark.rows import ROWS
from kafkacore.errors import KafkaConfigurationError

#: How to get Spark's own source for PySpark 4.3, which no release of it fits.
JARS_SENTENCE = (
    "give the jars of Spark's own kafka source: --spark-kafka-jars 'DIR/*'. For PySpark 4.3 Maven Central "
    "has a set of mixed versions only: spark-sql-kafka-0-10_2.13:4.2.0, spark-token-provider-kafka-0-10_2.13:"
    "4.1.0-preview1, kafka-clients:3.9.2, commons-pool2 and scala-parallel-collections_2.13"
)


@dataclass(frozen=True)
class JsonValues:
    """Values of one JSON object each, of a data set that the caller knows.

    Parameters
    ----------
    schema:
        Of the object, in Spark's DDL.
    values:
        Gives them anew at each call.
    """

    schema: str
    values: Callable[[], Iterator[bytes]]


@dataclass(frozen=True)
class SparkBenchOptions:
    """Everything that can be chosen; ``check`` says what cannot be."""

    #: ``None`` starts the embedded broker.
    bootstrap: str | None = None
    rows: tuple[str, ...] = tuple(ROWS)
    records: int = 2_000_000
    #: Bytes of a value.
    size: int = 100
    partitions: int = 2
    codec: str = "none"
    rounds: int = 3
    #: Of Spark; its ``local[N]``.
    cores: int = 2
    #: Jars of Spark's own source, as ``DIR/*``; ``None`` measures ours alone.
    kafka_jars: str | None = None
    #: How much the row ``memory`` reads, in bytes.
    memory_bytes: int = 10**10
    #: Process of the cluster's broker, if it runs here.
    broker_pid: int | None = None
    #: For the rows of typed values.
    json_values: JsonValues | None = None
    #: Longest that one side of one row may take in all, in seconds.
    run_limit_s: float = 900.0
    #: Further settings of Spark.
    configs: dict[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse what cannot be measured.

        Raises
        ------
        KafkaConfigurationError
            With the sentence for the user.
        """
        if strange := [name for name in self.rows if name not in ROWS]:
            raise KafkaConfigurationError(f"there is no row {strange[0]!r}: {', '.join(ROWS)}")
        for what, wrong in (
            ("--records must be at least 100", self.records < 100),
            ("--rounds must be at least 1", self.rounds < 1),
            ("--size must be at least 1", self.size < 1),
            ("--partitions must be at least 1", self.partitions < 1),
            (
                "bench spark needs /proc, which is Linux's",
                not Path("/proc/self/stat").exists(),
            ),
        ):
            if wrong:
                raise KafkaConfigurationError(what)
        if self.kafka_jars is not None and not self.jars():
            raise KafkaConfigurationError(
                f"--spark-kafka-jars {self.kafka_jars} names no jar of Spark's kafka source; {JARS_SENTENCE}"
            )

    def jars(self) -> list[str]:
        """The jars of Spark's own source; empty if it is not among them."""
        if self.kafka_jars is None:
            return []
        parts = self.kafka_jars.split(os.pathsep)
        found = sorted({path for part in parts for path in glob.glob(part) if path.endswith(".jar")})
        has_source = any(Path(path).name.startswith("spark-sql-kafka") for path in found)
        return found if has_source else []

    def to_dict(self) -> dict[str, object]:
        """For the result; without places of this machine."""
        names = ("rows", "records", "size", "partitions", "codec", "rounds", "cores", "memory_bytes")
        return {name: getattr(self, name) for name in names} | {"bootstrap": self.bootstrap}
