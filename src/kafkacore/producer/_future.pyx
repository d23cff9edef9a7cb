"""The results of batches, and the futures of their records.

A future consists only of a reference to the result of its batch, and of the record's index in the batch.
Completing a batch of ten thousand records therefore changes a single object. Only futures with a callback or
a waiting thread cost more.
"""

from functools import partial
from threading import Condition, RLock

cimport cython

from kafkacore.wire._trace cimport Stage, stamp

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaTimeoutError, RetriableError
from kafkacore.logs import logger_of
from kafkacore.producer.record_metadata import RecordMetadata
from kafkacore.wire.copying import refuse_copy

logger = logger_of("kafkacore.producer")


@cython.final
cdef class ProduceResult:
    """The outcome of one batch: a base offset, an error or, after a split, the results of the new batches.

    Parameters
    ----------
    topic_partition
        Partition of the batch.
    clock
        Clock for the waits.
    """

    def __init__(self, topic_partition, clock=SYSTEM_CLOCK):
        self.topic_partition = topic_partition
        self.base_offset = -1
        self.log_append_time_ms = -1
        self._clock = clock
        # The lock is reentrant, because the garbage collector may run a finalizer that uses a future.
        self._lock = RLock()

    def complete(self, long long base_offset=-1, long long log_append_time_ms=-1, error=None,
                 record_errors=None):
        """Set the outcome, wake waiting threads, then run the callbacks in the order of the records.

        Parameters
        ----------
        base_offset
            Offset of the batch's first record, or -1 with ``acks=0``.
        log_append_time_ms
            Timestamp that the broker set for the records, or -1 if the records keep their own timestamps.
        error
            Error of the batch; ``None`` for success.
        record_errors
            Index in the batch → error, for records that the broker has rejected individually (KIP-467).
        """
        with self._lock:
            assert not self.done and self._parts is None, "the batch already has an outcome"
            self.base_offset = base_offset
            self.log_append_time_ms = log_append_time_ms
            self.error = error
            self._record_errors = record_errors
            self.done = True
            stamp(Stage.BATCH_COMPLETED, base_offset)
            self._settled = self._watchers is None
            if self._condition is not None:
                self._condition.notify_all()
        if not self._settled:
            self._run_callbacks()

    cdef int _run_callbacks(self) except -1:
        """Run the callbacks, with those that are added meanwhile, so that none overtakes another."""
        cdef list watchers
        try:
            while True:
                with self._lock:
                    watchers, self._watchers = self._watchers, None
                    if watchers is None:
                        # From now on, a callback runs in the thread that adds it.
                        self._settle()
                        return 0
                watchers.sort(key=_index_of)
                for future, function, on_success in watchers:
                    # Catch even SystemExit, because a SystemExit on the network thread must not prevent the
                    # other callbacks.
                    (<FutureRecordMetadata>future)._call(function, on_success, BaseException)
        except BaseException:
            self._settle()
            raise

    cdef int _settle(self) except -1:
        with self._lock:
            self._settled = True
            if self._condition is not None:
                self._condition.notify_all()
        return 0

    def divide(self, list parts not None):
        """Replace this result by the results in ``parts`` after the batch has been split.

        Parameters
        ----------
        parts
            List of (index of the first record, ProduceResult).
        """
        cdef FutureRecordMetadata future
        cdef ProduceResult part
        # Check and keep a copy, because the caller may change the list, and futures read the list without
        # checks.
        parts = list(parts)
        _check_parts(self, parts)
        with self._lock:
            assert not self.done and self._parts is None, "the batch already has an outcome"
            self._parts = parts
            for watcher in self._watchers or ():
                future = watcher[0]
                part = future._current()
                if part._watchers is None:
                    part._watchers = []
                part._watchers.append(watcher)
            self._watchers = None
            if self._condition is not None:
                self._condition.notify_all()

    def wait(self, timeout_ms=None):
        """Wait until this result, with all of its parts, is done and the callbacks have run.

        Return ``False`` if the wait takes longer than ``timeout_ms``.
        """
        cdef double started_ms = self._clock.monotonic_ms()
        cdef object left_ms = timeout_ms
        if not self._wait_here(timeout_ms, True):
            return False
        for _, part in self._parts or ():
            if timeout_ms is not None:
                left_ms = timeout_ms - (self._clock.monotonic_ms() - started_ms)
            if not part.wait(left_ms):
                return False
        return True

    def _is_over(self):
        return self.done or self._parts is not None

    def _is_settled(self):
        return self._settled or self._parts is not None

    cdef int _wait_until(self, object deadline_ms, str what, object timeout) except -1:
        """Wait until the batch is done or split. At the deadline, raise KafkaTimeoutError.

        ``what`` is the first part of the error message, such as "the record was not acknowledged".
        """
        left_ms = None if deadline_ms is None else deadline_ms - self._clock.monotonic_ms()
        if left_ms is not None and left_ms < 0 or not self._wait_here(left_ms):
            raise KafkaTimeoutError(f"{what} within {timeout} seconds")
        return 0

    def _wait_here(self, timeout_ms, bint until_settled=False):
        is_over = self._is_settled if until_settled else self._is_over
        with self._lock:
            if is_over():
                return True
            if self._condition is None:
                self._condition = Condition(self._lock)
            return self._clock.wait_for(self._condition, is_over, timeout_ms)


