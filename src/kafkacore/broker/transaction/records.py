"""Encodes and decodes the records of ``__transaction_state``, as Kafka's ``TransactionLog`` does.

An int16 before the key and before the value gives the version. Values are read in versions 0 and 1.
Malformed bytes raise :class:`~kafkacore.errors.MalformedMessageError`.
"""

from __future__ import annotations

from typing import Final

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.transaction.transaction_metadata import TransactionMetadata, TransactionState
from kafkacore.errors import MalformedMessageError
from kafkacore.protocol import Message
from kafkacore.protocol.generated.transaction_records import TransactionLogKey, TransactionLogValue
from kafkacore.structs import TopicPartition
from kafkacore.wire import Cursor, Writer

KEY_VERSION: Final = 0
#: Versions of the value. Version 1 has tagged fields, and is written if ``transaction.version`` is 1 or
#: higher.
OLD_VALUE_VERSION: Final = 0
VALUE_VERSION: Final = 1


def transaction_record(metadata: TransactionMetadata, transaction_version: int) -> CoordinatorRecord:
    """Return the record of a state. A state without a transaction has no partitions, as in Kafka.

    ``transaction_version`` is the finalized level of the feature.
    """
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(metadata.partitions):
        by_topic.setdefault(topic, []).append(partition)
    is_empty = metadata.state is TransactionState.EMPTY
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=None
        if is_empty
        else [
            TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=partitions)
            for topic, partitions in by_topic.items()
        ],
        transaction_last_update_timestamp_ms=metadata.update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    version = OLD_VALUE_VERSION
    if transaction_version:
        version = VALUE_VERSION
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
        value.client_transaction_version = metadata.client_version
    return CoordinatorRecord(key_of(metadata.transactional_id), _encoded(value, version))


def transaction_tombstone(transactional_id: str) -> CoordinatorRecord:
    """Return the record that removes a transactional id."""
    return CoordinatorRecord(key_of(transactional_id), None)


def key_of(transactional_id: str) -> bytes:
    """Return the record key of a transactional id."""
    return _encoded(TransactionLogKey(transactional_id=transactional_id), KEY_VERSION)


def decode_key(data: bytes) -> str | None:
    """Return the transactional id of a key; ``None`` for a key of an unknown version.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid key.
    """
    cursor = Cursor(data)
    if cursor.read_int16() != KEY_VERSION:
        return None
    return TransactionLogKey.decode(cursor, KEY_VERSION).transactional_id


def decode_value(transactional_id: str, data: bytes) -> TransactionMetadata:
    """Decode the value of a transactional id.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid value, or have an unknown version or state.
    """
    cursor = Cursor(data)
    version = cursor.read_int16()
    if not TransactionLogValue.MIN_VERSION <= version <= TransactionLogValue.MAX_VERSION:
        raise MalformedMessageError(
            f"unsupported version {version} of {TransactionLogValue.NAME}: this broker reads versions "
            f"{TransactionLogValue.MIN_VERSION} to {TransactionLogValue.MAX_VERSION}"
        )
    value = TransactionLogValue.decode(cursor, version)
    try:
        state = TransactionState(value.transaction_status)
    except ValueError:
        raise MalformedMessageError(f"unknown transaction state {value.transaction_status}") from None
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        update_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def _encoded(message: Message, version: int) -> bytes:
    writer = Writer()
    writer.write_int16(version)
    message.encode(writer, version)
    return b"".join(writer.pieces())
