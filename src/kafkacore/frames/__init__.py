"""Tables of a topic's records, with typed columns. For pyarrow, polars, pandas and duckdb.

:func:`read_topic` reads a topic. A :class:`RecordDecoder` decodes the columns that ``poll_arrow()`` returns.
"""

from kafkacore.frames.record_decoder import RecordDecoder
from kafkacore.frames.topic_reader import read_topic

__all__ = ["RecordDecoder", "read_topic"]
