"""All that the metadata log says, in memory, and the one way to change it.

A plan in, which says by records what is to be true; its answer out, once that is on disk. One change after
the other, so that each plan sees what those before it have done. Does not know: requests, formats.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeAlias, TypeVar

from kafkacore.broker.metadata.acls import AclStore
from kafkacore.broker.metadata.metadata_log import MetadataLog
from kafkacore.broker.metadata.quota_entities import OnChanged, QuotaEntities
from kafkacore.broker.metadata.records import MetadataRecord
from kafkacore.broker.metadata.scram_users import ScramUsers
from kafkacore.broker.purgatory.change_queue import Change, ChangeQueue, OnDone
from kafkacore.clock import Clock
from kafkacore.errors import InvalidRequestError, KafkaStorageError
from kafkacore.protocol.generated.metadata_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: The log is written anew when it has more records than this, and less than half of them are true.
MIN_RECORDS_TO_REWRITE: Final = 1000
#: Of one change, as in Kafka.
MAX_RECORDS_OF_A_CHANGE: Final = 10_000

#: What is to be true, and what to answer once it is.
Plan: TypeAlias = Callable[[], tuple[Sequence[MetadataRecord], T]]


class ClusterMetadata:
    """Used by the network thread alone.

    Parameters
    ----------
    log:
        Keeps it.
    changes:
        Has the log written on a thread of its own.
    on_quota:
        Gets each limit, also those that are loaded.
    configured_users:
        Names of the users of the configuration.
    """

    def __init__(
        self,
        log: MetadataLog,
        changes: ChangeQueue,
        clock: Clock,
        on_quota: OnChanged,
        configured_users: Collection[str] = (),
    ) -> None:
        self._log = log
        self.changes = changes
        self.acls = AclStore(clock)
        self.users = ScramUsers(configured_users)
        self.quotas = QuotaEntities(on_quota)

    def load(self, *, was_clean: bool) -> None:
        """Learn what the log has; before anything else.

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
                    f"{self._log.path} has a record that cannot be true: {error}; restore the file"
                ) from None

    def change(self, plan: Plan[T], on_done: OnDone[T]) -> None:
        """Make ``plan`` when the changes before it are done; ``on_done`` gets its answer, or an exception."""
        self.changes.submit(self._changed(plan), on_done)

    def close(self) -> None:
        """Once the network thread has ended; what is being written is written."""
        self.changes.close()
        self._log.close()

    def _changed(self, plan: Plan[T]) -> Change[T]:
        records, answer = plan()
        if len(records) > MAX_RECORDS_OF_A_CHANGE:
            raise InvalidRequestError(
                f"One request can change {MAX_RECORDS_OF_A_CHANGE} entries, not {len(records)}; send several"
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
        ]
        if self._log.record_count <= 2 * len(records) or self._log.failure:
            return
        try:
            yield lambda: self._log.rewrite(records)
        except OSError as error:
            logger.warning("%s could not be written anew: %s", self._log.path, error)

    def _apply(self, record: MetadataRecord) -> None:
        if isinstance(record, AccessControlEntryRecord):
            self.acls.add(record)
        elif isinstance(record, RemoveAccessControlEntryRecord):
            self.acls.remove(record)
        elif isinstance(record, UserScramCredentialRecord):
            self.users.add(record)
        elif isinstance(record, RemoveUserScramCredentialRecord):
            self.users.remove(record)
        else:
            self.quotas.apply(record)
