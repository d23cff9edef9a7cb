"""The columns of Kafka in a batch of records of one partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kafkacore.decode.constant_columns import ConstantColumns

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.decode.decoder import ArrowArray

Column = Literal["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]

#: Name of each column in :mod:`kafkacore.record`, except topic and partition, which are constant in a batch.
COLUMN_OF: dict[Column, str] = {
    "key": "key",
    "value": "value",
    "offset": "offset",
    "timestamp": "timestamp",
    "timestampType": "timestamp_type",
    "headers": "headers",
}


class KafkaColumnArrays:
    """Source of the arrays of consecutive batches."""

    def __init__(self) -> None:
        self._constants = ConstantColumns()

    def array(
        self, column: Column, found: pa.RecordBatch, topic: str | None, partition: int | None
    ) -> ArrowArray:
        """Return the array of a column.

        Parameters
        ----------
        column:
            The column.
        found:
            The records, with the columns of :mod:`kafkacore.record` that are needed.
        topic, partition:
            Topic and partition of the records; ``None`` if unknown.
        """
        if column == "topic":
            return self._constants.topics(topic, found.num_rows)
        if column == "partition":
            return self._constants.partitions(partition, found.num_rows)
        return found.column(COLUMN_OF[column])
