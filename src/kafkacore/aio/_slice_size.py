"""The number of records that the consumer reads at once, so that the event loop is not blocked for long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafkacore.consumer import ConsumerRecord

#: Maximum number of records.
MOST_RECORDS: Final = 500
#: Approximate maximum size of the keys and values that are deserialized.
MOST_BYTES: Final = 64 * 1024
#: Number of records that are deserialized before the size of any record is known.
FIRST_RECORDS: Final = 10


class SliceSize:
    """The number of records to read next.

    A deserializer takes time for each byte. So the number depends on the size of the records that were read
    last. Without deserializers, keys and values are not touched, and only the number of records counts.

    Parameters
    ----------
    has_deserializer:
        Whether keys or values are deserialized.
    """

    def __init__(self, has_deserializer: bool) -> None:
        self._has_deserializer = has_deserializer
        #: The number of records to read next.
        self.records = FIRST_RECORDS if has_deserializer else MOST_RECORDS

    def read(self, found: Mapping[Any, Iterable[ConsumerRecord]]) -> None:
        """Note the records that were read, by partition."""
        if not self._has_deserializer:
            return
        count = size = 0
        for records in found.values():
            for record in records:
                count += 1
                size += max(record.serialized_key_size, 0) + max(record.serialized_value_size, 0)
        if count:
            self.records = max(1, min(MOST_RECORDS, MOST_BYTES * count // max(size, 1)))
