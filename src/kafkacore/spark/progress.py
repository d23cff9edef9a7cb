"""How far a streaming query is behind: what Spark says of a micro-batch in, offsets behind the latest out.

In each progress Spark gives its built-in ``kafka`` source a map of metrics, and a Python source none; but
both report their latest offsets, and these are the same figures made of them. Does not know: PySpark,
queries, where a progress comes from.
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
    """Offsets between where a batch ended and where each partition did; there is at least one.

    Offsets, not records: compaction and the markers of transactions leave gaps.
    """

    partitions: Mapping[TopicPartition, int]

    @property
    def total(self) -> int:
        """Of all partitions."""
        return sum(self.partitions.values())

    @property
    def average(self) -> float:
        """Of a partition."""
        return self.total / len(self.partitions)

    @property
    def maximum(self) -> int:
        """Of the partition that is furthest behind."""
        return max(self.partitions.values())

    @property
    def minimum(self) -> int:
        """Of the partition that is least behind."""
        return min(self.partitions.values())

    def metrics(self) -> dict[str, str]:
        """By the names, and as the texts, that the built-in source has in ``sources[].metrics``."""
        return {
            "avgOffsetsBehindLatest": str(float(self.average)),
            "maxOffsetsBehindLatest": str(self.maximum),
            "minOffsetsBehindLatest": str(self.minimum),
        }


def lag(progress: object) -> Lag | None:
    """How far behind the latest offsets the query was when this batch ended.

    Parameters
    ----------
    progress:
        ``query.lastProgress``, one of ``query.recentProgress``, ``event.progress`` of a listener, one of a
        progress's ``sources``, or any of them as a dict or as JSON. Sources that are not Kafka's are left
        out; of a partition that two sources read, the one further behind counts.

    Returns
    -------
    Lag or None
        ``None`` if nothing is known: there is no progress yet, or no source that reported Kafka's offsets. A
        partition that was found since the batch counts from offset 0, which may be more than it holds.

    Raises
    ------
    KafkaConfigurationError
        What is given is no progress.
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
    # PySpark 4's progress is a dict; before, and in others' hands, an object with a text in ``json``.
    if not isinstance(progress, Mapping) and isinstance(text := getattr(progress, "json", None), str):
        progress = json.loads(text)
    if not isinstance(progress, Mapping):
        raise KafkaConfigurationError("lag() takes a progress, such as query.lastProgress, or its JSON")
    return progress


def _sources(progress: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    sources = progress.get("sources", [progress])
    assert isinstance(sources, Iterable)
    yield from (source for source in sources if isinstance(source, Mapping))


def _offsets(offsets: object) -> Offsets | None:
    """Offsets of Kafka, as text or parsed; ``None`` for those of any other source."""
    if isinstance(offsets, str):
        try:
            offsets = json.loads(offsets)
        except (ValueError, RecursionError):
            return None
    try:
        return from_json(offsets) or None
    except KafkaConfigurationError:
        return None
