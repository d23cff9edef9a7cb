"""The control batch that ends a transaction of a producer (Kafka's ``EndTransactionMarker``)."""

from __future__ import annotations

from typing import NamedTuple

from kafkacore.errors import CorruptRecordError, MalformedMessageError
from kafkacore.protocol.generated.control_records import ControlRecordTypeSchema, EndTxnMarker
from kafkacore.protocol.message import Message
from kafkacore.record import RecordBatch, RecordBatchBuilder, read_batches
from kafkacore.record.control import ControlRecordType, control_type
from kafkacore.wire import Cursor, Writer

_VERSION = 0
#: Upper limit of the size of a marker's batch in bytes. The batch of every marker is smaller.
_BATCH_SIZE = 256


class EndTransactionMarker(NamedTuple):
    """The outcome of a transaction, and the epoch of the transaction coordinator that wrote the marker."""

    is_commit: bool
    coordinator_epoch: int

    def batch(self, producer_id: int, producer_epoch: int, timestamp: int) -> RecordBatch:
        """Return the control batch with this marker.

        Parameters
        ----------
        producer_id, producer_epoch:
            Producer id of the transaction, and the producer epoch that the marker gets.
        timestamp:
            Milliseconds since the epoch.
        """
        kind = ControlRecordType.COMMIT if self.is_commit else ControlRecordType.ABORT
        builder = RecordBatchBuilder(_BATCH_SIZE)
        builder.append(
            timestamp,
            _versioned(ControlRecordTypeSchema(type=kind)),
            _versioned(EndTxnMarker(coordinator_epoch=self.coordinator_epoch)),
        )
        records = builder.close(
            producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True, is_control=True
        )
        return next(read_batches(records, False))


def _versioned(message: Message) -> bytes:
    writer = Writer()
    writer.write_int16(_VERSION)
    message.encode(writer, _VERSION)
    return b"".join(writer.pieces())


def read_marker(batch: RecordBatch) -> EndTransactionMarker | None:
    """Return the marker in a control batch; ``None`` if the batch is empty or of another kind.

    Raises
    ------
    CorruptRecordError
        The batch or its record is malformed.
    """
    record = next(iter(batch), None)
    kind = None if record is None else control_type(record.key)
    if record is None or kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    cursor = Cursor(record.value or b"")
    try:
        version = cursor.read_int16()
        # Later versions of the value only add fields, so they can be decoded as version 0.
        marker = EndTxnMarker.decode(cursor, _VERSION)
    except MalformedMessageError as error:
        raise CorruptRecordError(
            f"the value of the control record is too short: {record.value_size} bytes", offset=record.offset
        ) from error
    if version < _VERSION:
        raise CorruptRecordError(
            f"the control record has the invalid version {version}", offset=record.offset
        )
    return EndTransactionMarker(kind == ControlRecordType.COMMIT, marker.coordinator_epoch)
