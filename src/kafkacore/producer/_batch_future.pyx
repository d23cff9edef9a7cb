# cython: boundscheck=False, wraparound=False
"""The future of the rows of one ``send_batch()`` or ``send_arrow()``.

A row is one record of that call. Consecutive rows in the same batch form one segment, so a million rows need
only a few dozen segments. An object for a single row is created only on request.
"""

from array import array
from bisect import bisect_right
from functools import partial

cimport cython
from libc.stdint cimport int32_t, int64_t

from kafkacore.producer._future cimport FutureRecordMetadata, ProduceResult, deadline_of
from kafkacore.record._source cimport RecordSource
from kafkacore.wire._construction cimport made_only_by
from kafkacore.wire._payload cimport Payload
from kafkacore.wire.memory cimport free, malloc

from kafkacore.logs import logger_of
from kafkacore.wire.copying import refuse_copy

logger = logger_of("kafkacore.producer")


@cython.final
cdef class _Segment:
    """``count`` consecutive rows of the call in one batch, starting at position ``position``.

    In the batch, the first of these rows is the record ``index``.
    """

    cdef ProduceResult result
    cdef int index
    cdef Py_ssize_t position
    cdef Py_ssize_t count

    def __init__(self):
        raise TypeError("a _Segment can only be created by a BatchFuture")

    def leaves(self):
        """Return a list of this segment, or of the segments in the new batches if its batch was split."""
        cdef Py_ssize_t first, end, at
        cdef list parts = self.result._parts
        if parts is None:
            return [self]
        found = []
        for at in range(len(parts)):
            first = max(<Py_ssize_t>parts[at][0], self.index)
            end = self.index + self.count
            if at + 1 < len(parts):
                end = min(end, <Py_ssize_t>parts[at + 1][0])
            if first < end:
                found += _segment(
                    parts[at][1], <int>(first - <Py_ssize_t>parts[at][0]),
                    self.position + first - self.index, end - first,
                ).leaves()
        return found

    cdef _Segment pending(self):
        """Return the first segment of :meth:`leaves` that is not done; ``None`` if all are done."""
        cdef _Segment leaf
        for leaf in self.leaves():
            if not leaf.result.done:
                return leaf
        return None


cdef _Segment _segment(ProduceResult result, int index, Py_ssize_t position, Py_ssize_t count):
    cdef _Segment segment = _Segment.__new__(_Segment)
    segment.result = result
    segment.index = index
    segment.position = position
    segment.count = count
    return segment


cdef BatchFuture new_batch_future(RecordSource source, int64_t default_timestamp_ms, clock):
    cdef BatchFuture future = BatchFuture.__new__(BatchFuture)
    future._source = source
    future._default_timestamp_ms = default_timestamp_ms
    future._clock = clock
    future._segments = []
    return future


