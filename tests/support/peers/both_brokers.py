"""Kafka's tools run against Apache Kafka and against our broker, and held against each other.

A tool and its arguments in; what it printed of each out, and that it is the same. Does not know: what the
tools do.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from eventually import eventually
from peers.apache_kafka import ApacheKafka
from peers.java_tools import JavaTools, Printed

from kafkacore.testing.embedded_broker import EmbeddedBroker

#: What a tool is told that changes nothing.
ASKING = {"--describe", "--list"}
TOOLS = "org.apache.kafka.tools."
#: These take the broker's address before their action.
_ADDRESS_FIRST = (
    TOOLS + "TransactionsCommand",
    TOOLS + "FeatureCommand",
    TOOLS + "MetadataQuorumCommand",
)

#: What may differ: an id, where the data is, and a value that Apache Kafka writes down for all brokers as
#: it counts replicas (KIP-966).
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
    """What was printed of both, once ``told`` of it is the same; a change is made once.

    Apache Kafka's controller answers a change before its broker has heard of it.
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
        """What the tool printed of Apache Kafka and of ours."""
        return [self.run(servers, tool, *arguments) for servers in self.servers]

    def run(self, servers: str, tool: str, *arguments: str) -> Printed:
        address = ("--bootstrap-server", servers)
        words = (*address, *arguments) if tool in _ADDRESS_FIRST else (*arguments, *address)
        return self._tools.run(tool, *words)

    def same(self, tool: str, *arguments: str) -> list[str]:
        """The lines that it printed of both, which are the same."""

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
