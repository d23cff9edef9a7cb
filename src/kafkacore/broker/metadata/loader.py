"""The cluster's metadata of a broker that starts: configuration and folder in, its parts put together out.

Does not know: requests, connections.
"""

from __future__ import annotations

import logging

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.metadata.authorizer import StandardAuthorizer
from kafkacore.broker.metadata.cluster_metadata import ClusterMetadata
from kafkacore.broker.metadata.end_offset_checkpoint import FILE_NAME as END_OFFSET_FILE
from kafkacore.broker.metadata.metadata_log import FILE_NAME, MetadataLog
from kafkacore.broker.purgatory.change_queue import ChangeQueue
from kafkacore.broker.quota import Quotas
from kafkacore.broker.storage import identity
from kafkacore.broker.storage.disk import Disk
from kafkacore.broker.topics.internal_topics import CLUSTER_METADATA
from kafkacore.clock import Clock
from kafkacore.errors import KafkaStorageError
from kafkacore.text import shown

logger = logging.getLogger(__name__)


def load_metadata(
    config: BrokerConfig, clock: Clock, disk: Disk, quotas: Quotas, was_clean: bool
) -> ClusterMetadata:
    """What the folder's log has; its changes are done by whoever asks until they are given a thread.

    Raises
    ------
    KafkaStorageError
        The log is damaged, or gone.
    """
    path = config.data_dir / FILE_NAME
    note = identity.KeptMetadata(config.data_dir, disk)
    if note.is_noted() and not disk.exists(path):
        # To go on would let everybody in whom a denial, or a user that was deleted, kept out.
        raise KafkaStorageError(
            f"{path} is gone, and with it access control entries, users and quotas: restore it and "
            f"{END_OFFSET_FILE}, or, to start without them, remove the line of {identity.METADATA_KEY} "
            f"from {note.path} and {END_OFFSET_FILE}, if that is there"
        )
    kafkas = config.data_dir / f"{CLUSTER_METADATA}-0"
    if disk.exists(kafkas) and not disk.exists(path):
        logger.warning(
            "access control entries, users and quotas that Apache Kafka has kept in %s are not taken over",
            kafkas,
        )
    log = MetadataLog(path, disk, clock, note)
    metadata = ClusterMetadata(log, ChangeQueue(), clock, quotas.set_entity, config.users)
    metadata.load(was_clean=was_clean)
    for user in metadata.users.replaced():
        logger.warning(
            "the password that the configuration has for the user %s (sasl.user. before its name) does not "
            "count: the user was changed or deleted while the broker ran; kafkacore users gives another one",
            shown(user),
        )
    return metadata


def authorizer_of(config: BrokerConfig, metadata: ClusterMetadata) -> StandardAuthorizer | None:
    """Who decides what clients may do; ``None`` where nobody does."""
    if not config.authorizer_class_name:
        return None
    return StandardAuthorizer(
        metadata.acls,
        config.super_user_names(),
        allow_if_no_acl=config.allow_everyone_if_no_acl_found,
    )
