"""Records that a read should have given and that Kafka no longer has: told as Spark's own source tells it.

A reason and what happened in, an error out, or a warning. Does not know: how the loss was found.
"""

from __future__ import annotations

import logging
from typing import Literal

from kafkacore.errors import KafkaError

logger = logging.getLogger(__name__)

#: Sub-classes of Spark's error condition ``KAFKA_DATA_LOSS``.
Reason = Literal[
    "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
    "COULD_NOT_READ_OFFSET_RANGE",
    "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS",
    "PARTITIONS_DELETED",
    "PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT",
    "PARTITION_OFFSET_CHANGED",
    "START_OFFSET_RESET",
]


class DataLossError(KafkaError):
    """Records that the read should have given are no longer in Kafka (Spark's ``KAFKA_DATA_LOSS``)."""


def report_data_loss(fail: bool, reason: Reason, what: str) -> None:
    """Fail or go on, as the option ``failOnDataLoss`` says.

    Raises
    ------
    DataLossError
        If ``fail``; Spark's condition stands at the beginning of the message.
    """
    if fail:
        raise DataLossError(
            f"[KAFKA_DATA_LOSS.{reason}] {what}. Set failOnDataLoss to false to go on without these records"
        )
    logger.warning("data loss accepted (failOnDataLoss=false): %s", what)
