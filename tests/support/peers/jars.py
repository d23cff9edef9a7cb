"""Apache Kafka's jars and the Java programs of the tests, downloaded and compiled once into ``.cache``.

Java loads the classes of a broker from a class data archive (``apache_kafka.py`` creates it). This halves the
CPU time of a start, and a run of all tests has dozens of starts.

A cache folder is named by a hash of its inputs. It is filled under a temporary name and then renamed, so that
an existing folder is always complete. A file lock prevents two pytest processes from filling it at the same
time.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from eventually import BUDGET_S
from missing_tools import MissingToolError, find_tool, tools_are_required

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[2]
#: Resolved, because a class data archive is only valid for the same class path.
CACHE = (PROJECT / ".cache").resolve()
POM = HERE / "pom.xml"
SPARK_KAFKA_POM = HERE / "spark-kafka.pom.xml"
SUITE_POM = HERE.parent / "kafka_suite" / "pom.xml"
LOG4J = HERE / "log4j2.properties"
JAVA_SOURCES = (HERE / "java", HERE.parent / "golden")

#: Pinned, so that a new release of the plugin does not change what a test run downloads.
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
CLASS_ARCHIVES = "classes"
#: Options for programs whose start-up time matters more than their peak speed.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true")
#: Options of ``kafka-server-start`` for a broker.
LIKE_A_SERVER = (
    "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
)  # fmt: skip


class JavaToolError(RuntimeError):
    """A Java program, Maven or javac failed or is missing. The message contains its output."""


def find_program(name: str) -> str:
    """Return the path of ``java``, ``javac`` or ``mvn``, from JAVA_HOME if it is there, else from PATH.

    Raises
    ------
    MissingToolError
        The program is not installed.
    """
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / name).exists():
        return str(Path(home) / "bin" / name)
    jdk = "openjdk-21-jdk-headless, or on Debian 12 openjdk-17-jdk-headless"
    return find_tool(name, package="maven" if name == "mvn" else jdk)


def run(command: Iterable[str], *, timeout_s: float = 120, stdin: bytes | None = None) -> bytes:
    """Run a program and return its standard output.

    Raises
    ------
    JavaToolError
        The program failed. The message contains all its output.
    """
    command = list(command)
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"") + (late.stderr or b"")
        raise JavaToolError(
            f"{_short(command)} did not exit within {timeout_s} s:\n{output.decode(errors='replace')}"
        ) from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode(errors="replace")
        raise JavaToolError(f"{_short(command)} exited with status {done.returncode}:\n{said}")
    return done.stdout


def _short(command: list[str]) -> str:
    return " ".join(word if len(word) < 120 else word[:40] + "..." for word in command)


def digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def filled(kind: str, key: str, fill: Callable[[Path], None]) -> Path:
    """Return the folder ``.cache/<kind>/<key>``, which ``fill(folder)`` creates if it does not exist."""
    target = CACHE / kind / key
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir():  # another process filled it while this one waited for the lock
            return target
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".filling-") as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            fill(made)
            made.rename(target)
    return target


@functools.cache
def kafka_jars() -> Path:
    """Return the folder with Apache Kafka's jars (broker, tools, clients), downloaded by Maven if missing."""
    return _fetched(POM, "Apache Kafka's jars by Maven, about 55 MB", "kafka-clients")


@functools.cache
def spark_kafka_jars() -> Path:
    """Return the folder with Spark's own ``kafka`` source and its dependencies besides PySpark's jars."""
    return _fetched(SPARK_KAFKA_POM, "Spark's kafka source by Maven, about 10 MB", "spark-sql-kafka")


@functools.cache
def suite_jars() -> Path:
    """Return the folder with Apache Kafka's own integration tests and everything that they need."""
    return _fetched(SUITE_POM, "Kafka's tests by Maven, about 110 MB", "kafka-clients-integration-tests")


def _fetched(pom: Path, what: str, has: str) -> Path:
    def fill(folder: Path) -> None:
        sys.stderr.write(f"Fetching {what}, once ...\n")
        command = [find_program("mvn"), "-q", "-B", "-f", str(pom), COPY_DEPENDENCIES]
        run([*command, f"-DoutputDirectory={folder}"], timeout_s=10 * BUDGET_S)
        if not any(folder.glob(f"{has}-*.jar")):
            raise JavaToolError(f"Maven succeeded, but there is not one {has} jar in {folder}")

    return filled("jars", digest([pom]), fill)


