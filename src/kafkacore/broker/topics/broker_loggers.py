"""Levels of the loggers of this process, changed by requests about broker loggers (KIP-412).

The behaviour is that of Kafka's ``RuntimeLoggerManager``. As in Kafka, levels are not stored. Only
kafkacore's loggers can be changed, because a broker may run inside another program.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from kafkacore.broker.topics.config_changes import Change, Operation
from kafkacore.errors import InvalidConfigurationError, InvalidRequestError
from kafkacore.logs import logger_of
from kafkacore.structs import printable

logger = logger_of(__name__)

#: Kafka's name of the root logger. Here it stands for the logger ``kafkacore``, whose level applies to all
#: loggers without a level of their own.
ROOT: Final = "root"
_OURS: Final = "kafkacore"
_TRACE: Final = 5
#: Python's levels by Kafka's names, highest first.
LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": _TRACE,
}


class BrokerLoggers:
    """Changes the levels of kafkacore's loggers. Only the network thread may use it, except :meth:`close`."""

    def __init__(self) -> None:
        #: Former level and new level of each changed logger, by the logger's name.
        self._changed: dict[str, tuple[int, int]] = {}

    def levels(self) -> dict[str, str]:
        """Return the level that applies to each logger, by the logger's name."""
        names = [ROOT, *sorted(name for name in _names() if name != _OURS)]
        return {name: _name_of(_logger(name).getEffectiveLevel()) for name in names}

    def alter(self, resource: str, node_id: int, changes: Sequence[Change], *, validate_only: bool) -> None:
        """Set and unset levels of loggers.

        Parameters
        ----------
        resource:
            Name of the resource, which must be ``node_id``.
        node_id:
            The node that received the request.
        changes:
            The changes, each with the name of a logger, an operation and a level.
        validate_only:
            Whether to check the changes without making them.

        Raises
        ------
        InvalidRequestError, InvalidConfigurationError
            A change is invalid, as in Kafka. Nothing has changed.
        """
        check_node(resource, node_id)
        for change in changes:
            _check(change)
        if validate_only:
            return
        for change in changes:
            level = logging.NOTSET
            if change.operation == Operation.SET:
                assert change.value is not None, "checked before"
                level = LEVELS[change.value]
            self._set(_logger(change.name), level)
            logger.warning("changed the level of logger %s to %s", printable(change.name), change.value)

    def _set(self, changed: logging.Logger, level: int) -> None:
        former, _ = self._changed.get(changed.name, (changed.level, 0))
        self._changed[changed.name] = (former, level)
        changed.setLevel(level)

    def close(self) -> None:
        """Restore the former levels, because the process may continue after the broker has stopped."""
        for name, (former, level) in self._changed.items():
            changed = logging.getLogger(name)
            # If the program has set another level in the meantime, keep that level.
            if changed.level == level:
                changed.setLevel(former)
        self._changed.clear()


def check_node(resource: str, node_id: int) -> None:
    """Check that the name of a resource is that of the node that received the request.

    Raises
    ------
    InvalidRequestError
        The name is not a number, or is that of another node.
    """
    try:
        named = int(resource)
    except ValueError:
        raise InvalidRequestError(f"Node id must be an integer, but it is: {resource}") from None
    if named != node_id:
        raise InvalidRequestError(f"Unexpected node id. Expected {node_id}, but received {resource}")


def _names() -> set[str]:
    return {
        name
        for name, found in dict(logging.root.manager.loggerDict).items()
        if isinstance(found, logging.Logger) and (name == _OURS or name.startswith(f"{_OURS}."))
    }


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(_OURS if name == ROOT else name)


def _name_of(level: int) -> str:
    return next((name for name, least in LEVELS.items() if level >= least), "TRACE")


def _check(change: Change) -> None:
    if change.operation in (Operation.APPEND, Operation.SUBTRACT):
        verb = Operation(change.operation).name
        raise InvalidRequestError(f"{verb} operation is not allowed for the BROKER_LOGGER resource")
    if change.operation not in (Operation.SET, Operation.DELETE):
        raise InvalidRequestError(f"Unknown operation {change.operation} for {change.name}")
    if change.name != ROOT and change.name not in _names():
        raise InvalidConfigurationError(f"Logger {change.name} does not exist!")
    if change.operation == Operation.DELETE:
        if change.name == ROOT:
            raise InvalidRequestError(f"Removing the log level of the {ROOT} logger is not allowed")
    elif change.value not in LEVELS:
        raise InvalidConfigurationError(
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level."
            f" Valid log levels are {', '.join(sorted(LEVELS))}"
        )
