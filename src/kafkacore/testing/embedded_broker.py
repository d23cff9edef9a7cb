"""A broker for a test: a process with a folder of its own, both gone when the block is left.

It holds a ``kafkacore.broker.process.process.BrokerProcess`` and the folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.process.process import LOG_TAIL_LINES, STOP_TIMEOUT_SECONDS, BrokerProcess
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.testing.own_certificate import secure
from kafkacore.testing.scratch_folder import ScratchFolder


class EmbeddedBroker:
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
            self._process = BrokerProcess(self._folder.path, clock=clock, **secure(config))
        except BaseException:
            self._folder.remove()
            raise

    # ---- Where it is ----------------------------------------------------------------------------------

    @property
    def config(self) -> BrokerConfig:
        """Its configuration, checked."""
        return self._process.config

    @property
    def data_dir(self) -> Path:
        """Folder of its data and its log."""
        return self._process.data_dir

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` for a client's configuration."""
        return self._process.bootstrap_servers

    def client_settings(self, user: str | None = None, listener: str | None = None) -> dict[str, Any]:
        """What a client of ours is to be given to connect: ``KafkaProducer(**broker.client_settings())``.

        Parameters
        ----------
        user:
            Who it logs in as, where it has to: one of ``users``, the first if not given.
        listener:
            The name of the listener that it comes by; the first if not given.

        Raises
        ------
        KafkaConfigurationError
            There is no such user or listener.
        """
        return self._process.client_settings(user, listener)

    @property
    def host(self) -> str:
        return self._process.host

    @property
    def port(self) -> int:
        return self._process.port

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def cluster_id(self) -> str:
        return self._process.cluster_id

    @property
    def status_url(self) -> str:
        """Where its status page is, with ``status_port`` 0 or more."""
        return self._process.status_url

    @property
    def log_path(self) -> Path:
        return self._process.log_path

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        """The last ``lines`` of the broker's log."""
        return self._process.log_tail(lines)

    # ---- Its life -------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start, and return once clients can connect.

        Raises
        ------
        BrokerProcessError
            It ended or did not get ready in a minute.
        """
        self._process.start()
        return self

    def stop(self, timeout: float = STOP_TIMEOUT_SECONDS) -> None:
        """SIGTERM: a clean stop. Nothing happens if it does not run.

        Parameters
        ----------
        timeout:
            Seconds after which it is killed.

        Raises
        ------
        BrokerProcessError
            It had to be killed after ``timeout``, or ended with a status other than 0.
        """
        self._process.stop(timeout)

    def kill(self) -> None:
        """SIGKILL: the crash of a broker. Returns when the process is gone."""
        self._process.kill()

    def restart(self) -> Self:
        """Stop, if it runs, and start on the same folder and port."""
        self._process.restart()
        return self

    def close(self) -> None:
        """Stop, if it runs, and remove the folder if it was ours to make. May be called again."""
        try:
            self.stop()
        finally:
            self._folder.remove()

    def __enter__(self) -> Self:
        self._process.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()