def _index_of(tuple watcher not None):
    cdef FutureRecordMetadata future = watcher[0]
    return future._index


cdef int _check_parts(ProduceResult whole, list parts) except -1:
    cdef Py_ssize_t at
    cdef ProduceResult part
    cdef long long index, before = -1
    for at in range(len(parts)):
        if type(parts[at]) is not tuple or len(<tuple>parts[at]) != 2:
            raise TypeError(f"a part of a batch must be a tuple (index, ProduceResult), not {parts[at]!r}")
        index, part = <tuple>parts[at]
        if index <= before or (at == 0 and index != 0):
            raise ValueError(f"part {at} begins at {index}: parts must be sorted, and the first begins at 0")
        if part is None or part is whole or part._parts is not None:
            raise ValueError(f"part {at} must be the result of a new batch that has not been divided")
        before = index
    if before < 0:
        raise ValueError("a batch must be divided into at least one part")
    return 0


cdef object deadline_of(object clock, object timeout):
    """Return the deadline of a wait of ``timeout`` seconds that begins now; ``None`` for no limit."""
    return None if timeout is None else clock.monotonic_ms() + timeout * 1000.0


cdef FutureRecordMetadata new_future(long long timestamp_ms, int key_size, int value_size, int header_size):
    cdef FutureRecordMetadata future = FutureRecordMetadata.__new__(FutureRecordMetadata)
    future._timestamp_ms = timestamp_ms
    future._key_size = key_size
    future._value_size = value_size
    future._header_size = header_size
    return future


