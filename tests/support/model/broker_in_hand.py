"""A whole broker whose network thread is the test itself: requests are bytes, handled one step at a time.

``KafkaBroker`` assembles the parts, as for ``kafkacore broker``, so that parts added there are included here.
Unexpected errors and failed disks that the broker logs are kept for the test to check.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from model.blocking_clock import BlockingClock

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.broker.handlers.services import CloseConnectionError, Request, RequestContext
from kafkacore.broker.log import LogManager
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.broker.purgatory.change_queue import ChangeQueue
from kafkacore.errors import KafkaProtocolError
from kafkacore.protocol import decode_response, encode_request

CONTEXT_ID = "127.0.0.1:1-1"


class _KeptErrors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


class BrokerInHand(KafkaBroker):
    """A broker started and stopped by :func:`broker_in_hand`; :meth:`abandon` simulates a killed process.

    Parameters
    ----------
    background:
        Whether the log has its own threads. Without them, :meth:`flush` does their work.
    """

    #: Set by the start; no test reads it earlier.
    services: Any

    def __init__(self, config: BrokerConfig, *, background: bool = True, **parts: Any) -> None:
        super().__init__(config, **parts)
        self._background = background
        self.errors: list[str] = []
        #: Number of frames received, and of those after which the broker closed the connection.
        self.given = self.hung_up = 0
        self.context = RequestContext(CONTEXT_ID, config.node_id, "127.0.0.1")

    def start(self) -> None:
        log_manager = partial(LogManager, background=self._background)
        with patch("kafkacore.broker.process.server.LogManager", log_manager):
            super().start()
        # The caller itself does the work that another thread would do.
        self.services.topics.changes = ChangeQueue()
        self.services.metadata.changes = ChangeQueue()

    def abandon(self) -> None:
        """Release only the sockets and leave everything else, as if the process had been killed."""
        groups, self._group_services = self._group_services, None
        transactions, self._transaction_services = self._transaction_services, None
        for services in (groups, transactions):
            if services is not None:
                services.close()
        if self.server is not None:
            self.server.close()
        self._log_manager = None

    def flush(self) -> None:
        """Do the work of the log's threads, and one iteration of the network thread."""
        self.logs.flush_dirty()
        self.settle()

    def _run(self) -> None:
        """Return immediately: :meth:`settle` does the thread's work."""

    @property
    def server(self) -> Any:
        return self._server

    @property
    def logs(self) -> LogManager:
        assert self._log_manager is not None
        return self._log_manager

    def give(self, payload: bytes | bytearray) -> list[Any]:
        """Handle a frame. The response is added to the returned list, now or in a later :meth:`settle`.

        The list contains ``None`` for a request without a response, and "closed" if the broker closes the
        connection.
        """
        answers: list[Any] = []
        self.given += 1

        def on_response(_: Request, pieces: list[Any] | None) -> None:
            answers.append(None if pieces is None else b"".join(bytes(piece) for piece in pieces))

        try:
            self.server._apis.handle(self.context, memoryview(bytearray(payload)), on_response)
        except (KafkaProtocolError, CloseConnectionError):
            answers.append("closed")
            self.hung_up += 1
        return answers

    def settle(self) -> None:
        """Run one iteration of the network thread."""
        self.server.poll(0)

    def ask(self, message: Any, version: int | None = None) -> Any:
        """Return the response to a request that is answered immediately."""
        if version is None:
            version = next(h.max_version for h in HANDLERS if h.request_class is type(message))
        answers = self.give(frame_of(message, version))
        assert len(answers) == 1, "not answered immediately"
        return decode_response(answers[0], type(message), version)[1]


def frame_of(message: Any, version: int) -> bytes:
    """Return the encoded request without its size."""
    return b"".join(bytes(piece) for piece in encode_request(message, version, 7, "client"))


@contextmanager
def broker_in_hand(folder: Path, **config: Any) -> Iterator[BrokerInHand]:
    """Yield a broker on ``folder``. ``config`` is that of ``EmbeddedBroker``."""
    properties = {"data_dir": folder, "port": 0, **config}
    broker = BrokerInHand(BrokerConfig.from_properties(properties), clock=BlockingClock())
    kept = _KeptErrors()
    logger = logging.getLogger("kafkacore.broker")
    logger.addHandler(kept)
    broker.errors = kept.lines
    try:
        broker.start()
        yield broker
    finally:
        if broker.server is not None:
            broker.server.close()
        broker.stop()
        logger.removeHandler(kept)
