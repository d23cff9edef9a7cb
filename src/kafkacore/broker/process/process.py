"""A broker in a child process that can be started, killed and restarted.

The child's standard input is a pipe, and only this process holds the other end. The child therefore stops
when this process exits for any reason.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.listeners import Listener, parse_endpoints
from kafkacore.broker.process.ready_line import ReadyLine
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.security import Secret

LOG_NAME = "broker.log"
LOG_TAIL_LINES = 30
START_TIMEOUT_MS = 60_000.0
STOP_TIMEOUT_SECONDS = 30.0


class BrokerProcessError(KafkaError):
    """The broker process did not start or stop as requested. The message contains the end of its log."""


class BrokerProcess:
    """The broker as a child process. Call :meth:`start` and :meth:`stop`, or use a ``with`` block.

    Parameters
    ----------
    data_dir:
        Folder of the broker's data and of its log file ``broker.log``.
    clock:
        Clock for the timeouts.
    config:
        Kafka's setting names with underscores, as for :meth:`BrokerConfig.from_properties`. ``port`` defaults
        to 0 (a free port).

    Raises
    ------
    KafkaConfigurationError
        The configuration is invalid.
    """

    def __init__(
        self, data_dir: str | os.PathLike[str], *, clock: Clock = SYSTEM_CLOCK, **config: object
    ) -> None:
        if not {"listen", "listeners"} & config.keys():
            config.setdefault("port", 0)
        self.config = BrokerConfig.from_properties({"data_dir": Path(data_dir), **config})
        self.data_dir = self.config.data_dir
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._parent = os.getpid()
        self._ready: ReadyLine | None = None

    # ---- Address --------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """Address of the broker as ``host:port``, for a client's configuration."""
        return self._announced()["bootstrap_servers"]

    def client_settings(self, user: str | None = None, listener: str | None = None) -> dict[str, Any]:
        """Return the settings with which a kafkacore client connects to this broker.

        For example, ``KafkaProducer(**broker.client_settings())``.

        Parameters
        ----------
        user:
            User to log in as, if the listener requires a login. Default: the first user in ``users``.
        listener:
            Name of the listener to connect to. Default: the first listener.

        Raises
        ------
        KafkaConfigurationError
            The user or the listener does not exist.
        """
        found = self._listener(listener)
        ready = self._announced()
        settings: dict[str, Any] = {"bootstrap_servers": ready["listeners"][found.name]}
        if found.protocol == "PLAINTEXT":
            return settings
        settings["security_protocol"] = found.protocol
        if found.has_tls and "ssl_cafile" in ready:
            settings["ssl_cafile"] = ready["ssl_cafile"]
        if found.has_sasl:
            name = user if user is not None else next(iter(self.config.users), None)
            if name is None or name not in self.config.users:
                raise KafkaConfigurationError(
                    f"the broker has no user {name}: create the broker with users={{name: password}}"
                )
            settings["sasl_mechanism"] = found.mechanisms[0]
            settings["sasl_plain_username"] = name
            settings["sasl_plain_password"] = self.config.users[name].text()
        return settings

    def _listener(self, name: str | None) -> Listener:
        listeners = self.config.node_listeners
        for listener in listeners:
            if name in (None, listener.name):
                return listener
        raise KafkaConfigurationError(
            f"the broker has no listener {name}; it has {', '.join(each.name for each in listeners)}"
        )

    @property
    def host(self) -> str:
        return self._announced()["host"]

    @property
    def port(self) -> int:
        return self._announced()["port"]

    @property
    def pid(self) -> int:
        return self._announced()["pid"]

    @property
    def cluster_id(self) -> str:
        return self._announced()["cluster_id"]

    @property
    def status_url(self) -> str:
        """URL of the status page; requires ``status_port`` 0 or higher."""
        return self._announced()["status_url"]

    @property
    def log_path(self) -> Path:
        return self.data_dir / LOG_NAME

    @property
    def is_running(self) -> bool:
        # Read the attribute once, because another thread may stop the broker.
        process = self._process
        return process is not None and process.poll() is None

    def _announced(self) -> ReadyLine:
        if self._ready is None:
            raise BrokerProcessError("the broker has not been started: call start()")
        return self._ready

    # ---- Start and stop -------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the broker and return when clients can connect.

        Raises
        ------
        BrokerProcessError
            The broker stopped, or was not ready within a minute.
        """
        assert not self.is_running, "started already"
        self.kill()  # If the last process has exited on its own, this closes its pipes.
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.log_path.open("ab") as log, _unnamed_file(self._secrets()) as secrets:
            # Start a new session, so that Ctrl-C reaches only this process, which then stops the broker in
            # the right order.
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module, no shell
                [*self._command(), *(["--config-file", f"/dev/fd/{secrets}"] if secrets is not None else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                pass_fds=() if secrets is None else (secrets,),
            )
        self._process, self._parent = process, os.getpid()
        try:
            self._ready = self._read_ready_line(process)
        except BaseException:
            self.kill()
            raise
        return self

    def _command(self) -> list[str]:
        config = self.config
        port = config.port if self._ready is None else self._ready["port"]
        host = f"[{config.host}]" if ":" in config.host else config.host
        # Without -P, a file in the current folder could replace a module of the standard library.
        command = [sys.executable, "-P", "-m", "kafkacore.broker", "--stop-on-stdin-eof"]
        command += ["--data-dir", str(self.data_dir), "--listen", f"{host}:{port}", "--flush", config.flush]
        for name, value in self._properties().items():
            if not isinstance(value, Secret):
                command += ["--config", f"{name}={value}"]
        return command

    def _properties(self) -> dict[str, Any]:
        """Return the configuration, with the ports of the previous start if the broker was started before."""
        given = self.config.properties()
        bound = {} if self._ready is None else self._ready["bound_ports"]
        if self.config.listeners and bound:
            endpoints = parse_endpoints("listeners", self.config.listeners)
            given["listeners"] = ",".join(str(each._replace(port=bound[each.name])) for each in endpoints)
        return given

    def _secrets(self) -> bytes:
        """Return the secrets as a properties file, because the command line is visible to other users."""
        lines = [
            f"{_escaped(name)}={_escaped(value.text())}\n"
            for name, value in self._properties().items()
            if isinstance(value, Secret)
        ]
        return "".join(lines).encode()

    def _read_ready_line(self, process: subprocess.Popen[bytes]) -> ReadyLine:
        assert process.stdout is not None
        descriptor, line = process.stdout.fileno(), b""
        deadline_ms = self._clock.monotonic_ms() + START_TIMEOUT_MS
        while not line.endswith(b"\n"):
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0 or not select.select([descriptor], [], [], left_ms / 1000.0)[0]:
                raise self._error(f"the broker was not ready within {START_TIMEOUT_MS / 1000:.0f} s")
            chunk = os.read(descriptor, 4096)
            if not chunk:
                raise self._error(f"the broker exited with status {process.wait()} before it was ready")
            line += chunk
        ready: ReadyLine = json.loads(line)
        return ready

    def kill(self) -> None:
        """Kill the broker with SIGKILL, like a crash, and wait for the process to exit."""
        process = self._take()
        if process is not None:
            process.kill()
            process.wait()
            _close_pipes(process)

    def stop(self, timeout: float = STOP_TIMEOUT_SECONDS) -> None:
        """Stop the broker cleanly with SIGTERM. Do nothing if the broker is not running.

        Parameters
        ----------
        timeout:
            Seconds to wait before the broker is killed.

        Raises
        ------
        BrokerProcessError
            The broker was killed after ``timeout``, or exited with a status other than 0.
        """
        process = self._take()
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(timeout)
        except BaseException as error:
            process.kill()
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise self._error(f"the broker did not stop within {timeout} s and was killed") from None
            raise
        finally:
            _close_pipes(process)
        if status != 0:
            raise self._error(f"the broker exited with status {status}")

    def _take(self) -> subprocess.Popen[bytes] | None:
        """Detach and return the broker process. Return ``None`` in a fork, which must not stop the broker."""
        process, self._process = self._process, None
        if process is not None and os.getpid() != self._parent:
            _close_pipes(process)
            return None
        return process

    def restart(self) -> Self:
        """Stop the broker if it is running, and start it with the same folder and ports."""
        if self.is_running:
            self.stop()
        return self.start()

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        """Return the last ``lines`` lines of the broker's log."""
        try:
            return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return ""

    def _error(self, what: str) -> BrokerProcessError:
        return BrokerProcessError(f"{what}\n--- the end of {self.log_path}:\n{self.log_tail()}")

    def __enter__(self) -> Self:
        return self if self._process is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()


@contextmanager
def _unnamed_file(content: bytes) -> Iterator[int | None]:
    """Yield the descriptor of an unnamed file with ``content``, or ``None`` if the content is empty."""
    if not content:
        yield None
        return
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file.fileno()


def _escaped(text: str) -> str:
    """Escape a name or value for a properties file."""
    return re.sub(r"([\\=: ])", r"\\\1", text).replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
