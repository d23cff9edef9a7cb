"""Apache Kafka's jars and the Java programs of these tests: fetched and compiled once, kept in ``.cache``.

In: ``pom.xml`` and ``*.java`` beside this module and in ``golden``. Out: a class path, and results of Java
programs. Does not know: how a broker is configured or started (``apache_kafka.py``).

Java reads the classes that a broker needs from an archive (``apache_kafka.py`` makes it), which halves the
CPU time of each start, of which a run of all tests has dozens.

A cache folder is named by a hash of what made it, filled under another name and renamed, so that a folder
that exists is complete; a file lock keeps two pytest processes from filling it at once.
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
#: Resolved, because an archive of classes is of no use to a class path with other names in it.
CACHE = (PROJECT / ".cache").resolve()
POM = HERE / "pom.xml"
SPARK_KAFKA_POM = HERE / "spark-kafka.pom.xml"
LOG4J = HERE / "log4j2.properties"
JAVA_SOURCES = (HERE / "java", HERE.parent / "golden")

#: Pinned, so that a new release of the plugin cannot change what a test run downloads.
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
CLASS_ARCHIVES = "classes"
#: Short-lived programs: start-up time matters, peak speed does not.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true")
#: What ``kafka-server-start`` gives a broker.
LIKE_A_SERVER = (
    "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
)  # fmt: skip


class JavaToolError(RuntimeError):
    """A Java program, Maven or javac failed or is missing; the message holds what it said."""


def find_program(name: str) -> str:
    """Path of ``java``, ``javac`` or ``mvn``: from JAVA_HOME if it is there, else from PATH.

    Raises MissingToolError where there is none.
    """
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / name).exists():
        return str(Path(home) / "bin" / name)
    return find_tool(name, package="maven" if name == "mvn" else "openjdk-17-jdk-headless")


def run(command: Iterable[str], *, timeout_s: float = 120, stdin: bytes | None = None) -> bytes:
    """Run a program to its end; its standard output. A failure raises JavaToolError with all it printed."""
    command = list(command)
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"") + (late.stderr or b"")
        raise JavaToolError(
            f"{_short(command)} did not end in {timeout_s} s:\n{output.decode(errors='replace')}"
        ) from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode(errors="replace")
        raise JavaToolError(f"{_short(command)} ended with status {done.returncode}:\n{said}")
    return done.stdout


def _short(command: list[str]) -> str:
    return " ".join(word if len(word) < 120 else word[:40] + "..." for word in command)


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def filled(kind: str, key: str, fill: Callable[[Path], None]) -> Path:
    """The folder ``.cache/<kind>/<key>``, made by ``fill(folder)`` if it is not there."""
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
    """Folder with the jars of Apache Kafka's broker, tools and clients; downloaded by Maven when missing."""
    return _fetched(POM, "Apache Kafka's jars by Maven, about 55 MB", "kafka-clients")


@functools.cache
def spark_kafka_jars() -> Path:
    """Folder with Spark's own ``kafka`` source and what it needs besides PySpark's jars."""
    return _fetched(SPARK_KAFKA_POM, "Spark's kafka source by Maven, about 10 MB", "spark-sql-kafka")


def _fetched(pom: Path, what: str, has: str) -> Path:
    def fill(folder: Path) -> None:
        sys.stderr.write(f"Fetching {what}, once ...\n")
        command = [find_program("mvn"), "-q", "-B", "-f", str(pom), COPY_DEPENDENCIES]
        run([*command, f"-DoutputDirectory={folder}"], timeout_s=10 * BUDGET_S)
        if not any(folder.glob(f"{has}-*.jar")):
            raise JavaToolError(f"Maven ended well, but put no {has} jar into {folder}")

    return filled("jars", _digest([pom]), fill)


def kafka_classpath() -> str:
    """Class path with everything of Apache Kafka that the tests run."""
    return f"{kafka_jars()}/*"