# The garbage collector does not track futures, because a loop of sends creates and drops millions of them.
# Only a callback could create a reference cycle, and callbacks are dropped when the batch is done.
@cython.final
@cython.no_gc
@cython.freelist(128)
cdef class FutureRecordMetadata:
    """The outcome of one :meth:`~kafkacore.KafkaProducer.send`.

    The producer creates this object. Methods and attributes are those of kafka-python. The error of a failed
    send has the attribute ``possibly_persisted``, which is true if the record may be in the log although the
    send failed.
    """

    def __init__(self, ProduceResult result not None, int index=0, long long timestamp_ms=-1,
                 int serialized_key_size=-1, int serialized_value_size=-1, int serialized_header_size=-1):
        if index < 0:
            raise ValueError(f"the index of a record must be 0 or more, not {index}")
        self._result = result
        self._index = index
        self._timestamp_ms = timestamp_ms
        self._key_size = serialized_key_size
        self._value_size = serialized_value_size
        self._header_size = serialized_header_size

    def __reduce__(self):
        refuse_copy(
            self, "the future waits for a request of this process; copy the RecordMetadata from future.get()"
        )

    cdef ProduceResult _current(self):
        # The assignments to index and result need no lock, because the GIL keeps other threads from running
        # in between.
        cdef tuple part
        while self._result._parts is not None:
            for part in reversed(self._result._parts):
                if self._index >= <int>part[0]:
                    self._index -= <int>part[0]
                    self._result = <ProduceResult>part[1]
                    break
        return self._result

    cdef object _error_of(self, ProduceResult result):
        if result._record_errors is not None:
            return result._record_errors.get(self._index, result.error)
        return result.error

    @property
    def topic_partition(self):
        """Partition of the record."""
        return self._result.topic_partition

    @property
    def is_done(self):
        """Whether the record was acknowledged or has failed."""
        return self._current().done

    def done(self):
        """Return whether the record was acknowledged or has failed."""
        return self._current().done

    def succeeded(self):
        """Return whether the record was acknowledged."""
        cdef ProduceResult result = self._current()
        return result.done and self._error_of(result) is None

    def failed(self):
        """Return whether the record has failed."""
        cdef ProduceResult result = self._current()
        return result.done and self._error_of(result) is not None

    def retriable(self):
        """Return whether the record has failed with an error after which another ``send()`` may succeed."""
        return isinstance(self.exception, RetriableError)

    @property
    def exception(self):
        """The error of the record; ``None`` while the record is not done, and after success."""
        cdef ProduceResult result = self._current()
        return self._error_of(result) if result.done else None

    @property
    def value(self):
        """The :class:`RecordMetadata`; ``None`` while the record is not done, and after a failure."""
        cdef ProduceResult result = self._current()
        cdef long long offset
        if not result.done or self._error_of(result) is not None:
            return None
        offset = result.base_offset + self._index if result.base_offset >= 0 else -1
        topic_partition = result.topic_partition
        return RecordMetadata(
            topic_partition[0], topic_partition[1], topic_partition, offset,
            result.log_append_time_ms if result.log_append_time_ms >= 0 else self._timestamp_ms,
            None, self._key_size, self._value_size, self._header_size,
        )

    def get(self, timeout=None):
        """Wait until the record is acknowledged.

        Parameters
        ----------
        timeout
            Seconds to wait. ``None`` sets no limit, but ``delivery_timeout_ms`` limits the wait anyway.

        Returns
        -------
        RecordMetadata

        Raises
        ------
        KafkaTimeoutError
            The record is not done in time. The producer continues to send it.
        KafkaError
            The record failed. ``error.possibly_persisted`` is true if the record may be in the log anyway.
        """
        cdef ProduceResult result = self._current()
        if not result.done:
            self._wait(timeout)
            result = self._current()
        error = self._error_of(result)
        if error is not None:
            # Reset the traceback, because many records share one error object, and each raise would extend
            # it.
            raise error.with_traceback(None)
        return self.value

    def _wait(self, timeout):
        deadline_ms = deadline_of(self._result._clock, timeout)
        while not self._current().done:
            self._result._wait_until(deadline_ms, "the record has not been acknowledged", timeout)

    def add_callback(self, f, *args, **kwargs):
        """Call ``f(*args, record_metadata, **kwargs)`` after the record is acknowledged.

        The producer's network thread calls ``f``. If that thread has already run the callbacks of the batch,
        this method calls ``f``.
        Exceptions of ``f`` are logged. ``f`` must not wait for another record of the same producer, because
        the wait would block the thread that completes that record. Returns the future.
        """
        return self._add(f, True, args, kwargs)

    def add_errback(self, f, *args, **kwargs):
        """Call ``f(*args, error, **kwargs)`` after a failure. Returns the future.

        See :meth:`add_callback`.
        """
        return self._add(f, False, args, kwargs)

    def add_both(self, f, *args, **kwargs):
        """Add ``f`` both as a callback and as an errback. Returns the future."""
        self._add(f, True, args, kwargs)
        return self._add(f, False, args, kwargs)

    def chain(self, future):
        """Complete ``future``, such as a :class:`~kafkacore.future.Future`, with this future's outcome.

        ``future`` gets the :class:`RecordMetadata` or the error. Returns ``self``.
        """
        return self.add_callback(future.success).add_errback(future.failure)

    def __await__(self):
        """Wait in an event loop, and return or raise what :meth:`get` returns or raises.

        If the waiting task is cancelled, the producer continues to send the record.
        """
        from kafkacore.producer._produce_future import iterator_of
        return iterator_of(self)

    cdef object _add(self, object function, bint on_success, tuple args, dict kwargs):
        if not callable(function):
            raise TypeError(f"a callback must be callable, not {function!r}")
        if args or kwargs:
            function = partial(function, *args, **kwargs)
        self.watch(function, on_success)
        return self

    cdef int watch(self, object function, object on_success=None) except -1:
        """Call ``function`` when the record is done; see ``ProduceResult._watchers``."""
        cdef ProduceResult result
        while True:
            result = self._current()
            with result._lock:
                if result._parts is not None:
                    continue
                if not result._settled:
                    if result._watchers is None:
                        result._watchers = []
                    result._watchers.append((self, function, on_success))
                    return 0
            break
        self._call(function, on_success, Exception)
        return 0

    def _call(self, function, on_success, guarded):
        error = None if on_success is None else self.exception
        if on_success is not None and on_success != (error is None):
            return
        try:
            if on_success is None:
                function()
            else:
                function(self.value if error is None else error)
        except guarded:
            logger.exception("callback %r for a record of %s failed", function, self._result.topic_partition)

    def __repr__(self):
        state = "pending" if not self.is_done else repr(self.exception or self.value)
        return f"<FutureRecordMetadata {self._result.topic_partition} {state}>"
