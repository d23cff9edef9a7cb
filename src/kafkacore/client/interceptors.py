"""What interceptors of producers and of consumers have in common: several in a row, none of which may hurt.

Does not know: records, offsets. (KIP-42.)
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any


class Interceptors:
    """All of a client's, one after the other.

    Parameters
    ----------
    interceptors:
        Objects with ``close()`` and what the client calls besides.
    log:
        Told what they raise.
    """

    def __init__(self, interceptors: Iterable[Any], log: logging.Logger) -> None:
        self._interceptors = tuple(interceptors)
        self._log = log

    def close(self) -> None:
        """The client has closed."""
        log = self._log
        for interceptor in self._interceptors:
            try:
                interceptor.close()
            except Exception:
                log.exception("interceptor %r failed to close", interceptor)
