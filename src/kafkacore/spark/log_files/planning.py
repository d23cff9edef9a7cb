"""What the tasks of a read are: checked options in, ranges of files that begin with a batch out.

Runs on the driver and looks at headers alone: a file is divided by its ``.index`` where there is one, and
else by the batches' lengths. Does not know: columns, Spark.
"""

from __future__ import annotations

import logging
import re
import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from kafkacore.errors import CorruptRecordError, KafkaConfigurationError
from kafkacore.record import BatchHeader, RecordBatch
from kafkacore.record._layout import BATCH_OVERHEAD
from kafkacore.record._walk import walk_headers
from kafkacore.record.segment_file import Damage, ReadAt, SegmentFile, read_headers
from kafkacore.spark.log_files.files import LogFile, Storage, log_files
from kafkacore.spark.log_files.options import LogOptions
from kafkacore.spark.log_files.reading import MAX_OFFSET, Selection
from kafkacore.spark.log_files.transactions import TransactionScan
from kafkacore.spark.reader.options import Bound
from kafkacore.structs import TopicPartition

logger = logging.getLogger(__name__)

_INDEX_ENTRY = struct.Struct(">II")
#: More is no index of a segment: 8 bytes for each 4 kB of 2 GiB, and Kafka's own limit is 10 MiB.
_MAX_INDEX_BYTES = 64 << 20
#: Where no option says it: so many tasks, none of them too small to be worth its start, or so large that
#: much is done again when one fails. The second limit is that of Spark's own sources.
_TASKS, _MIN_TASK_BYTES, _MAX_TASK_BYTES = 64, 16 << 20, 128 << 20
#: A task takes this much time to open a file and to begin, in bytes that it could have read meanwhile.
_OPEN_COST_BYTES = 1 << 18


@dataclass(frozen=True)
class FileRange:
    """Bytes ``[start, end)`` of a file, which begin and end with a batch, and the records wanted of them."""

    file: LogFile
    start: int
    end: int
    selection: Selection


def plan_tasks(options: LogOptions) -> list[list[FileRange]]:
    """What each task reads, in the order of the logs.

    Raises
    ------
    KafkaConfigurationError
        A path has no segment, or an option does not fit what is there.
    """
    storage = Storage(options.storage)
    files = _subscribed(options, log_files(storage.find(options.paths), options.topic, options.partition))
    ranges: list[FileRange] = []
    target = _target_bytes(options, sum(file.size for file in files))
    for _, group in groupby(files, key=lambda file: file.log):
        log = list(group)
        selection = _selection(options, storage, log)
        for file, behind in _wanted(log, selection):
            ranges += _divided(storage, file, selection, target, behind)
    return _packed(ranges, target)


