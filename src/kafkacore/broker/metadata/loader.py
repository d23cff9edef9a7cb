"""Loads the cluster metadata when a broker starts, and creates the authorizer."""

from __future__ import annotations

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.metadata.authorizer import StandardAuthorizer
from kafkacore.broker.metadata.cluster_metadata import ClusterMetadata
from kafkacore.broker.metadata.end_offset_checkpoint import FILE_NAME as END_OFFSET_FILE
from kafkacore.broker.metadata.kafkas_epochs import kafkas_log
from kafkacore.broker.metadata.metadata_log import FILE_NAME, MetadataLog
from kafkacore.broker.purgatory.change_queue import ChangeQueue
from kafkacore.broker.quota import Quotas
from kafkacore.broker.storage import identity
from kafkacore.broker.storage.disk import Disk
from kafkacore.clock import Clock
from kafkacore.errors import KafkaStorageError
from kafkacore.logs import logger_of
from kafkacore.text import shown

logger = logger_of(__name__)


def load_metadata(
    config: BrokerConfig, clock: Clock, disk: Disk, quotas: Quotas, was_clean: bool
) -> ClusterMetadata:
    """Load the metadata log of the data directory.

    Changes run on the calling thread until the caller replaces the queue of changes.

    Raises
    ------
    KafkaStorageError
        The log is damaged or missing.
    """
    path = config.data_dir / FILE_NAME
    note = identity.KeptMetadata(config.data_dir, disk)
    if note.is_noted() and not disk.exists(path):
        # A broker without the log would admit clients that an ACL or the deletion of a user has locked out.
        raise KafkaStorageError(
            f"{path} is missing. It stores the ACLs, users and quotas: restore it and {END_OFFSET_FILE}. "
            f"To start without them, remove the line {identity.METADATA_KEY} from {note.path} and, if it "
            f"exists, the file {END_OFFSET_FILE}"
        )
    kafkas = kafkas_log(config.data_dir)
    if disk.exists(kafkas) and not disk.exists(path):
        logger.warning(
            "ACLs, users and quotas that Apache Kafka has stored in %s are not imported; create them again",
            kafkas,
        )
    log = MetadataLog(path, disk, clock, note)
    metadata = ClusterMetadata(log, ChangeQueue(), clock, quotas.set_entity, config)
    metadata.load(was_clean=was_clean)
    for user in metadata.users.replaced():
        logger.warning(
            "ignoring the password of user %s in the configuration (sasl.user.<name>): the user was changed "
            "or deleted at run time. Use 'kafkacore users' to set a password",
            shown(user),
        )
    return metadata


def authorizer_of(config: BrokerConfig, metadata: ClusterMetadata) -> StandardAuthorizer | None:
    """Return the configured authorizer, or ``None`` if everything is allowed."""
    if not config.authorizer_class_name:
        return None
    return StandardAuthorizer(
        metadata.acls,
        config.super_user_names(),
        allow_if_no_acl=config.allow_everyone_if_no_acl_found,
    )
