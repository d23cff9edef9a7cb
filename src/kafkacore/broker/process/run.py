"""The main function of a broker process: print the address and run until a signal arrives."""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.listeners.own_certificate import own_authority
from kafkacore.broker.listeners.startup_errors import BrokerStartError
from kafkacore.broker.log_lines import event
from kafkacore.broker.process.ready_line import ReadyLine
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.broker.storage.disk import replace_file
from kafkacore.errors import KafkaError
from kafkacore.logs import handlers_of, logger_of

logger = logger_of(__name__)

#: Exit statuses of :func:`run_broker`.
EXIT_CLEAN, EXIT_FAILED = 0, 1
#: The byte that signal handlers and the stopping network thread write to the wake-up pipe. It differs from
#: every signal number.
WAKE_UP = b"x"
#: Limit of open files if the hard limit is infinite, as on macOS, whose older versions reject an infinite
#: soft limit. The number is OPEN_MAX of its headers.
OPEN_MAX = 10_240
_SIGNALS = {int(each): each.name for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}


def ready_line(broker: KafkaBroker) -> str:
    """Return one line of JSON with the address of the broker, for the program that has started it."""
    ready: ReadyLine = {
        "event": "ready",
        "bootstrap_servers": broker.bootstrap_servers,
        "host": broker.config.client_host,
        "port": broker.port,
        "pid": os.getpid(),
        "data_dir": str(broker.config.data_dir),
        "cluster_id": broker.cluster_id,
        "listeners": broker.addresses(),
        "bound_ports": broker.bound_ports(),
    }
    if broker.status_url is not None:
        ready["status_url"] = broker.status_url
    authority = own_authority(broker.config)
    if authority is not None:
        ready["ssl_cafile"] = str(authority)
    return json.dumps(ready)


def run_broker(
    config: BrokerConfig,
    *,
    stop_on_stdin_eof: bool = False,
    on_ready: Callable[[KafkaBroker], None] | None = None,
    ready_file: Path | None = None,
    notes: Iterable[str] = (),
    is_ephemeral: bool = False,
    ends_process: bool = False,
) -> int:
    """Run a broker until SIGTERM, SIGINT or SIGHUP arrives or, optionally, standard input is closed.

    Call this from the main thread. A second signal has no effect while the broker stops. If SIGHUP is ignored
    (``nohup``), it stays ignored.

    Parameters
    ----------
    config:
        The configuration of the broker.
    stop_on_stdin_eof:
        Whether to stop when standard input is closed. Standard input is also closed when the parent process
        is killed.
    on_ready:
        Called when clients can connect. Default: a function that prints :func:`ready_line` to standard
        output.
    ready_file:
        File that contains :func:`ready_line` while clients can connect.
    notes:
        Sentences about the configuration that are written to the log.
    is_ephemeral:
        Whether to remove the data folder at the end.
    ends_process:
        Whether the process exits after this function. If so, signals are ignored once the broker has stopped.

    Returns
    -------
    int
        0 after a clean stop, or 1 if the broker could not start or failed. The reason is on standard error.
    """
    _raise_descriptor_limit()
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    broker = KafkaBroker(config, on_stopped=lambda: _wake_up(write_end))
    handlers = {
        number: signal.signal(number, lambda _number, _frame: _wake_up(write_end))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        if not (number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN)
    }
    # Python runs a signal handler only after select() has returned. Let the signal itself also write to the
    # pipe, so that select() returns.
    woken_before = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    try:
        for note in notes:
            logger.info("%s", note)
        try:
            broker.start()
            if ready_file is not None:
                _write_ready_file(ready_file, broker)
        except KafkaError as error:
            _log_failure(error)
            return EXIT_FAILED
        (on_ready or _print_ready_line)(broker)
        reason = _wait_for_end(read_end, watch_stdin=stop_on_stdin_eof)
        logger.info("stopping: %s", reason, extra=event("stopping", reason=reason))
        return EXIT_FAILED if broker.failure is not None else EXIT_CLEAN
    finally:
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
        broker.stop()
        if is_ephemeral:
            shutil.rmtree(config.data_dir, ignore_errors=True)
        for number, handler in handlers.items():
            signal.signal(number, signal.SIG_IGN if ends_process else handler)
        signal.set_wakeup_fd(woken_before)
        os.close(read_end)
        os.close(write_end)


def _log_failure(error: KafkaError) -> None:
    sentence = f"cannot start: {error.args[0] if error.args else error}"
    if any(True for _ in handlers_of("kafkacore")):
        logger.error("%s", sentence, extra=event("failed"))
    else:
        sys.stderr.write(f"kafkacore broker: {sentence}\n")


def _write_ready_file(path: Path, broker: KafkaBroker) -> None:
    """Write the ready file atomically, because another program waits for it. All users may read the file."""
    try:
        replace_file(path, f"{ready_line(broker)}\n".encode(), 0o644)
    except OSError as error:
        raise BrokerStartError(f"cannot write the ready file {path}: {error.strerror}") from error


def _raise_descriptor_limit() -> None:
    """Raise the limit of open files to the hard limit.

    A partition in use needs three open files, and a connection needs one.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = hard if hard != resource.RLIM_INFINITY else max(soft, OPEN_MAX)
    if soft != limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _print_ready_line(broker: KafkaBroker) -> None:
    sys.stdout.write(ready_line(broker) + "\n")
    sys.stdout.flush()


def _wake_up(write_end: int) -> None:
    try:
        os.write(write_end, WAKE_UP)
    except BlockingIOError:
        return  # The pipe is full of earlier wake-ups. A single wake-up is enough.


def _wait_for_end(read_end: int, *, watch_stdin: bool) -> str:
    """Wait until the broker should stop, and return the reason."""
    watched = [read_end]
    if watch_stdin:
        watched.append(sys.stdin.fileno())
    while True:
        readable, _, _ = select.select(watched, [], [])
        if read_end in readable:
            # Python writes the number of every signal to the pipe; only our handlers also write WAKE_UP.
            numbers = os.read(read_end, 4096)
            if WAKE_UP in numbers:
                return next(
                    (_SIGNALS[number] for number in numbers if number in _SIGNALS),
                    "the network thread stopped",
                )
        if watch_stdin and sys.stdin.fileno() in readable and not os.read(sys.stdin.fileno(), 4096):
            return "standard input was closed"
