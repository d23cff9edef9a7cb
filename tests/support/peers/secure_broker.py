"""Our broker with the same secure listeners and properties as Apache Kafka in these tests."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peers.secure_listeners import PASSWORDS, SecureListeners

from kafkacore.testing.embedded_broker import EmbeddedBroker


class SecureBroker(EmbeddedBroker):
    """A broker with all of :class:`~integration.secure_listeners.SecureListeners` and extra ``config``."""

    def __init__(self, folder: Path, secure: SecureListeners | None = None, **config: Any) -> None:
        self.secure = secure or SecureListeners(folder)
        #: Returns the client's settings for a listener.
        self.settings = self.secure.settings
        users = {f"sasl.user.{name}": password for name, password in PASSWORDS.items()}
        at = {"listen": f"localhost:{self.secure.port_of('PLAINTEXT')}"}
        super().__init__(folder / "data", **{**self.secure.properties(), **users, **at, **config})


@contextlib.contextmanager
def started_secure_broker(**config: Any) -> Iterator[SecureBroker]:
    """Yield a broker whose data is deleted at the end of the block."""
    with (
        tempfile.TemporaryDirectory(prefix="secure-broker-") as folder,
        SecureBroker(
            Path(folder), log_retention_ms=-1, group_initial_rebalance_delay_ms=0, **config
        ) as broker,
    ):
        yield broker
