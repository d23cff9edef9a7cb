"""Common code of producer and consumer interceptors (KIP-42)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logging import Logger


class Interceptors:
    """The interceptors of a client, in the order in which they are called.

    Parameters
    ----------
    interceptors:
        Objects with ``close()`` and the methods that the client calls.
    log:
        Logger for exceptions of the interceptors.
    """

    def __init__(self, interceptors: Iterable[Any], log: Logger) -> None:
        self._interceptors = tuple(interceptors)
        self._log = log

    def close(self) -> None:
        """Close all interceptors. An exception is logged, and the remaining interceptors are still closed."""
        log = self._log
        for interceptor in self._interceptors:
            try:
                interceptor.close()
            except Exception:
                log.exception("interceptor %r failed to close", interceptor)
