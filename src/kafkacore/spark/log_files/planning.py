"""Divide segment files into tasks, on the driver.

Only headers of batches are read. A file is split with the help of its ``.index`` if there is one, and
otherwise by reading the length of each batch.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from kafkacore.errors import CorruptRecordError, KafkaConfigurationError
from kafkacore.logs import logger_of
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

logger = logger_of(__name__)

_INDEX_ENTRY = struct.Struct(">II")
#: Maximum size of an index. Kafka's limit is 10 MiB. An index has 8 bytes per 4 KiB of its segment, so a 2
#: GiB segment needs 4 MiB.
_MAX_INDEX_BYTES = 64 << 20
#: Default number of tasks, and minimum and maximum bytes of a task. A smaller task would take longer to start
#: than to run, and a larger task repeats too much work when it fails. The maximum is the same as in Spark's
#: own sources.
_TASKS, _MIN_TASK_BYTES, _MAX_TASK_BYTES = 64, 16 << 20, 128 << 20
#: Cost of opening a file, as the number of bytes that a task could read in that time.
_OPEN_COST_BYTES = 1 << 18


@dataclass(frozen=True)
class FileRange:
    """Range ``[start, end)`` of a file, made of whole batches, and the selection of its records."""

    file: LogFile
    start: int
    end: int
    selection: Selection


def plan_tasks(options: LogOptions) -> list[list[FileRange]]:
    """Return the ranges that each task reads, ordered by log and offset.

    Raises
    ------
    KafkaConfigurationError
        A path has no segment, or an option does not match the files.
    CorruptRecordError
        Damage hides whether a transaction was committed, and the mode is FAILFAST.
    """
    storage = Storage(options.storage)
    files = _subscribed(options, log_files(storage.find(options.paths), options.topic, options.partition))
    ranges: list[FileRange] = []
    target = _target_bytes(options, sum(file.size for file in files))
    for _, group in groupby(files, key=lambda file: file.log):
        log = list(group)
        selection = _selection(options, storage, log)
        for file, next_base_offset in _wanted(log, selection):
            ranges += _divided(storage, file, selection, target, next_base_offset)
    return _packed(ranges, target)


def _target_bytes(options: LogOptions, whole: int) -> int:
    """Return the target size of a task in bytes; by default, the size that gives about 64 tasks."""
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
        # As in Kafka's consumers, the pattern must match the whole name.
        return topic in options.subscribe if pattern is None else pattern.fullmatch(topic) is not None

    found = [file for file in files if file.topic is not None and is_wanted(file.topic)]
    if not found:
        there = sorted({file.topic for file in files if file.topic is not None})[:10]
        raise KafkaConfigurationError(
            f"no file belongs to a subscribed topic; topics of the files: {', '.join(there) or 'none'}"
        )
    return found


# ---- Which records -----------------------------------------------------------------------------------------
def _selection(options: LogOptions, storage: Storage, log: Sequence[LogFile]) -> Selection:
    """Return the offsets to read and the aborted transactions of one partition."""
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
    if stable is not None and stable < end and scan.possible_end is not None:
        what = f"the transaction that starts at offset {stable} was committed; all records from there on"
        _report_undecided(options, scan.possible_end, what)
    for first, last, place in scan.unread_ends:
        if first < end and last >= (begin or 0):
            what = f"the transaction that starts at offset {first} was committed; its records"
            _report_undecided(options, place, what)
    return Selection(begin or 0, end if stable is None else min(end, stable), scan.aborted)


def _report_undecided(options: LogOptions, place: str, what: str) -> None:
    """Report that records are skipped because of damage.

    The driver reports this, because the tasks might never read the damaged range.
    """
    sentence = f"{place}. The damage hides whether {what}"
    if options.mode == "FAILFAST":
        raise CorruptRecordError(
            f"{sentence} cannot be read. Set the option mode to PERMISSIVE or DROPMALFORMED to skip them, or "
            "isolation to read_uncommitted"
        )
    logger.warning("%s are skipped", sentence)


def _offset(bound: Bound, storage: Storage, log: Sequence[LogFile], option: str) -> int | None:
    first = log[0]
    if bound.timestamp is not None:
        return _offset_of_time(storage, log, bound.timestamp)
    if bound.offsets is None:
        return None
    if first.topic is None or first.partition is None:
        raise KafkaConfigurationError(
            f"{option} cannot be applied to {first.shown}, because its path does not contain the topic and "
            "the partition: set the options topic and partition"
        )
    return bound.offsets.get(TopicPartition(first.topic, first.partition))


def _offset_of_time(storage: Storage, log: Sequence[LogFile], timestamp: int) -> int | None:
    """Return the offset of the first record at or after a timestamp, as a broker finds it."""
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
        # The task that reads this batch reports the damage.
        return batch.base_offset


def _wanted(log: Sequence[LogFile], selection: Selection) -> Iterator[tuple[LogFile, int]]:
    """Yield the files that may contain selected records, each with the base offset of the next file."""
    for index, file in enumerate(log):
        # Copies of a segment have the same base offset. Skip them: the next file has another base offset.
        later = (one.base_offset for one in log[index + 1 :] if one.base_offset != file.base_offset)
        next_base_offset = next((offset for offset in later if offset is not None), MAX_OFFSET)
        begin = file.base_offset or 0
        if file.size and next_base_offset > selection.from_offset and begin < selection.end_offset:
            yield file, next_base_offset


# ---- Ranges ------------------------------------------------------------------------------------------------
def _divided(
    storage: Storage, file: LogFile, selection: Selection, target: int, next_base_offset: int
) -> Iterator[FileRange]:
    cuts = [0, *(_cuts(storage, file, target) if file.size > target else []), file.size]
    if selection.aborted is not None:
        first = file.base_offset or 0
        kept = {
            producer_id: inside
            for producer_id, spans in selection.aborted.items()
            if (inside := [span for span in spans if span[1] >= first and span[0] < next_base_offset])
        }
        selection = replace(selection, aborted=kept)
    for start, end in pairwise(cuts):
        yield FileRange(file, start, end, selection)


def _cuts(storage: Storage, file: LogFile, target: int) -> list[int]:
    """Return positions at which a batch starts, about ``target`` bytes apart."""
    index = storage.content(file.path.removesuffix(".log") + ".index", _MAX_INDEX_BYTES)
    with storage.open(file.path, in_order=False) as read:
        cuts = _cuts_by_index(read, file, index, target) if index else None
        if cuts is None and file.is_remote:
            # A request for each batch would cost more than reading the whole file in one task.
            return []
        return _cuts_by_headers(read, file.size, target) if cuts is None else cuts


def _cuts_by_index(read: ReadAt, file: LogFile, index: bytes, target: int) -> list[int] | None:
    """Return positions from the index, or ``None`` if the index does not match the file.

    The index of a copied file may not match the file.
    """
    # Remove the zeros at the end of a preallocated index, but keep the zeros that end its last entry.
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
    """Combine small ranges into tasks, in order."""
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