def _target_bytes(options: LogOptions, whole: int) -> int:
    """Bytes of a task. How many cores there are is not known here."""
    target = options.max_bytes_per_partition
    if target is None:
        target = min(max(whole // _TASKS, _MIN_TASK_BYTES), _MAX_TASK_BYTES)
    if options.min_partitions is not None:
        target = min(target, -(-whole // options.min_partitions))
    return max(target, 1)


def _subscribed(options: LogOptions, files: list[LogFile]) -> list[LogFile]:
    if not options.subscribe and options.subscribe_pattern is None:
        return files
    pattern = re.compile(options.subscribe_pattern) if options.subscribe_pattern is not None else None

    def is_wanted(topic: str) -> bool:
        # The whole name has to match, as Kafka's consumers have it.
        return topic in options.subscribe if pattern is None else pattern.fullmatch(topic) is not None

    found = [file for file in files if file.topic is not None and is_wanted(file.topic)]
    if not found:
        there = sorted({file.topic for file in files if file.topic is not None})[:10]
        raise KafkaConfigurationError(
            f"no file is of a topic that is subscribed to; there are {', '.join(there) or 'none'}"
        )
    return found


# ---- Which records -----------------------------------------------------------------------------------------
def _selection(options: LogOptions, storage: Storage, log: Sequence[LogFile]) -> Selection:
    """Offsets and aborted transactions of one partition's files."""
    begin = _offset(options.starting, storage, log, "startingOffsets")
    end = _offset(options.ending, storage, log, "endingOffsets")
    if options.starting.timestamp is not None and begin is None:
        begin = MAX_OFFSET
    end = MAX_OFFSET if end is None else end
    if not options.read_committed:
        return Selection(begin or 0, end)
    scan = TransactionScan()
    for file in log:
        with storage.open(file.path) as read:
            scan.scan(read, file.size, file.shown, file.is_last)
    stable = scan.last_stable_offset
    if stable is not None and stable < end and scan.doubt is not None:
        what = f"all from offset {stable} on, where a transaction began that may have ended there,"
        _tell_of_doubt(options, scan.doubt, what)
    for first, last, place in scan.unread_ends:
        if first < end and last >= (begin or 0):
            _tell_of_doubt(options, place, f"the transaction from offset {first}, which ended there,")
    return Selection(begin or 0, end if stable is None else min(end, stable), scan.aborted)


def _tell_of_doubt(options: LogOptions, place: str, what: str) -> None:
    """Records will be missing, and no task may come to the damage that is why."""
    sentence = f"{place}. Of {what} it cannot be told whether it was committed"
    if options.mode == "FAILFAST":
        raise CorruptRecordError(
            f"{sentence}. Set the option mode to PERMISSIVE or DROPMALFORMED to leave it out, or isolation "
            "to read_uncommitted"
        )
    logger.warning("%s; it is left out", sentence)


def _offset(bound: Bound, storage: Storage, log: Sequence[LogFile], option: str) -> int | None:
    first = log[0]
    if bound.timestamp is not None:
        return _offset_of_time(storage, log, bound.timestamp)
    if bound.offsets is None:
        return None
    if first.topic is None or first.partition is None:
        raise KafkaConfigurationError(
            f"{first.shown} does not say of which partition it is, so that {option} has none for it: set the "
            "options topic and partition"
        )
    return bound.offsets.get(TopicPartition(first.topic, first.partition))


def _offset_of_time(storage: Storage, log: Sequence[LogFile], timestamp: int) -> int | None:
    """Offset of the first record with this timestamp or a later one, as a broker finds it."""
    for file in log:
        with storage.open(file.path) as read:
            for header in read_headers(read, file.size):
                if isinstance(header, Damage) or header.max_timestamp < timestamp or header.is_control:
                    continue
                found = _record_of_time(read, file, header, timestamp)
                if found is not None:
                    return found
    return None


def _record_of_time(read: ReadAt, file: LogFile, header: BatchHeader, timestamp: int) -> int | None:
    end = header.position + header.size_in_bytes
    batch = SegmentFile(read, file.size, header.position, end).next_batch()
    if not isinstance(batch, RecordBatch):
        return None
    try:
        return next((record.offset for record in batch if record.timestamp >= timestamp), None)
    except CorruptRecordError:
        # The task that comes to it says so.
        return batch.base_offset


def _wanted(log: Sequence[LogFile], selection: Selection) -> Iterator[tuple[LogFile, int]]:
    """The files that may hold records that are wanted, and the offset at which the next one begins."""
    for index, file in enumerate(log):
        # Copies of one segment begin at the same offset.
        later = (one.base_offset for one in log[index + 1 :] if one.base_offset != file.base_offset)
        behind = next((offset for offset in later if offset is not None), MAX_OFFSET)
        begin = file.base_offset or 0
        if file.size and behind > selection.from_offset and begin < selection.end_offset:
            yield file, behind


# ---- Ranges ------------------------------------------------------------------------------------------------
def _divided(
    storage: Storage, file: LogFile, selection: Selection, target: int, behind: int
) -> Iterator[FileRange]:
    cuts = [0, *(_cuts(storage, file, target) if file.size > target else []), file.size]
    if selection.aborted is not None:
        first = file.base_offset or 0
        kept = {
            producer_id: inside
            for producer_id, spans in selection.aborted.items()
            if (inside := [span for span in spans if span[1] >= first and span[0] < behind])
        }
        selection = replace(selection, aborted=kept)
    for start, end in pairwise(cuts):
        yield FileRange(file, start, end, selection)


def _cuts(storage: Storage, file: LogFile, target: int) -> list[int]:
    """Positions in the file at which a batch begins, about ``target`` bytes apart."""
    index = storage.content(file.path.removesuffix(".log") + ".index", _MAX_INDEX_BYTES)
    with storage.open(file.path, in_order=False) as read:
        cuts = _cuts_by_index(read, file, index, target) if index else None
        if cuts is None and file.is_remote:
            # A request for each batch costs more than the whole file, which one task reads.
            return []
        return _cuts_by_headers(read, file.size, target) if cuts is None else cuts


def _cuts_by_index(read: ReadAt, file: LogFile, index: bytes, target: int) -> list[int] | None:
    """``None`` if the index is not of this file, which happens to copies."""
    # Space that was taken beforehand is zeros; an entry may end with some.
    entries = index.rstrip(b"\0")
    entries = index[: -(-len(entries) // _INDEX_ENTRY.size) * _INDEX_ENTRY.size]
    if not entries or len(entries) % _INDEX_ENTRY.size:
        return None
    positions = [position for _, position in _INDEX_ENTRY.iter_unpack(entries)]
    if any(one >= then for one, then in pairwise(positions)):
        return None
    cuts: list[int] = []
    at = target
    while at < file.size:
        found = bisect_left(positions, at)
        if found == len(positions) or positions[found] >= file.size:
            break
        position = positions[found]
        offset = _INDEX_ENTRY.unpack_from(entries, found * _INDEX_ENTRY.size)[0] + (file.base_offset or 0)
        headers, _, _ = walk_headers(read(position, BATCH_OVERHEAD), position)
        if not headers or not (file.base_offset or 0) <= headers[0].base_offset <= offset:
            return None
        cuts.append(position)
        at = position + target
    return cuts


def _cuts_by_headers(read: ReadAt, size: int, target: int) -> list[int]:
    cuts: list[int] = []
    at = target
    for header in read_headers(read, size):
        if not isinstance(header, Damage) and header.position >= at:
            cuts.append(header.position)
            at = header.position + target
    return cuts


def _packed(ranges: Sequence[FileRange], target: int) -> list[list[FileRange]]:
    """Small files share a task, in order."""
    tasks: list[list[FileRange]] = []
    size = target
    for one in ranges:
        cost = one.end - one.start + _OPEN_COST_BYTES
        if not tasks or size + cost > target + _OPEN_COST_BYTES:
            tasks.append([])
            size = 0
        tasks[-1].append(one)
        size += cost
    return tasks