@cython.final
cdef class BatchFuture:
    """The outcome of one :meth:`~kafkacore.KafkaProducer.send_batch` or ``send_arrow``.

    The producer creates this object. ``len()`` is the number of rows, and ``[row]`` is the
    :class:`~kafkacore.producer.FutureRecordMetadata` of one row. The object keeps a reference to the sent
    columns.
    """

    def __init__(self):
        raise TypeError("a BatchFuture can only be created by KafkaProducer.send_batch() and send_arrow()")

    def __reduce__(self):
        refuse_copy(self, "the future waits for requests of this process; copy the offsets from future.get()")

    def __dealloc__(self):
        free(self._rows)
        free(self._positions)

    # ---- Calls of the appender -----------------------------------------------------------------------------

    cdef int32_t* order(self) except NULL:
        """Allocate the array position → row. The caller fills the array before it calls ``place()``."""
        self._rows = <int32_t*>malloc(max(self._source.row_count, 1) * sizeof(int32_t))
        if self._rows is NULL:
            raise MemoryError()
        return self._rows

    cdef int place(self, ProduceResult result, int first_index, Py_ssize_t count) except -1:
        """Assign the next ``count`` positions to the records of ``result`` from ``first_index`` on."""
        if count > 0:
            self._segments.append(_segment(result, first_index, self._placed, count))
            self._placed += count
        return 0

    # ---- Single rows ---------------------------------------------------------------------------------------

    def __len__(self):
        return self._source.row_count

    def __getitem__(self, Py_ssize_t row):
        cdef Py_ssize_t position, key_size, value_size
        cdef const unsigned char* data
        cdef _Segment segment
        if row < 0:
            row += self._source.row_count
        if not 0 <= row < self._source.row_count:
            raise IndexError(f"row {row} does not exist: there are {self._source.row_count} rows")
        position = self._position_of(row)
        segment = self._segments[bisect_right(self._segments, position, key=_position_of_segment) - 1]
        key_size = self._source.key(row, &data)
        value_size = self._source.value(row, &data)
        return FutureRecordMetadata(
            segment.result, <int>(segment.index + position - segment.position),
            self._source.timestamp(row, self._default_timestamp_ms), <int>key_size, <int>value_size, -1,
        )

    cdef Py_ssize_t _row_at(self, Py_ssize_t position) noexcept:
        return position if self._rows is NULL else self._rows[position]

    cdef Py_ssize_t _position_of(self, Py_ssize_t row) except -1:
        cdef Py_ssize_t position
        if self._rows is NULL:
            return row
        if self._positions is NULL:
            self._positions = <int32_t*>malloc(self._source.row_count * sizeof(int32_t))
            if self._positions is NULL:
                raise MemoryError()
            for position in range(self._source.row_count):
                self._positions[self._rows[position]] = <int32_t>position
        return self._positions[row]

    # ---- All rows ------------------------------------------------------------------------------------------

    cdef object _pending(self):
        """Return the first of the segments' ``leaves`` that is not done; ``None`` if all rows are done."""
        cdef _Segment segment, leaf
        for segment in self._segments:
            leaf = segment.pending()
            if leaf is not None:
                return leaf
        return None

    @property
    def is_done(self):
        """Whether every row was acknowledged or has failed."""
        return self._pending() is None

    def done(self):
        """Return whether every row was acknowledged or has failed."""
        return self._pending() is None

    def succeeded(self):
        """Return whether all rows were acknowledged."""
        return self._pending() is None and self._first_failure() is None

    def failed(self):
        """Return whether every row is done and at least one has failed."""
        return self._pending() is None and self._first_failure() is not None

    @property
    def exception(self):
        """The error that :meth:`get` raises: the error of the first row that failed.

        ``None`` until all rows are done, and also after success.
        """
        return self._first_failure() if self._pending() is None else None

    def get(self, timeout=None):
        """Wait until all rows are acknowledged.

        Parameters
        ----------
        timeout
            Seconds to wait. ``None`` sets no limit, but ``delivery_timeout_ms`` limits the wait anyway.

        Returns
        -------
        array.array of int
            Offset of each row in its partition, or -1 with ``acks=0``. The partition of a row is
            ``future[row].get().partition``.

        Raises
        ------
        KafkaTimeoutError
            Some rows are not done in time. The producer continues to send them.
        KafkaError
            A row failed. The method raises the error of the first such row, and ``error.row`` is the number
            of that row. ``future[row].exception`` is the error of any other row.
        """
        self._wait(timeout)
        error = self._first_failure()
        if error is not None:
            raise error
        return self._offsets()

    def _wait(self, timeout):
        cdef _Segment segment, leaf
        deadline_ms = deadline_of(self._clock, timeout)
        for segment in self._segments:
            while (leaf := segment.pending()) is not None:
                leaf.result._wait_until(deadline_ms, "not all rows have been acknowledged", timeout)

    def _offsets(self):
        cdef _Segment segment, leaf
        cdef Py_ssize_t at
        cdef Py_ssize_t count = self._source.row_count
        offsets = array("q", bytes(8 * count))
        cdef Payload memory = Payload(offsets)
        cdef int64_t *by_row = <int64_t *> memory.view.buf
        for segment in self._segments:
            for leaf in segment.leaves():
                for at in range(leaf.count):
                    by_row[self._row_at(leaf.position + at)] = (
                        leaf.result.base_offset + leaf.index + at if leaf.result.base_offset >= 0 else -1
                    )
        return offsets

    def _first_failure(self):
        """Return a copy of the error of the first row that failed, with the number of the row."""
        cdef _Segment segment, leaf
        cdef Py_ssize_t at
        cdef Py_ssize_t first = self._source.row_count
        found = None
        for segment in self._segments:
            for leaf in segment.leaves():
                if leaf.result.error is None:
                    continue
                for at in range(leaf.count):
                    if self._row_at(leaf.position + at) < first:
                        first = self._row_at(leaf.position + at)
                        found = leaf.result.error
                        if leaf.result._record_errors is not None:
                            found = leaf.result._record_errors.get(leaf.index + at, found)
        if found is None:
            return None
        # Importing it takes a part of the time in which a process starts.
        from copy import copy
        error = copy(found)
        error.row = first
        error.__notes__ = [*getattr(found, "__notes__", ()), f"row {first} of {self._source.row_count}"]
        return error

    # ---- Callbacks -----------------------------------------------------------------------------------------

    def add_callback(self, f, *args, **kwargs):
        """Call ``f(*args, future, **kwargs)`` with this object after all rows are acknowledged.

        The producer's network thread calls ``f``. If all rows are already done, this method calls ``f``.
        Exceptions of ``f`` are logged. Returns this object.
        """
        self._when_done(f, True, args, kwargs)
        return self

    def add_errback(self, f, *args, **kwargs):
        """Call ``f(*args, error, **kwargs)`` with the error of the first row that failed.

        ``f`` is called when all rows are done, as in :meth:`add_callback`. Returns this object.
        """
        self._when_done(f, False, args, kwargs)
        return self

    def _when_done(self, f, on_success, args, kwargs):
        cdef _Segment leaf
        if not callable(f):
            raise TypeError(f"a callback must be callable, not {f!r}")
        leaf = self._pending()
        if leaf is not None:
            # Wait for one pending batch at a time. When that batch is done, it calls this method again.
            FutureRecordMetadata(leaf.result, leaf.index).add_both(
                lambda _: self._when_done(f, on_success, args, kwargs)
            )
            return
        error = self._first_failure()
        if on_success != (error is None):
            return
        try:
            f(*args, self if error is None else error, **kwargs)
        except Exception:
            logger.exception("callback %r of %r failed", f, self)

    def __await__(self):
        """Wait in an event loop, and return or raise what :meth:`get` returns or raises.

        If the waiting task is cancelled, the producer continues to send the rows.
        """
        from kafkacore.producer._produce_future import iterator_of
        return iterator_of(self)

    cdef int watch(self, object function) except -1:
        """Call ``function()`` when all rows are done."""
        cdef _Segment leaf = self._pending()
        if leaf is None:
            function()
        else:
            # Wait for one pending batch at a time, as in _when_done().
            FutureRecordMetadata(leaf.result, leaf.index).watch(partial(_watch_again, self, function))
        return 0

    def __repr__(self):
        if not self.is_done:
            state = "pending"
        else:
            state = repr(self.exception or "acknowledged")
        return f"<BatchFuture of {self._source.row_count} rows, {state}>"


made_only_by(BatchFuture, "KafkaProducer.send_batch() and send_arrow()")
made_only_by(_Segment, "BatchFuture")


def _watch_again(BatchFuture future not None, function):
    future.watch(function)


def _position_of_segment(_Segment segment not None):
    return segment.position
