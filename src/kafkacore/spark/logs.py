"""Show kafkacore's warnings in the logs of a Spark program that does not configure Python's logging.

Spark collects what its drivers and Python workers write to standard error. Without this module, the
NullHandler of the package would hide warnings, for example about data loss.
"""

from __future__ import annotations

import logging

from kafkacore.logs import handlers_of


class StderrHandler(logging.Handler):
    """Handler that writes warnings and errors to standard error, unless another handler handles them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        is_handled = any(each is not self for each in handlers_of(record.name))
        if logging.lastResort is not None and not is_handled:
            logging.lastResort.handle(record)


def log_to_stderr() -> None:
    """Add a :class:`StderrHandler` to kafkacore's logger, unless it already has one."""
    logger = logging.getLogger("kafkacore")
    if not any(isinstance(each, StderrHandler) for each in logger.handlers):
        logger.addHandler(StderrHandler())
