"""Show kafkacore's warnings in the logs of a Spark program that does not configure Python's logging.

Spark collects what its drivers and Python workers write to standard error. Without this module, the
NullHandler of the package would hide warnings, for example about data loss.
"""

from __future__ import annotations

import logging


class StderrHandler(logging.Handler):
    """Handler that writes warnings and errors to standard error, unless another handler handles them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        if logging.lastResort is not None and not self._is_handled(record):
            logging.lastResort.handle(record)

    def _is_handled(self, record: logging.LogRecord) -> bool:
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any(
                each is not self and not isinstance(each, logging.NullHandler) for each in logger.handlers
            ):
                return True
            logger = logger.parent if logger.propagate else None
        return False


def log_to_stderr() -> None:
    """Add a :class:`StderrHandler` to kafkacore's logger, unless it already has one."""
    logger = logging.getLogger("kafkacore")
    if not any(isinstance(each, StderrHandler) for each in logger.handlers):
        logger.addHandler(StderrHandler())
