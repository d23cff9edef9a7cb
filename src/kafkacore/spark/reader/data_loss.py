"""Report records that were deleted before they were read, with the error conditions of Spark's own source."""

from __future__ import annotations

from typing import Literal

from kafkacore.errors import KafkaError
from kafkacore.logs import logger_of

logger = logger_of(__name__)

#: Subclasses of Spark's error condition ``KAFKA_DATA_LOSS``.
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
    """Requested records were deleted before they were read (Spark's ``KAFKA_DATA_LOSS``)."""


def report_data_loss(fail: bool, reason: Reason, what: str) -> None:
    """Raise an error for lost records, or log a warning, depending on the option ``failOnDataLoss``.

    Parameters
    ----------
    fail:
        Value of ``failOnDataLoss``.
    reason:
        Subclass of Spark's error condition, which the error message names.
    what:
        Description of the loss.

    Raises
    ------
    DataLossError
        ``fail`` is true.
    """
    if fail:
        raise DataLossError(
            f"[KAFKA_DATA_LOSS.{reason}] {what}. Set failOnDataLoss to false to continue without these "
            "records"
        )
    logger.warning("data loss accepted (failOnDataLoss=false): %s", what)