def kafka_clients_jar() -> Path:
    """The kafka-clients jar; the message definitions lie in it under ``common/message/*.json``."""
    (jar,) = kafka_jars().glob("kafka-clients-*.jar")
    return jar


def kafka_group_coordinator_jar() -> Path:
    """The kafka-group-coordinator jar, with the definitions of the records of ``__consumer_offsets``."""
    (jar,) = kafka_jars().glob("kafka-group-coordinator-[0-9]*.jar")
    return jar


def kafka_metadata_jar() -> Path:
    """The kafka-metadata jar, with the definitions of the records of ``__cluster_metadata``."""
    (jar,) = kafka_jars().glob("kafka-metadata-[0-9]*.jar")
    return jar


def class_archive_key() -> str:
    """Of an archive of classes: Java takes one of its own like alone, for the same jars in the same place."""
    java = Path(find_program("java")).resolve()
    made_by = f"{java}:{java.stat().st_mtime_ns}:{kafka_classpath()}"
    return hashlib.sha256(made_by.encode()).hexdigest()[:16]


@functools.cache
def class_archive() -> Path:
    """The archive, which may not be there."""
    return CACHE / CLASS_ARCHIVES / class_archive_key() / "kafka.jsa"


@functools.cache
def compiled_programs() -> Path:
    """Folder with the classes of the Java programs of these tests; compiled when a source has changed."""
    sources = sorted(source for folder in JAVA_SOURCES for source in folder.glob("*.java"))

    def fill(folder: Path) -> None:
        options = ["-encoding", "UTF-8", "-Xlint:all,-processing,-path", "-cp", kafka_classpath()]
        run([find_program("javac"), *options, "-d", str(folder), *map(str, sources)], timeout_s=5 * BUDGET_S)

    return filled("java", _digest([POM, *sources]), fill)


def java_command(main_class: str, *args: str, jvm: Iterable[str] = SHORT_LIVED) -> list[str]:
    """Command line that runs a class of Apache Kafka or of our Java programs, logging warnings to stderr."""
    # Our programs have no package; Apache Kafka's own need none of them compiled. The archive is one of the
    # class path's beginning.
    classpath = kafka_classpath() if "." in main_class else f"{kafka_classpath()}:{compiled_programs()}"
    log = f"-Dlog4j2.configurationFile={LOG4J}"
    options = [*jvm, log]
    if set(SHORT_LIVED) <= set(options) and class_archive().exists():
        # One that does not fit is left alone, with a warning, which is not to be the program's answer.
        options += ["-Xlog:disable", "-Xlog:all=warning:stderr", f"-XX:SharedArchiveFile={class_archive()}"]
    return [find_program("java"), *options, "-cp", classpath, main_class, *args]


def run_java(main_class: str, *args: str, timeout_s: float = 120, stdin: bytes | None = None) -> bytes:
    """Run a class to its end; its standard output.

    ``kafka-topics`` is ``org.apache.kafka.tools.TopicCommand``, ``kafka-get-offsets`` is
    ``org.apache.kafka.tools.GetOffsetShell``, ``kafka-console-producer`` and ``-consumer`` are
    ``org.apache.kafka.tools.ConsoleProducer`` and ``org.apache.kafka.tools.consumer.ConsoleConsumer``,
    ``kafka-dump-log`` is ``org.apache.kafka.tools.DumpLogSegments``.
    """
    return run(java_command(main_class, *args), timeout_s=timeout_s, stdin=stdin)


if __name__ == "__main__":
    # `make test` fetches them before the tests, which have a time limit each, begin.
    try:
        kafka_jars()
        spark_kafka_jars()
    except JavaToolError as failure:
        sys.exit(str(failure))
    except MissingToolError as missing:
        # Without them the tests that need Java are left out, and the end of the run says so.
        sys.exit(f"missing: {missing}" if tools_are_required() else 0)