def kafka_classpath() -> str:
    """Return the class path with all parts of Apache Kafka that the tests run."""
    return f"{kafka_jars()}/*"


def kafka_clients_jar() -> Path:
    """Return the kafka-clients jar, which has the message definitions in ``common/message/*.json``."""
    (jar,) = kafka_jars().glob("kafka-clients-*.jar")
    return jar


def kafka_group_coordinator_jar() -> Path:
    """Return the kafka-group-coordinator jar, with the record definitions of ``__consumer_offsets``."""
    (jar,) = kafka_jars().glob("kafka-group-coordinator-[0-9]*.jar")
    return jar


def kafka_transaction_coordinator_jar() -> Path:
    """Return the kafka-transaction-coordinator jar, with the records of ``__transaction_state``."""
    (jar,) = kafka_jars().glob("kafka-transaction-coordinator-[0-9]*.jar")
    return jar


def kafka_metadata_jar() -> Path:
    """Return the kafka-metadata jar, with the record definitions of ``__cluster_metadata``."""
    (jar,) = kafka_jars().glob("kafka-metadata-[0-9]*.jar")
    return jar


def class_archive_key() -> str:
    """Return the key of a class data archive, which is valid for one Java and the same jars and paths."""
    java = Path(find_program("java")).resolve()
    made_by = f"{java}:{java.stat().st_mtime_ns}:{kafka_classpath()}"
    return hashlib.sha256(made_by.encode()).hexdigest()[:16]


@functools.cache
def class_archive() -> Path:
    """Return the path of the archive, which may not exist."""
    return CACHE / CLASS_ARCHIVES / class_archive_key() / "kafka.jsa"


@functools.cache
def compiled_programs() -> Path:
    """Return the folder with the tests' Java classes, compiled again when a source has changed."""
    sources = sorted(source for folder in JAVA_SOURCES for source in folder.glob("*.java"))

    def fill(folder: Path) -> None:
        options = ["-encoding", "UTF-8", "-Xlint:all,-processing,-path", "-cp", kafka_classpath()]
        run([find_program("javac"), *options, "-d", str(folder), *map(str, sources)], timeout_s=5 * BUDGET_S)

    return filled("java", digest([POM, *sources]), fill)


def java_command(main_class: str, *args: str, jvm: Iterable[str] = SHORT_LIVED) -> list[str]:
    """Return the command that runs a class of Apache Kafka or of our programs, with warnings on stderr."""
    # Our programs have no package; Apache Kafka's programs need none of them. The archive covers a prefix of
    # the class path.
    classpath = kafka_classpath() if "." in main_class else f"{kafka_classpath()}:{compiled_programs()}"
    log = f"-Dlog4j2.configurationFile={LOG4J}"
    options = [*jvm, log]
    if set(SHORT_LIVED) <= set(options) and class_archive().exists():
        # Java ignores an unsuitable archive with a warning, which must not be on standard output.
        options += ["-Xlog:disable", "-Xlog:all=warning:stderr", f"-XX:SharedArchiveFile={class_archive()}"]
    return [find_program("java"), *options, "-cp", classpath, main_class, *args]


def run_java(main_class: str, *args: str, timeout_s: float = 120, stdin: bytes | None = None) -> bytes:
    """Run a class to its end and return its standard output.

    ``kafka-topics`` is ``org.apache.kafka.tools.TopicCommand``, ``kafka-get-offsets`` is
    ``org.apache.kafka.tools.GetOffsetShell``, ``kafka-console-producer`` and ``-consumer`` are
    ``org.apache.kafka.tools.ConsoleProducer`` and ``org.apache.kafka.tools.consumer.ConsoleConsumer``,
    ``kafka-dump-log`` is ``org.apache.kafka.tools.DumpLogSegments``.
    """
    return run(java_command(main_class, *args), timeout_s=timeout_s, stdin=stdin)


if __name__ == "__main__":
    # `make test` downloads the jars before the tests, which have time limits, begin.
    try:
        kafka_jars()
        spark_kafka_jars()
        suite_jars()
    except JavaToolError as failure:
        sys.exit(str(failure))
    except MissingToolError as missing:
        # Without Java, the tests that need it are skipped, and the end of the run reports them.
        sys.exit(f"missing: {missing}" if tools_are_required() else 0)
