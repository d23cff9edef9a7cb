"""Handles requests whose long-running work runs on a separate thread.

The work is a generator, like a change of topics. The generator runs on the network thread and yields
functions that the thread ``kafka-long-work`` runs, one request after the other. A connection has at most one
such request, and ``queued.max.request.bytes`` limits the total size of all these requests.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from kafkacore.broker.purgatory.change_queue import Change, ChangeQueue
from kafkacore.broker.purgatory.delayed_operation import DelayedOperation
from kafkacore.broker.requests._request import (
    ANSWERED_LATER,
    HANG_UP,
    AnsweredLater,
    CloseConnectionError,
    Request,
)
from kafkacore.logs import logger_of

logger = logger_of(__name__)


RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


class LongWorkServices(Protocol):
    """The parts of the broker that requests with long-running work use."""

    @property
    def long_work(self) -> ChangeQueue:
        """Queue of work that would block the network thread for too long."""


class LongOperation(DelayedOperation):
    """Operation of a request whose work runs on another thread. The operation never expires."""

    def __init__(self) -> None:
        super().__init__(0)

    def can_complete(self) -> bool:
        return False

    def on_complete(self, expired: bool) -> None:
        """Do nothing, because :func:`answer_after` sends the response."""


def answer_after(
    request: Request[RequestT], services: LongWorkServices, work: Change[ResponseT | AnsweredLater]
) -> AnsweredLater:
    """Run ``work``, and send its result as the response to ``request``.

    If ``work`` returns ``ANSWERED_LATER``, ``work`` sends the response itself. If ``work`` raises an
    exception, the connection is closed.
    """

    def on_done(outcome: ResponseT | AnsweredLater | Exception) -> None:
        if isinstance(outcome, Exception):
            if isinstance(outcome, CloseConnectionError):
                logger.warning("closing %s: %s", request.context.connection_id, ascii(str(outcome))[1:-1])
            else:
                logger.error(
                    "closing %s: unexpected error while handling a request",
                    request.context.connection_id,
                    exc_info=outcome,
                )
            request.on_response(request, HANG_UP)
        elif not isinstance(outcome, AnsweredLater):
            request.respond(outcome)

    services.long_work.submit(work, on_done)
    return ANSWERED_LATER
