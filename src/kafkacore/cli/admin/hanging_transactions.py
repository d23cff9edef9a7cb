"""Finds hanging transactions, which are open in a partition although no coordinator will end them there.

The search is that of Apache Kafka's ``kafka-transactions.sh find-hanging`` (KIP-664).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kafkacore.errors import TransactionalIdNotFoundError
from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient, ProducerState


def hanging_transactions(
    admin: KafkaAdminClient,
    partitions: Iterable[TopicPartition],
    broker_id: int | None,
    max_transaction_timeout_ms: int,
    now_ms: int,
) -> list[tuple[TopicPartition, ProducerState]]:
    """Return the partitions and the producers of the transactions that hang.

    Parameters
    ----------
    partitions:
        Partitions to search.
    broker_id:
        Replica to ask for the producers of the partitions; ``None`` for the leaders.
    max_transaction_timeout_ms:
        ``transaction.max.timeout.ms`` of the brokers. A transaction whose last record is more recent than
        this does not hang.
    now_ms:
        Time in milliseconds since the epoch.
    """
    old = [
        (partition, producer)
        for partition, state in sorted(admin.describe_producers(partitions, broker_id).items())
        for producer in state.active_producers
        if producer.current_transaction_start_offset >= 0
        and now_ms - producer.last_timestamp > max_transaction_timeout_ms
    ]
    if not old:
        return []
    transactions = _transactions(admin, {producer.producer_id for _, producer in old})
    return [
        (partition, producer)
        for partition, producer in old
        if partition not in transactions.get(producer.producer_id, ())
    ]


def _transactions(admin: KafkaAdminClient, producer_ids: Collection[int]) -> dict[int, set[TopicPartition]]:
    """Return the partitions of each producer's transaction according to the coordinator, by producer id."""
    listed = admin.list_transactions(producer_id_filters=sorted(producer_ids))
    found: dict[int, set[TopicPartition]] = {}
    for listing in (each for listings in listed.values() for each in listings):
        try:
            described = admin.describe_transactions([listing.transactional_id])
        except TransactionalIdNotFoundError:
            continue  # The id has expired since it was listed.
        found[listing.producer_id] = set(described[listing.transactional_id].topic_partitions)
    return found
