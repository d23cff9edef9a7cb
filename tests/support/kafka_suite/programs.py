"""The test classes of Apache Kafka, and the command that runs one of them."""

from __future__ import annotations

import functools
import zipfile
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
#: A test class that contains one of these names obtains a cluster from a class that we replace.
SEAMS = (
    b"org/apache/kafka/common/test/ClusterInstance",
    b"org/apache/kafka/common/test/KafkaClusterTestKit",
    b"org/apache/kafka/streams/integration/utils/EmbeddedKafkaCluster",
)


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
            path = f"{folder / part}:{path}"

    return filled("java", digest([SUITE_POM, *(each for part in PARTS for each in sources[part])]), fill)


def suite_command(
    test: str, results: Path, log: Path, limit_s: int, *, python: str, is_control: bool
) -> list[str]:
    """Return the command that runs a test.

    Parameters
    ----------
    test:
        A class, or a class and a method: ``org.apache.kafka.clients.consumer.ConsumerBounceTest#testClose``.
    results:
        File for the results, a JSON object per line.
    log:
        File for the log of the embedded clusters.
    limit_s:
        Seconds that a test may take unless it sets its own limit.
    python:
        The Python program that runs the embedded clusters.
    is_control:
        Whether to use Kafka's own brokers instead.
    """
    parts = ["runner"] if is_control else ["cluster", "runner"]
    path = ":".join([*(str(compiled_parts() / part) for part in parts), f"{suite_jars()}/*"])
    properties = [
        f"-Dkafkacore.python={python}",
        f"-Dkafkacore.log={log}",
        f"-Dlog4j2.configurationFile={LOG4J}",
    ]
    return [
        *(find_program("java"), *SHORT_LIVED, "-Xmx2g", *properties, "-cp", path),
        *("kafkacore.suite.SuiteRunner", str(results), str(limit_s), test),
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
            for name in jar.namelist():
                is_test = name.endswith("Test.class") and "$" not in name
                if is_test and any(seam in jar.read(name) for seam in SEAMS):
                    found[name.removesuffix(".class").replace("/", ".")] = artifact
    return found
