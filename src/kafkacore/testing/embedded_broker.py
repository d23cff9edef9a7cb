"""A broker process for a test, with a temporary data folder."""

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
    """A broker that runs as a child process: ``with EmbeddedBroker(num_partitions=6) as broker: …``.

    Parameters
    ----------
    data_dir:
        Folder of the broker's data and log. ``None`` creates a temporary folder, which :meth:`close` and the
        end of the ``with`` block remove. :meth:`stop`, :meth:`kill` and :meth:`restart` keep the folder.
    clock:
        Clock for the time-outs of starting and stopping.
    config:
        Properties of the broker, by Kafka's names with underscores: ``num_partitions``,
        ``log_segment_bytes``, ``flush``. ``security_protocol="SASL_SSL", users={"alice": "secret"}`` starts a
        broker with TLS and passwords; :meth:`client_settings` returns the settings that clients need.
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

    def __repr__(self) -> str:
        state = "running" if self.is_running else "not running"
        return f"<{type(self).__name__} {state} data_dir={str(self.data_dir)!r}>"

    # ---- Addresses and state --------------------------------------------------------------------------

    @property
    def config(self) -> BrokerConfig:
        """The checked configuration."""
        return self._process.config

    @property
    def data_dir(self) -> Path:
        """Folder of the data and the log."""
        return self._process.data_dir

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of the broker, for the clients' ``bootstrap_servers``."""
        return self._process.bootstrap_servers

    def client_settings(self, user: str | None = None, listener: str | None = None) -> dict[str, Any]:
        """Return the settings that a kafkacore client needs: ``KafkaProducer(**broker.client_settings())``.

        Parameters
        ----------
        user:
            The user to log in as, one of ``users``. Defaults to the first user.
        listener:
            The name of the listener to connect to. Defaults to the first listener.

        Raises
        ------
        KafkaConfigurationError
            If the user or the listener does not exist.
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
        """URL of the status page, if ``status_port`` is set."""
        return self._process.status_url

    @property
    def log_path(self) -> Path:
        return self._process.log_path

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        """Return the last ``lines`` lines of the broker's log."""
        return self._process.log_tail(lines)

    # ---- Start and stop -------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the broker, and return when clients can connect.

        Raises
        ------
        BrokerProcessError
            If the process exits, or is not ready within a minute.
        """
        self._process.start()
        return self

    def stop(self, timeout: float = STOP_TIMEOUT_SECONDS) -> None:
        """Stop the broker cleanly with SIGTERM. A broker that is not running stays stopped.

        Parameters
        ----------
        timeout:
            Seconds after which the process is killed.

        Raises
        ------
        BrokerProcessError
            If the process had to be killed, or exited with a status other than 0.
        """
        self._process.stop(timeout)

    def kill(self) -> None:
        """Kill the process with SIGKILL, and return when it has exited."""
        self._process.kill()

    def restart(self) -> Self:
        """Stop the broker if it is running, and start it on the same folder and port."""
        self._process.restart()
        return self

    def close(self) -> None:
        """Stop the broker, and remove a temporary folder. Further calls do nothing."""
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
