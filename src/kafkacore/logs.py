"""The loggers of all modules.

Importing ``logging`` takes a tenth of the CPU time in which a new process creates a producer. As long as a
program has not imported it, no handler exists that could write a message, so these loggers do without it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from logging import Handler, Logger


def logger_of(name: str) -> Logger:
    """Return the logger of this name; it drops messages until the program has imported ``logging``."""
    return _logger(name) if "logging" in sys.modules else cast("Logger", _LateLogger(name))


def handlers_of(name: str) -> Iterator[Handler]:
    """Yield the handlers that get the messages of the logger of this name, without NullHandlers."""
    import logging

    logger: Logger | None = logging.getLogger(name)
    while logger is not None:
        yield from (each for each in logger.handlers if not isinstance(each, logging.NullHandler))
        logger = logger.parent if logger.propagate else None


class _LateLogger:
    """Becomes the logger of its name when the program has imported ``logging``."""

    _logger: Logger | None = None

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            # Python asks for special methods, for example to copy an object.
            raise AttributeError(attribute)
        if self._logger is None:
            if "logging" not in sys.modules:
                return _drop
            self._logger = _logger(self._name)
        return getattr(self._logger, attribute)


def _logger(name: str) -> Logger:
    # If another thread is importing it, this waits for the end.
    import logging

    ours = logging.getLogger("kafkacore")
    if not ours.handlers:
        # Without a handler, logging prints warnings to stderr, even in a program that does not use logging.
        ours.addHandler(logging.NullHandler())
    return logging.getLogger(name)


def _drop(*_: object, **__: object) -> None:
    """Accept a message that has no reader."""
