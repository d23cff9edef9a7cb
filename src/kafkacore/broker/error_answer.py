"""The error of a response: Kafka's code and a sentence for an exception.

Does not know: requests, where the exception came from.
"""

from __future__ import annotations

import logging

from kafkacore.broker.storage.disk import DISK_FULL
from kafkacore.errors import BrokerResponseError, KafkaStorageError, UnknownError

logger = logging.getLogger(__name__)

#: A name in it may be as long as a field can be, and then the sentence would not fit the answer's.
MAX_MESSAGE_LENGTH = 1000


def error_code(error: Exception) -> int:
    """Return the code of ``error``. An unexpected exception is logged with its traceback."""
    if isinstance(error, BrokerResponseError):
        return error.errno
    if isinstance(error, OSError):
        logger.error("storage failed: %s", error)
        return KafkaStorageError.errno
    logger.error("unexpected error while handling a request", exc_info=error)
    return UnknownError.errno


def error_message(error: Exception) -> str:
    """The sentence for the client: the error's own, else the name of its code. Nothing of our inside."""
    if isinstance(error, BrokerResponseError):
        text = str(error.args[0]) if error.args and error.args[0] else error.message
        return text if len(text) <= MAX_MESSAGE_LENGTH else text[:MAX_MESSAGE_LENGTH] + "…"
    if isinstance(error, OSError):
        if error.errno in DISK_FULL:
            return "The broker's disk is full; make room on it and try again."
        return "The broker's disk refuses; its log says why."
    return UnknownError.message
