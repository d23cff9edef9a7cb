"""Logs authorization denials, like Kafka's ``kafka.authorizer.logger``.

The number of lines is limited, so that a client cannot fill the disk with denials.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.log_lines import event
from kafkacore.clock import Clock
from kafkacore.logs import logger_of
from kafkacore.text import MAX_SHOWN, shown

if TYPE_CHECKING:
    from kafkacore.broker.requests._request import Request
    from kafkacore.broker.requests.authorization import Authorizer

#: A separate logger, so that denials can be logged elsewhere or disabled.
logger = logger_of("kafkacore.broker.authorizer")

#: Maximum number of lines in each window of ``WINDOW_MS`` milliseconds. Within a window, each denial is
#: logged once, and repetitions are only counted.
MAX_LINES: Final = 20
WINDOW_MS: Final = 10_000.0

_Denial = tuple[str, str, ACLOperation, ResourceType, str]


class AuthorizerLog:
    """Log of authorization denials. Only the network thread may use it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ms = clock.monotonic_ms()
        self._said: set[_Denial] = set()
        self._left_out = 0

    def add(
        self,
        request: Request,
        authorizer: Authorizer,
        operation: ACLOperation,
        resource_type: ResourceType,
        name: str,
    ) -> None:
        """Log that the client of ``request`` may not perform an operation, unless the limit is reached.

        The line contains the reason that ``authorizer`` returns.
        """
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._began_ms >= WINDOW_MS:
            self._begin_window(now_ms)
        context = request.context
        principal, host = str(context.principal), context.host
        denial = (principal, host, operation, resource_type, name)
        if denial in self._said or len(self._said) >= MAX_LINES:
            self._left_out += 1
            return
        self._said.add(denial)
        api = f"API {request.api_key}" if request.stats is None else request.stats.name
        kind = resource_type.name.lower().replace("_", " ")
        rule = authorizer.why_denied(context, operation, resource_type, name)
        logger.info(
            "denied: %s at %s: %s requires %s on %s %s: %s",
            shown(principal),
            host,
            api,
            operation.name,
            kind,
            shown(name),
            rule,
            extra=event(
                "denied",
                principal=principal[:MAX_SHOWN],
                host=host,
                request=api,
                operation=operation.name,
                resource_type=resource_type.name,
                resource=name[:MAX_SHOWN],
                rule=rule,
            ),
        )

    def _begin_window(self, now_ms: float) -> None:
        if self._left_out:
            seconds = (now_ms - self._began_ms) / 1000
            logger.info("suppressed %d further authorization denials in %.0f s", self._left_out, seconds)
        self._began_ms, self._left_out = now_ms, 0
        self._said.clear()
