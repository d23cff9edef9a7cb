"""The cluster that ``--kafka-bootstrap`` names, in place of the embedded broker."""

from __future__ import annotations

from typing import Any, Never


class ExistingCluster:
    """A running cluster, with those attributes of an :class:`EmbeddedBroker` that a client needs.

    Parameters
    ----------
    bootstrap_servers:
        Addresses of the brokers.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def __repr__(self) -> str:
        return f"<ExistingCluster {self.bootstrap_servers}>"

    def client_settings(self) -> dict[str, Any]:
        """Return the settings that a kafkacore client needs."""
        return {"bootstrap_servers": self.bootstrap_servers}

    def __getattr__(self, name: str) -> Never:
        raise AttributeError(
            f"kafka_broker.{name} needs the embedded broker, and --kafka-bootstrap names an existing cluster",
            name=name,
            obj=self,
        )
