"""Metadata of the cluster in memory, and the changes that are written to the metadata log.

A change is a function that returns records. Changes run one after the other, so that each change sees the
result of the earlier changes. A request for a change is answered when the records of the change are on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, TypeVar

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.group_limits import GroupLimits
from kafkacore.broker.metadata.acls import AclStore
from kafkacore.broker.metadata.feature_levels import FeatureLevels
from kafkacore.broker.metadata.metadata_log import MetadataLog
from kafkacore.broker.metadata.quota_entities import OnChanged, QuotaEntities
from kafkacore.broker.metadata.records import MetadataRecord
from kafkacore.broker.metadata.resource_configs import ResourceConfigs
from kafkacore.broker.metadata.scram_users import ScramUsers
from kafkacore.broker.purgatory.change_queue import Change, ChangeQueue, OnDone
from kafkacore.clock import Clock
from kafkacore.errors import InvalidRequestError, KafkaStorageError
from kafkacore.logs import logger_of
from kafkacore.protocol.generated.metadata_records import (
    AccessControlEntryRecord,
    ConfigRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

logger = logger_of(__name__)

T = TypeVar("T")

#: The log is rewritten when it has more records than this number, and fewer than half of its records are
#: current.
MIN_RECORDS_TO_REWRITE: Final = 1000
#: Maximum number of records of one change, as in Kafka.
MAX_RECORDS_OF_A_CHANGE: Final = 10_000

#: Function that returns the records of a change and the answer to the request. The request is answered when
#: the records are durable.
Plan: TypeAlias = Callable[[], tuple[Sequence[MetadataRecord], T]]


class ClusterMetadata:
    """ACLs, SCRAM users, quotas, configurations and feature levels. Only the network thread may use it.

    Parameters
    ----------
    log:
        Log that stores the metadata.
    changes:
        Queue of changes, which writes the log on a thread of its own.
    clock:
        Source of random ids.
    on_quota:
        Called with each quota limit that is loaded or changed.
    config:
        The configuration of the broker.

    Attributes
    ----------
    group_limits:
        Timeouts and intervals of consumer groups.
    """

    def __init__(
        self,
        log: MetadataLog,
        changes: ChangeQueue,
        clock: Clock,
        on_quota: OnChanged,
        config: BrokerConfig,
    ) -> None:
        self._log = log
        self.changes = changes
        self.acls = AclStore(clock)
        self.users = ScramUsers(config.users)
        self.quotas = QuotaEntities(on_quota)
        self.group_limits = GroupLimits(config)
        self.configs = ResourceConfigs(self.group_limits)
        self.features = FeatureLevels()

    @property
    def end_offset(self) -> int:
        """Offset of the next record of the log."""
        return self._log.end_offset

    def load(self, *, was_clean: bool) -> None:
        """Load the log. Call this before any other method.

        Parameters
        ----------
        was_clean:
            Whether the previous broker was shut down cleanly.

        Raises
        ------
        KafkaStorageError
            The log is damaged.
        """
        for record in self._log.load(was_clean=was_clean):
            try:
                self._apply(record)
            except (ValueError, KeyError, InvalidRequestError) as error:
                raise KafkaStorageError(
                    f"{self._log.path} has an invalid record: {error}; restore the file from a backup"
                ) from None

    def change(self, plan: Plan[T], on_done: OnDone[T]) -> None:
        """Run ``plan`` after all earlier changes, and call ``on_done`` with its answer or an exception."""
        self.changes.submit(self._changed(plan), on_done)

    def close(self) -> None:
        """Finish the write in progress and close the log. Call this after the network thread has stopped."""
        self.changes.close()
        self._log.close()

    def _changed(self, plan: Plan[T]) -> Change[T]:
        records, answer = plan()
        if len(records) > MAX_RECORDS_OF_A_CHANGE:
            raise InvalidRequestError(
                f"The request changes {len(records)} entries, but at most {MAX_RECORDS_OF_A_CHANGE} are "
                f"allowed. Split it into several requests."
            )
        if records:
            yield lambda: self._log.append(records)
            for record in records:
                self._apply(record)
            if self._log.record_count > MIN_RECORDS_TO_REWRITE:
                self.changes.submit(self._rewritten(), lambda _: None)
        return answer

    def _rewritten(self) -> Change[None]:
        records: list[MetadataRecord] = [
            *self.acls.records(),
            *self.users.records(),
            *self.quotas.records(),
            *self.configs.records(),
            *self.features.records(),
        ]
        if self._log.record_count <= 2 * len(records) or self._log.failure:
            return
        try:
            yield lambda: self._log.rewrite(records)
        except OSError as error:
            logger.warning("failed to rewrite %s, will retry after a later change: %s", self._log.path, error)

    def _apply(self, record: MetadataRecord) -> None:
        if isinstance(record, AccessControlEntryRecord):
            self.acls.add(record)
        elif isinstance(record, RemoveAccessControlEntryRecord):
            self.acls.remove(record)
        elif isinstance(record, UserScramCredentialRecord):
            self.users.add(record)
        elif isinstance(record, RemoveUserScramCredentialRecord):
            self.users.remove(record)
        elif isinstance(record, ConfigRecord):
            self.configs.apply(record)
        elif isinstance(record, FeatureLevelRecord):
            self.features.apply(record)
        else:
            self.quotas.apply(record)
