"""What the log says of denials: who may not do what to which resource, once in a while.

A denied question in; a line out, escaped, and a bounded number of lines: a client that is denied has no say
in how much of the disk the log takes. Does not know: who may do what. Kafka's is ``kafka.authorizer.logger``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from kafkacore.broker.log_lines import event
from kafkacore.clock import Clock
from kafkacore.structs import ACLOperation, ResourceType
from kafkacore.text import MAX_SHOWN, shown

if TYPE_CHECKING:
    from kafkacore.broker.requests._request import Request
    from kafkacore.broker.requests.authorization import Authorizer

#: Of its own, so that it can be sent elsewhere or silenced.
logger = logging.getLogger("kafkacore.broker.authorizer")

#: So many lines in so long, each denial once; the rest is counted.
MAX_LINES: Final = 20
WINDOW_MS: Final = 10_000.0

_Denial = tuple[str, str, ACLOperation, ResourceType, str]


class AuthorizerLog:
    """Used by the network thread alone."""

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
        """Say that the client of ``request`` may not do that, and by what; ``authorizer`` is asked for that
        only when there is a line for it.
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
            "denied: %s at %s asked by %s for %s on %s %s: %s",
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
            logger.info("%d more denials in %.0f s, which were the same or too many", self._left_out, seconds)
        self._began_ms, self._left_out = now_ms, 0
        self._said.clear()
