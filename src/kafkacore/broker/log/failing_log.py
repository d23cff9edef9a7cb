"""A log that may be closed or have lost its disk, and then refuses everything with a sentence.

Does not know: what a log does.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from kafkacore.broker.log.growing_log import GrowingLog
from kafkacore.errors import CorruptRecordError, KafkaStorageError
from kafkacore.structs import TopicPartition, partition_name

logger = logging.getLogger(__name__)

_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)


class FailingLog(GrowingLog):
    """What :class:`UnifiedLog` is made on."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self._lock = Lock()
        #: Why every call is refused, once the disk has failed.
        self.failure: str | None = None
        self._is_closed = False
        #: Where the log ended when it last said that the disk is full.
        self._full_at = -1

    @property
    def name(self) -> str:
        """For messages."""
        return partition_name(self.topic_partition)

    def _check_usable(self) -> None:
        if self.failure is not None:
            raise KafkaStorageError(self.failure)
        if self._is_closed:
            raise KafkaStorageError(f"{self.name} is closed")

    def _fail(self, what: str, error: OSError) -> KafkaStorageError:
        if error.errno in _TOO_MANY_FILES:
            return KafkaStorageError(
                f"{self.name}: {what} failed: {error.strerror}; raise the limit (ulimit -n)"
            )
        self.failure = f"{self.name} is offline: {what} failed: {error}"
        logger.error("%s", self.failure)
        return KafkaStorageError(self.failure)

    def _full(self, log_end_offset: int) -> KafkaStorageError:
        """Nothing fits: said in the broker's log once, and again when something has fitted since."""
        sentence = f"{self.name} takes nothing, since the disk is full; make room on it"
        if self._full_at != log_end_offset:
            self._full_at = log_end_offset
            logger.error("%s", sentence)
        return KafkaStorageError(sentence)

    @contextmanager
    def _reading(self, offset: int | None = None) -> Iterator[None]:
        """The lock for a read, and errors that say which partition they are of, and that ``offset`` cannot be
        read if that is what is asked for.
        """
        with self._lock:
            self._check_usable()
            try:
                with self._naming_damage(offset):
                    yield
            except OSError as error:
                raise self._fail("read", error) from error

    @contextmanager
    def _naming_damage(self, offset: int | None = None) -> Iterator[None]:
        """Errors that say which partition they are of, and the ``offset`` if it is not their own."""
        try:
            yield
        except CorruptRecordError as error:
            at = error.offset if offset is None else offset
            raise CorruptRecordError(error.reason, self.topic_partition, at) from error
