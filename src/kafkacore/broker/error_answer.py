"""Kafka's error code and error message for an exception."""

from __future__ import annotations

from kafkacore.broker.storage.disk import DISK_FULL
from kafkacore.errors import BrokerResponseError, KafkaStorageError, UnknownError
from kafkacore.logs import logger_of

logger = logger_of(__name__)

#: Maximum characters of an error message. A message with a very long name would not fit into the field.
MAX_MESSAGE_LENGTH = 1000


def error_code(error: Exception) -> int:
    """Return the error code of an exception. An unexpected exception is logged with its traceback."""
    if isinstance(error, BrokerResponseError):
        return error.errno
    if isinstance(error, OSError):
        logger.error("storage error: %s", error)
        return KafkaStorageError.errno
    logger.error("unexpected error while handling a request", exc_info=error)
    return UnknownError.errno


def error_message(error: Exception) -> str:
    """Return the error message for the client, without internal details."""
    if isinstance(error, BrokerResponseError):
        text = str(error.args[0]) if error.args and error.args[0] else error.message
        return text if len(text) <= MAX_MESSAGE_LENGTH else text[:MAX_MESSAGE_LENGTH] + "…"
    if isinstance(error, OSError):
        if error.errno in DISK_FULL:
            return "The broker's disk is full. Free some space and try again."
        return "The broker's disk has failed. See the broker's log for the cause."
    return UnknownError.message
