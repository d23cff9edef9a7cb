"""Requests whose work takes long: another thread does it, and the network thread continues with the result.

The work is a generator, as for a change of topics. It runs on the network thread and yields functions that
the thread ``kafka-long-work`` calls, for one request after the other. A connection has one request in work,
so there are never more of them than connections, and ``queued.max.request.bytes`` counts their bytes.
"""

from __future__ import annotations

import logging
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

logger = logging.getLogger(__name__)


RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


class LongWorkServices(Protocol):
    """What a request whose work takes long needs of the broker."""

    @property
    def long_work(self) -> ChangeQueue:
        """Does on another thread what would keep the network thread for long."""


class LongOperation(DelayedOperation):
    """What a request waits in while another thread works for it; its deadline never comes."""

    def __init__(self) -> None:
        super().__init__(0)

    def can_complete(self) -> bool:
        return False

    def on_complete(self, expired: bool) -> None:
        """Do nothing: :func:`answer_after` answers."""


def answer_after(
    request: Request[RequestT], services: LongWorkServices, work: Change[ResponseT | AnsweredLater]
) -> AnsweredLater:
    """Answer ``request`` with what ``work`` returns, which may be ``ANSWERED_LATER`` again.

    If it raises, the connection is closed.
    """

    def on_done(outcome: ResponseT | AnsweredLater | Exception) -> None:
        if isinstance(outcome, Exception):
            if isinstance(outcome, CloseConnectionError):
                logger.warning("closing %s: %s", request.context.connection_id, ascii(str(outcome))[1:-1])
            else:
                logger.error(
                    "closing %s: a request of it could not be handled",
                    request.context.connection_id,
                    exc_info=outcome,
                )
            request.on_response(request, HANG_UP)
        elif not isinstance(outcome, AnsweredLater):
            request.respond(outcome)

    services.long_work.submit(work, on_done)
    return ANSWERED_LATER
