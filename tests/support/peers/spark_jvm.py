"""JVM options of the Spark that tests start.

Spark's JVM loads its classes from a class data archive. This halves the CPU time of a session with a few
queries, and a run of all tests starts dozens of JVMs.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
import tempfile
from pathlib import Path

import pyspark
from eventually import BUDGET_S
from missing_tools import MissingToolError
from peers.jars import ARCHIVE_LOGGING, CACHE, CLASS_ARCHIVES, filled, find_program

from kafkacore.spark import session
from kafkacore.spark.session import SHORT_LIVED_JVM
from kafkacore.testing import EmbeddedBroker

ARCHIVE = "spark.jsa"
#: Time budgets for the exit of the JVM that writes the archive.
BUDGETS = 10


@functools.cache
def _key() -> str:
    """Return the key of the archive, which is valid for one Java and one PySpark."""
    java = Path(find_program("java")).resolve()
    jars = (Path(pyspark.__file__).parent / "jars").glob("*.jar")
    made_by = [f"{file}:{file.stat().st_mtime_ns}" for file in (java, *sorted(jars))]
    return hashlib.sha256("\n".join(made_by).encode()).hexdigest()[:16]


def spark_jvm_options() -> str:
    """Return options for ``SPARK_SUBMIT_OPTS`` or ``spark.driver.extraJavaOptions``."""
    try:
        archive = CACHE / CLASS_ARCHIVES / _key() / ARCHIVE
    except MissingToolError:
        # A command that is started with these options may need no Java.
        return SHORT_LIVED_JVM
    if not archive.exists():
        return SHORT_LIVED_JVM
    return " ".join([SHORT_LIVED_JVM, *ARCHIVE_LOGGING, f"-XX:SharedArchiveFile={archive}"])


def archive_classes() -> None:
    """Create the archive if it does not exist; Spark's JVM writes it when it exits."""

    def fill(folder: Path) -> None:
        sys.stderr.write("Archiving the classes of Spark, once ...\n")
        _run_spark(folder / ARCHIVE)

    filled(CLASS_ARCHIVES, _key(), fill)


def _run_spark(archive: Path) -> None:
    """Run queries of the kinds that tests run, in a JVM that writes the archive."""
    session.STOP_TIMEOUT_S = BUDGETS * BUDGET_S
    configs = {"spark.driver.extraJavaOptions": f"{SHORT_LIVED_JVM} -XX:ArchiveClassesAtExit={archive}"}
    with (
        tempfile.TemporaryDirectory(prefix="spark-") as scratch,
        EmbeddedBroker() as broker,
        session.spark_session("archive", Path(scratch), Path(scratch) / "log", configs=configs) as spark,
    ):
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers}
        rows = spark.range(100).selectExpr("CAST(id % 3 AS STRING) AS key", "CAST(id AS STRING) AS value")
        rows.write.format("kafkacore").options(**options, topic="rows").mode("append").save()
        table = spark.read.format("kafkacore").options(**options, subscribe="rows").load()
        table.groupBy("key").count().orderBy("key").toArrow()
        table.mapInArrow(lambda batches: batches, table.schema).collect()
        stream = spark.readStream.format("kafkacore").options(**options, subscribe="rows")
        stream = stream.option("startingOffsets", "earliest").load()
        writer = stream.writeStream.option("checkpointLocation", f"{scratch}/checkpoint")
        query = writer.trigger(availableNow=True).start(f"{scratch}/copy", format="parquet")
        assert query.awaitTermination(BUDGETS * BUDGET_S)
        assert spark.read.parquet(f"{scratch}/copy").count() == 100


if __name__ == "__main__":
    # `make test` creates the archive before the tests begin, which have time limits. Without Java, they are
    # skipped.
    with contextlib.suppress(MissingToolError):
        archive_classes()
