"""The part of a log that knows who led when: its leader epochs, under its lock.

Epochs in, offsets out. Does not know: segments, who leads.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from kafkacore.broker.log import checkpoints
from kafkacore.broker.log.epochs import EpochEndOffset
from kafkacore.broker.log.failing_log import FailingLog
from kafkacore.broker.storage.disk import Disk


class LogOfEpochs(FailingLog):
    """What :class:`UnifiedLog`, which also flushes what is written here, is made on."""

    folder: Path
    topic_id: UUID
    _disk: Disk
    _is_folder_dirty: bool

    @property
    def leader_epoch(self) -> int:
        """The epoch that batches are appended in."""
        return self._epochs.latest

    def begin_epoch(self, epoch: int) -> None:
        """Append in ``epoch`` from now on; on disk soon, and before anything that is acknowledged in it.

        Raises
        ------
        ValueError
            The log is in a later epoch already.
        KafkaStorageError
            The disk refuses.
        """
        with self._lock:
            self._check_usable()
            if epoch < self._epochs.latest:
                raise ValueError(f"{self.name} is in leader epoch {self._epochs.latest} already")
            self._epochs.assign(epoch, self.log_end_offset)
            self._write_epochs()
        self._work.mark_dirty(self)  # type: ignore[arg-type]  # there is no other kind of log

    def _write_epochs(self) -> None:
        try:
            self._epochs.write()
        except OSError as error:
            raise self._fail("writing leader epochs", error) from error
        self._is_folder_dirty |= self._epochs.is_dirty

    def _start_moved(self) -> None:
        self._epochs.truncate_from_start(self.log_start_offset)
        self._write_epochs()

    def _write_identity(self) -> None:
        """Write ``partition.metadata`` if it is missing, and ``leader-epoch-checkpoint`` if it has changed.

        Not synced: the topic's id is also in the list of topics, and leader epochs are in the batches.
        """
        self._has_identity = True
        checkpoints.write_topic_id(self._disk, self.folder, self.topic_id)
        self._epochs.write()

    def end_offset_for_epoch(self, epoch: int) -> EpochEndOffset:
        """Where ``epoch`` ends, or the latest before it: by which a reader finds that a log was cut."""
        with self._lock:
            return self._epochs.end_offset(epoch, self.log_end_offset)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch in which ``offset`` was, or will be, written; -1 if that is not known."""
        with self._lock:
            return self._epochs.epoch_at(offset)
