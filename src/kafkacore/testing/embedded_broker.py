"""A broker for a test: a process with a folder of its own, both gone when the block is left.

Does not know: what the broker does. It is a
``kafkacore.broker.process.process.BrokerProcess`` with a temporary folder.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from kafkacore.broker.process.process import BrokerProcess
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.testing.own_certificate import secure
from kafkacore.testing.scratch_folder import ScratchFolder


class EmbeddedBroker(BrokerProcess):
    """A broker as a child process: ``with EmbeddedBroker(num_partitions=6) as broker: …``.

    Parameters
    ----------
    data_dir:
        Folder of the broker's data and log; ``None`` takes a temporary one, removed by :meth:`close`, which
        leaving the ``with`` block calls. :meth:`stop`, :meth:`kill` and :meth:`restart` keep it.
    clock:
        Measures the time-outs.
    config:
        Kafka's property names with underscores (``num_partitions``, ``log_segment_bytes``, ``flush`` …).
        ``security_protocol="SASL_SSL", users={"alice": "her password"}`` is a broker with TLS and passwords,
        and :meth:`client_settings` what its clients need.
    """

    def __init__(
        self, data_dir: str | os.PathLike[str] | None = None, *, clock: Clock = SYSTEM_CLOCK, **config: Any
    ) -> None:
        self._folder = ScratchFolder(data_dir, "kafkacore-broker-")
        try:
            super().__init__(self._folder.path, clock=clock, **secure(config))
        except BaseException:
            self._folder.remove()
            raise

    def close(self) -> None:
        """Stop, if it runs, and remove the folder if it was ours to make. May be called again."""
        try:
            self.stop()
        finally:
            self._folder.remove()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()
