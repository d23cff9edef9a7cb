"""Apache Kafka's command-line tools on our broker, as an operator would run them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from eventually import BUDGET_S
from peers.jars import run_java
from peers.java_tools import JavaTools, started_java_tools

from kafkacore.testing.embedded_broker import EmbeddedBroker

TOPICS = "org.apache.kafka.tools.TopicCommand"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def tool(broker: EmbeddedBroker, name: str, *args: str, stdin: bytes | None = None) -> list[str]:
    """Run a tool against the broker, and return the lines that it printed."""
    output = run_java(
        name, "--bootstrap-server", broker.bootstrap_servers, *args, stdin=stdin, timeout_s=2 * BUDGET_S
    )
    return output.decode().splitlines()


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    """Start a JVM for tools that do not read standard input."""
    with started_java_tools() as running:
        yield running


def printed(tools: JavaTools, broker: EmbeddedBroker, name: str, *args: str) -> list[str]:
    """Run a tool in the JVM of ``tools``, and return the lines that it printed."""
    done = tools.run(name, "--bootstrap-server", broker.bootstrap_servers, *args)
    assert done.status == 0, done
    return done.out.splitlines()


def test_topics_tool_creates_lists_describes_and_deletes(
    our_broker: EmbeddedBroker, tools: JavaTools
) -> None:
    printed(tools, our_broker, TOPICS, "--create", "--topic", "tooled", "--partitions", "3")
    assert "tooled" in printed(tools, our_broker, TOPICS, "--list")
    described = printed(tools, our_broker, TOPICS, "--describe", "--topic", "tooled")
    assert "PartitionCount: 3" in described[0]
    assert [f"Partition: {number}" in line for number, line in enumerate(described[1:])] == [True] * 3
    printed(tools, our_broker, TOPICS, "--delete", "--topic", "tooled")
    assert "tooled" not in printed(tools, our_broker, TOPICS, "--list")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer_writes(our_broker: EmbeddedBroker, tools: JavaTools, codec: str) -> None:
    topic = f"console-{codec}"
    lines = b"".join(b"key %d\tvalue %d\n" % (number, number) for number in range(200))
    options = ["--reader-property", "parse.key=true", "--compression-codec", codec]
    tool(our_broker, CONSOLE_PRODUCER, "--topic", topic, *options, stdin=lines)
    assert printed(tools, our_broker, GET_OFFSETS, "--topic", topic) == [f"{topic}:0:200"]


def test_console_consumer_reads_what_the_console_producer_wrote(our_broker: EmbeddedBroker) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(100))
    tool(our_broker, CONSOLE_PRODUCER, "--topic", "console", stdin=lines)
    where = ["--topic", "console", "--partition", "0", "--offset", "earliest"]
    read = tool(our_broker, CONSOLE_CONSUMER, *where, "--max-messages", "100", "--timeout-ms", "20000")
    assert read == lines.decode().splitlines()


def test_offsets_tool_sees_first_last_and_newest(our_broker: EmbeddedBroker, tools: JavaTools) -> None:
    tool(our_broker, CONSOLE_PRODUCER, "--topic", "offsets", stdin=b"only one\n")
    wanted = {"earliest": 0, "latest": 1, "max-timestamp": 0}
    for name, offset in wanted.items():
        assert printed(tools, our_broker, GET_OFFSETS, "--topic", "offsets", "--time", name) == [
            f"offsets:0:{offset}"
        ]
