"""Create the objects of which a producer consists, according to its settings, and connect them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kafkacore.client import ApiVersions, Metadata, NetworkClient, bootstrap_client
from kafkacore.client.client_metrics import ClientMetrics, metrics_registry
from kafkacore.clock import Clock
from kafkacore.metrics import Metrics
from kafkacore.network import Selector
from kafkacore.producer._direct_sender import DirectSender
from kafkacore.producer.idempotence import IdempotenceManager
from kafkacore.producer.metadata_wait import MetadataWait
from kafkacore.producer.producer_manager import ProducerManager
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.record_preparer import RecordPreparer
from kafkacore.producer.sender import Sender
from kafkacore.producer.sender_metrics import ProducerMetrics
from kafkacore.producer.sender_run import NetworkThread, NewNetworkThread, SenderRun
from kafkacore.producer.sender_thread import SenderThread
from kafkacore.settings import Config
from kafkacore.structs import Compression

if TYPE_CHECKING:
    from kafkacore.producer.transaction_manager import TransactionManager


class ProducerComponents(NamedTuple):
    """The objects that :func:`make_components` creates.

    Attributes
    ----------
    metrics:
        Metrics of the producer; ``None`` with ``metrics_enabled=False``.
    transactions:
        The transaction manager; ``None`` without a ``transactional_id``.
    """

    client: NetworkClient
    metadata: Metadata
    accumulator: RecordAccumulator
    thread: NetworkThread
    metrics: Metrics | None
    transactions: TransactionManager | None
    topics: MetadataWait
    preparer: RecordPreparer


def make_components(
    config: Config, clock: Clock, new_thread: NewNetworkThread = SenderThread
) -> ProducerComponents:
    """Create the objects of which a producer consists, without starting the network thread.

    Parameters
    ----------
    config:
        Settings from :func:`kafkacore.producer.config.resolve_producer`, with a client id.
    clock:
        Clock that all of these objects use.
    new_thread:
        Function that creates the network thread, or what takes its place.

    Raises
    ------
    KafkaConfigurationError
        ``bootstrap_servers`` does not contain a broker.
    """
    client, metadata = bootstrap_client(config, clock)
    idempotence, transactions = _idempotence_of(config, clock, client.api_versions)
    accumulator = _accumulator(config, clock, client, idempotence)
    if transactions is not None:
        transactions.attach(accumulator)
    metrics = metrics_registry(config, clock)
    sender_metrics = None
    if metrics is not None:
        prefix = config["metric_group_prefix"] or "producer"
        client.metrics = ClientMetrics(
            metrics, prefix, client.connection_count, client.in_flight_request_count
        )
        client.selector.on_authenticated = client.metrics.authentications.note
        sender_metrics = ProducerMetrics(
            metrics, clock, accumulator.pool, accumulator.incomplete, metadata.age_ms, prefix
        ).batches
    sender = Sender(
        client,
        metadata,
        accumulator,
        clock,
        acks=config["acks"],
        retries=config["retries"],
        request_timeout_ms=config["request_timeout_ms"],
        max_request_size=config["max_request_size"],
        guarantee_message_order=config["max_in_flight_requests_per_connection"] == 1,
        retry_backoff_ms=config["retry_backoff_ms"],
        retry_backoff_max_ms=config["retry_backoff_max_ms"],
        metrics=sender_metrics,
    )
    if _may_send_directly(config) and isinstance(client.selector, Selector):
        assert idempotence is None or isinstance(idempotence, IdempotenceManager)
        sender.direct = DirectSender(sender, client, clock, accumulator, idempotence)
        accumulator.records.direct = sender.direct
    name = f"kafka-producer-network-thread | {config['client_id']}"
    thread = new_thread(SenderRun(sender, client, metadata, accumulator, clock, name))
    topics = MetadataWait(client, metadata, accumulator, thread, clock, config["max_block_ms"])
    preparer = RecordPreparer(config, accumulator, topics, metadata, transactions, clock)
    return ProducerComponents(client, metadata, accumulator, thread, metrics, transactions, topics, preparer)


def _may_send_directly(config: Config) -> bool:
    """Return whether threads that call ``send()`` may also send requests."""
    return (
        config["linger_ms"] == 0
        and config["acks"] != 0
        and config["compression_type"] is Compression.NONE
        and config["transactional_id"] is None
        # With one request in flight, the Sender also keeps retried batches in order.
        and config["max_in_flight_requests_per_connection"] > 1
    )


def _accumulator(
    config: Config, clock: Clock, client: NetworkClient, idempotence: ProducerManager | None
) -> RecordAccumulator:
    return RecordAccumulator(
        clock,
        client.wakeup,
        batch_size=config["batch_size"],
        linger_ms=config["linger_ms"],
        buffer_memory=config["buffer_memory"],
        compression=config["compression_type"],
        compression_level=config["compression_level"],
        retry_backoff_ms=config["retry_backoff_ms"],
        retry_backoff_max_ms=config["retry_backoff_max_ms"],
        delivery_timeout_ms=config["delivery_timeout_ms"],
        max_request_size=config["max_request_size"],
        max_block_ms=config["max_block_ms"],
        adaptive_partitioning=config["partitioner_adaptive_partitioning_enable"],
        partition_availability_timeout_ms=config["partitioner_availability_timeout_ms"],
        ignore_keys=config["partitioner_ignore_keys"],
        idempotence=idempotence,
    )


def _idempotence_of(
    config: Config, clock: Clock, api_versions: ApiVersions
) -> tuple[ProducerManager | None, TransactionManager | None]:
    """Return the idempotence manager and the transaction manager, which are one object if both are needed.

    A manager that the producer does not need is ``None``.
    """
    if config["transactional_id"] is None:
        return (IdempotenceManager() if config["enable_idempotence"] else None), None
    # Only a producer with a transactional_id needs this module and the requests that it sends.
    from kafkacore.producer.transaction_manager import TransactionManager

    manager = TransactionManager(
        config["transactional_id"],
        clock,
        api_versions,
        transaction_timeout_ms=config["transaction_timeout_ms"],
        max_block_ms=config["max_block_ms"],
    )
    return manager, manager
