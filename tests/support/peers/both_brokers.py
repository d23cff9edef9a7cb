"""Runs of Kafka's tools against Apache Kafka and our broker, whose output must be equal."""

from __future__ import annotations

import re
from collections.abc import Callable

from eventually import eventually
from peers.apache_kafka import ApacheKafka
from peers.java_tools import JavaTools, Printed

from kafkacore.testing.embedded_broker import EmbeddedBroker

#: Arguments of a tool that change nothing.
ASKING = {"--describe", "--list"}
TOOLS = "org.apache.kafka.tools."
#: Tools that take the broker's address before the action.
_ADDRESS_FIRST = (
    TOOLS + "TransactionsCommand",
    TOOLS + "FeatureCommand",
    TOOLS + "MetadataQuorumCommand",
)

#: Parts that may differ: an id, the data folder, and a value that Apache Kafka stores for all brokers when it
#: counts replicas (KIP-966).
_OWN = (
    (re.compile(r"TopicId: [\w-]{22}"), "TopicId: ..."),
    (re.compile(r"Cluster ID: [\w-]{22}"), "Cluster ID: ..."),
    (re.compile(r'"logDir":"[^"]*"'), '"logDir":"..."'),
    (re.compile(r"DYNAMIC_DEFAULT_BROKER_CONFIG:min\.insync\.replicas=1, "), ""),
    (re.compile(r"(?<=Configs: )min\.insync\.replicas=1,"), ""),
    (re.compile(r"\n  min\.insync\.replicas=1 sensitive=false synonyms=\{DYNAMIC_DEFAULT[^}]*\}"), ""),
)


def come_to_the_same(
    ask: Callable[[], list[Printed]], summary: Callable[[Printed], object], *, is_change: bool
) -> list[Printed]:
    """Return the outputs once ``summary`` of both is equal. A change is made only once.

    Apache Kafka's controller answers a change before its broker applies it.
    """
    printed: list[Printed] = ask()

    def is_same() -> bool:
        theirs, ours = printed
        return summary(ours) == summary(theirs)

    def ask_again() -> None:
        printed[:] = ask()

    if not is_change:
        eventually(is_same, lambda: list(map(summary, printed)), step=ask_again)
    return printed


class BothBrokers:
    """Runs each tool against both brokers."""

    def __init__(self, theirs: ApacheKafka, ours: EmbeddedBroker, tools: JavaTools) -> None:
        self.servers = (theirs.bootstrap_servers, ours.bootstrap_servers)
        self._tools = tools

    def both(self, tool: str, *arguments: str) -> list[Printed]:
        """Return the output of the tool for Apache Kafka and for our broker."""
        return [self.run(servers, tool, *arguments) for servers in self.servers]

    def run(self, servers: str, tool: str, *arguments: str) -> Printed:
        address = ("--bootstrap-server", servers)
        words = (*address, *arguments) if tool in _ADDRESS_FIRST else (*arguments, *address)
        return self._tools.run(tool, *words)

    def same(self, tool: str, *arguments: str) -> list[str]:
        """Return the output lines, which must be equal for both."""

        def comparable() -> list[Printed]:
            return [
                Printed(one.status, self._comparable(one.out, servers), one.err)
                for one, servers in zip(self.both(tool, *arguments), self.servers, strict=True)
            ]

        is_change = not ASKING & {*arguments}
        theirs, ours = come_to_the_same(comparable, lambda one: one[:2], is_change=is_change)
        assert ours[:2] == theirs[:2], f"{tool} {' '.join(arguments)}"
        return ours.out.splitlines()

    @staticmethod
    def _comparable(text: str, servers: str) -> str:
        text = text.replace(servers, "SERVERS").replace(servers.rpartition(":")[2], "PORT ")
        for pattern, replacement in _OWN:
            text = pattern.sub(replacement, text)
        return text
