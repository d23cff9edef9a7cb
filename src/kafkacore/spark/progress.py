"""Compute from Spark's progress reports how far a streaming query is behind the latest offsets.

Spark's built-in ``kafka`` source adds lag metrics to each progress report. A Python source cannot add
metrics, but it reports its latest offsets. This module computes the same metrics from these offsets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.reader.offsets import Offsets, from_json
from kafkacore.structs import TopicPartition


@dataclass(frozen=True)
class Lag:
    """Number of offsets between the end of a batch and the end of each partition.

    There is at least one partition. Not every offset has a record: compaction and transaction markers leave
    gaps.
    """

    partitions: Mapping[TopicPartition, int]

    @property
    def total(self) -> int:
        """Sum of the lag of all partitions."""
        return sum(self.partitions.values())

    @property
    def average(self) -> float:
        """Average lag of the partitions."""
        return self.total / len(self.partitions)

    @property
    def maximum(self) -> int:
        """Lag of the partition that is furthest behind."""
        return max(self.partitions.values())

    @property
    def minimum(self) -> int:
        """Lag of the partition that is least behind."""
        return min(self.partitions.values())

    def metrics(self) -> dict[str, str]:
        """Return the metrics as the built-in source reports them in ``sources[].metrics``.

        Names and values are strings.
        """
        return {
            "avgOffsetsBehindLatest": str(float(self.average)),
            "maxOffsetsBehindLatest": str(self.maximum),
            "minOffsetsBehindLatest": str(self.minimum),
        }


def lag(progress: object) -> Lag | None:
    """Return how far the query was behind the latest offsets when a batch ended.

    Parameters
    ----------
    progress:
        ``query.lastProgress``, an item of ``query.recentProgress``, ``event.progress`` of a listener, or one
        of the ``sources`` of a report, also as a dict or as JSON. Sources other than Kafka are ignored. If
        two sources read the same partition, the larger lag counts.

    Returns
    -------
    Lag or None
        ``None`` before the first progress report, or if no source reported Kafka offsets. A partition
        discovered after the batch counts from offset 0, so its lag may be larger than its number of records.

    Raises
    ------
    KafkaConfigurationError
        ``progress`` is not a progress report.
    """
    if progress is None:
        return None
    partitions: dict[TopicPartition, int] = {}
    for source in _sources(_parsed(progress)):
        consumed, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        for tp, offset in latest.items() if consumed is not None and latest is not None else ():
            behind = max(offset - (consumed or {}).get(tp, 0), 0)
            partitions[tp] = max(behind, partitions.get(tp, 0))
    return Lag(partitions) if partitions else None


def _parsed(progress: object) -> Mapping[str, object]:
    if isinstance(progress, str):
        try:
            progress = json.loads(progress)
        except (ValueError, RecursionError):
            progress = None
    # In PySpark 4 a progress report is a dict. In older versions it is an object with the attribute ``json``.
    if not isinstance(progress, Mapping) and isinstance(text := getattr(progress, "json", None), str):
        progress = json.loads(text)
    if not isinstance(progress, Mapping):
        raise KafkaConfigurationError(
            "lag() requires a query progress, such as query.lastProgress, as an object, a dict or JSON"
        )
    return progress


def _sources(progress: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    sources = progress.get("sources", [progress])
    assert isinstance(sources, Iterable)
    yield from (source for source in sources if isinstance(source, Mapping))


def _offsets(offsets: object) -> Offsets | None:
    """Parse Kafka offsets from JSON text or parsed JSON; return ``None`` for offsets of other sources."""
    if isinstance(offsets, str):
        try:
            offsets = json.loads(offsets)
        except (ValueError, RecursionError):
            return None
    try:
        return from_json(offsets) or None
    except KafkaConfigurationError:
        return None
