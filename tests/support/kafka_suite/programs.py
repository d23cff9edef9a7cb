"""The test classes of Apache Kafka, and the command that runs one of them."""

from __future__ import annotations

import functools
import shutil
import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path

from eventually import BUDGET_S
from peers.jars import LOG4J, PROJECT, SHORT_LIVED, SUITE_POM, digest, filled, find_program, run, suite_jars

HERE = Path(__file__).resolve().parent
#: Our classes that take the place of Kafka's, compiled after the runner that they use.
PARTS = ("runner", "cluster")
KAFKA_VERSION = "4.3.1"
#: The jars with tests, by artifact.
TEST_JARS = (
    "kafka-clients-integration-tests",
    "kafka-streams-integration-tests",
    "kafka-tools",
    "kafka_2.13",
)
#: The classes that we replace. A test class that contains one of these names obtains its cluster from it, and
#: so do its subclasses.
SEAMS = (
    b"kafka/server/QuorumTestHarness",
    b"org/apache/kafka/common/test/ClusterInstance",
    b"org/apache/kafka/common/test/KafkaClusterTestKit",
    b"org/apache/kafka/streams/integration/utils/EmbeddedKafkaCluster",
)

#: Files that are not copied to the compiled classes.
JAVA_FILES = shutil.ignore_patterns("*.java")
#: Tags of constants in a class file.
UTF8, CLASS = 1, 7


@functools.cache
def compiled_parts() -> Path:
    """Return the folder with a folder of Java classes for each of ``PARTS``."""
    sources = {part: sorted((HERE / "java" / part).glob("*.java")) for part in PARTS}

    def fill(folder: Path) -> None:
        path = f"{suite_jars()}/*"
        for part in PARTS:
            options = ["-encoding", "UTF-8", "-Xlint:all,-processing,-path", "-cp", path]
            command = [find_program("javac"), *options, "-d", str(folder / part), *map(str, sources[part])]
            run(command, timeout_s=5 * BUDGET_S)
            shutil.copytree(HERE / "java" / part, folder / part, ignore=JAVA_FILES, dirs_exist_ok=True)
            path = f"{folder / part}:{path}"

    return filled("java", digest([SUITE_POM, *(each for part in PARTS for each in sources[part])]), fill)


def suite_command(
    tests: Iterable[str],
    results: Path,
    log: Path,
    limit_s: int,
    *,
    python: str,
    left_out: str,
    left_out_invocations: str,
    is_control: bool,
) -> list[str]:
    """Return the command that runs tests in one JVM.

    Parameters
    ----------
    tests:
        Classes, or a class and a method: ``org.apache.kafka.clients.consumer.ConsumerBounceTest#testClose``.
    results:
        File for the results, a JSON object per line.
    log:
        File for the log of the embedded clusters.
    limit_s:
        Seconds that a test may take unless it sets its own limit.
    python:
        The Python program that runs the embedded clusters.
    left_out:
        Regular expression for ``class#method`` of the tests that are not run.
    left_out_invocations:
        Regular expression for a part of the display name of invocations that are not run.
    is_control:
        Whether to use Kafka's own brokers instead.
    """
    parts = ["runner"] if is_control else ["cluster", "runner"]
    path = ":".join([*(str(compiled_parts() / part) for part in parts), f"{suite_jars()}/*"])
    properties = [
        f"-Dkafkacore.python={python}",
        f"-Dkafkacore.leftOut={left_out}",
        f"-Dkafkacore.leftOutInvocations={left_out_invocations}",
        f"-Dkafkacore.log={log}",
        f"-Dlog4j2.configurationFile={LOG4J}",
        # Kafka's MiniKdc resets the Kerberos configuration of the JVM, as Kafka's build allows it to.
        "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    ]
    return [
        *(find_program("java"), *SHORT_LIVED, "-Xmx2g", *properties, "-cp", path),
        *("kafkacore.suite.SuiteRunner", str(results), str(limit_s), *tests),
    ]


def suite_environment() -> dict[str, str]:
    """Return the variables with which the embedded clusters' Python finds kafkacore."""
    return {"PYTHONPATH": f"{PROJECT / 'src'}:{PROJECT / 'tests' / 'support'}"}


@functools.cache
def test_classes() -> dict[str, str]:
    """Return the artifact of each test class that obtains a cluster from a class that we replace."""
    found: dict[str, str] = {}
    for artifact in TEST_JARS:
        with zipfile.ZipFile(suite_jars() / f"{artifact}-{KAFKA_VERSION}-test.jar") as jar:
            codes = {
                name.removesuffix(".class"): jar.read(name)
                for name in jar.namelist()
                if name.endswith(".class") and may_have_tests(name.removesuffix(".class"))
            }
        users = {name for name, code in codes.items() if any(seam in code for seam in SEAMS)}
        base_classes = {name: base_class(code) for name, code in codes.items()}
        for name in codes:
            line = [name]
            while (base := base_classes.get(line[-1])) is not None:
                line.append(base)
            if name.endswith("Test") and users & set(line):
                found[name.replace("/", ".")] = artifact
    return found


def may_have_tests(name: str) -> bool:
    """Return whether a class can be a test class or the base class of one.

    Of the nested classes, only static ones whose name ends with ``Test`` are. They repeat the tests of their
    base class with other settings, and JUnit does not run them together with the class that encloses them.
    """
    return "$" not in name or name.endswith("Test")


def base_class(code: bytes) -> str:
    """Return the name of the base class in a class file (The Java Virtual Machine Specification, 4.1)."""
    sizes = {
        3: 4,
        4: 4,
        5: 8,
        6: 8,
        7: 2,
        8: 2,
        9: 4,
        10: 4,
        11: 4,
        12: 4,
        15: 3,
        16: 2,
        17: 4,
        18: 4,
        19: 2,
        20: 2,
    }
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    (count,) = struct.unpack_from(">H", code, 8)
    at, index = 10, 1
    while index < count:
        tag = code[at]
        if tag == UTF8:
            (size,) = struct.unpack_from(">H", code, at + 1)
            texts[index] = code[at + 3 : at + 3 + size].decode(errors="replace")
            at += 3 + size
        else:
            if tag == CLASS:
                (classes[index],) = struct.unpack_from(">H", code, at + 1)
            at += 1 + sizes[tag]
        # A long or a double takes two places.
        index += 2 if tag in (5, 6) else 1
    (base,) = struct.unpack_from(">H", code, at + 4)
    return texts[classes[base]]
