"""What became of a record. The fate of a batch in, a future per record out.

A future is no more than (batch, index): completing a batch of ten thousand records touches one object, and
only futures that carry a callback or have a waiter cost more. Does not know: the network, retries.
"""

import logging
from functools import partial
from threading import Condition, RLock

cimport cython

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaTimeoutError, RetriableError
from kafkacore.producer.record_metadata import RecordMetadata
from kafkacore.wire.copying import refuse_copy

logger = logging.getLogger("kafkacore.producer")


@cython.final
cdef class ProduceResult:
    """The fate of one batch: done once, with a base offset or an error, or divided into the fates of its
    parts.

    Parameters
    ----------
    topic_partition
        Where the batch goes.
    clock
        What waiting is measured by.
    """

    def __init__(self, topic_partition, clock=SYSTEM_CLOCK):
        self.topic_partition = topic_partition
        self.base_offset = -1
        self.log_append_time_ms = -1
        self._clock = clock
        # Taken again by a finaliser that looks at a future, should the garbage collector run it in here.
        self._lock = RLock()

    def complete(self, long long base_offset=-1, long long log_append_time_ms=-1, error=None,
                 record_errors=None):
        """State the outcome, wake who waits, then run callbacks in the order of the records.

        Parameters
        ----------
        base_offset
            Offset of the batch's first record, -1 where the broker was not asked (acks=0).
        log_append_time_ms
            The broker's timestamp of the records, -1 where theirs stands.
        error
            Why all of it failed; ``None`` for success.
        record_errors
            Index in the batch → its own error, where the broker blamed single records (KIP-467).
        """
        cdef list watchers
        with self._lock:
            assert not self.done and self._parts is None, "a batch has one outcome"
            self.base_offset = base_offset
            self.log_append_time_ms = log_append_time_ms
            self.error = error
            self._record_errors = record_errors
            self.done = True
            watchers = self._watchers
            self._watchers = None
            self._settled = watchers is None
            if self._condition is not None:
                self._condition.notify_all()
        if watchers is not None:
            try:
                watchers.sort(key=_index_of)
                for future, function, on_success in watchers:
                    # On the network thread, where not even SystemExit may take the other records' outcomes
                    # with it.
                    (<FutureRecordMetadata>future)._call(function, on_success, BaseException)
            finally:
                self._settle()

    cdef int _settle(self) except -1:
        with self._lock:
            self._settled = True
            if self._condition is not None:
                self._condition.notify_all()
        return 0

    def divide(self, list parts not None):
        """Hand this fate over to ``parts``, a list of (index of the first record, result), after a split."""
        cdef FutureRecordMetadata future
        cdef ProduceResult part
        # A copy, checked: the futures walk it without a look.
        parts = list(parts)
        _check_parts(self, parts)
        with self._lock:
            assert not self.done and self._parts is None, "a batch has one outcome"
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
        """Wait until this and all that it was divided into is done and its callbacks have run; whether so."""
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
        """Wait until this is done or divided; ``what`` has not happened within ``timeout`` s at the deadline.
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
            raise TypeError(f"a part is a tuple (index, ProduceResult), not {parts[at]!r}")
        index, part = <tuple>parts[at]
        if index <= before or (at == 0 and index != 0):
            raise ValueError(f"part {at} begins at {index}, after one at {before}; the first begins at 0")
        if part is None or part is whole or part._parts is not None:
            raise ValueError(f"part {at} is not an outcome that is still open")
        before = index
    if before < 0:
        raise ValueError("a batch is divided into one part or more")
    return 0


cdef object deadline_of(object clock, object timeout):
    """Of a wait that begins now, of so many seconds; ``None`` for one without end."""
    return None if timeout is None else clock.monotonic_ms() + timeout * 1000.0


cdef FutureRecordMetadata new_future(long long timestamp_ms, int key_size, int value_size, int header_size):
    cdef FutureRecordMetadata future = FutureRecordMetadata.__new__(FutureRecordMetadata)
    future._timestamp_ms = timestamp_ms
    future._key_size = key_size
    future._value_size = value_size
    future._header_size = header_size
    return future


# Not tracked by the garbage collector: a loop of sends makes and drops millions. Its one reference leads into
# a cycle only by a callback, and the result lets go of those when it is done.
@cython.final
@cython.no_gc
@cython.freelist(128)
cdef class FutureRecordMetadata:
    """The outcome of one :meth:`~kafkacore.KafkaProducer.send`, there once its batch has been answered.

    Made by the producer. Methods and attributes are kafka-python's. The error of a failed send says by its
    attribute ``possibly_persisted`` whether the record may nevertheless be in the log.
    """

    def __init__(self, ProduceResult result not None, int index=0, long long timestamp_ms=-1,
                 int serialized_key_size=-1, int serialized_value_size=-1, int serialized_header_size=-1):
        if index < 0:
            raise ValueError(f"the index of a record in its batch is 0 or more, not {index}")
        self._result = result
        self._index = index
        self._timestamp_ms = timestamp_ms
        self._key_size = serialized_key_size
        self._value_size = serialized_value_size
        self._header_size = serialized_header_size

    def __reduce__(self):
        refuse_copy(self, "it waits for a request of this process; copy future.get(), the RecordMetadata")

    cdef ProduceResult _current(self):
        # Safe because of the GIL: nothing here lets another thread in between result and index.
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
        """Where the record goes."""
        return self._result.topic_partition

    @property
    def is_done(self):
        """Whether the outcome is known."""
        return self._current().done

    def done(self):
        """Whether the outcome is known."""
        return self._current().done

    def succeeded(self):
        """Whether the record has been acknowledged."""
        cdef ProduceResult result = self._current()
        return result.done and self._error_of(result) is None

    def failed(self):
        """Whether the record has failed."""
        cdef ProduceResult result = self._current()
        return result.done and self._error_of(result) is not None

    def retriable(self):
        """Whether the record has failed with an error for which sending it again may help."""
        return isinstance(self.exception, RetriableError)

    @property
    def exception(self):
        """Why the record failed; ``None`` while unknown and after success."""
        cdef ProduceResult result = self._current()
        return self._error_of(result) if result.done else None

    @property
    def value(self):
        """The record's :class:`RecordMetadata`; ``None`` while unknown and after a failure."""
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
        """Wait for the outcome.

        Parameters
        ----------
        timeout
            Seconds to wait at most; ``None`` waits for as long as it takes (``delivery_timeout_ms`` ends it).

        Returns
        -------
        RecordMetadata

        Raises
        ------
        KafkaTimeoutError
            The outcome is not known in time; the record is still on its way.
        KafkaError
            The record failed; ``error.possibly_persisted`` says whether it may be in the log all the same.
        """
        cdef ProduceResult result = self._current()
        if not result.done:
            self._wait(timeout)
            result = self._current()
        error = self._error_of(result)
        if error is not None:
            # One error stands for many records: without this, each raise would lengthen its traceback for
            # ever.
            raise error.with_traceback(None)
        return self.value

    def _wait(self, timeout):
        deadline_ms = deadline_of(self._result._clock, timeout)
        while not self._current().done:
            self._result._wait_until(deadline_ms, "the record has not been acknowledged", timeout)

    def add_callback(self, f, *args, **kwargs):
        """Call ``f(*args, record_metadata, **kwargs)`` after success: on the producer's network thread, or at
        once if the outcome is known. What it raises is logged. Returns the future.

        On that thread nothing must wait for another record of the same producer: only that thread can bring
        its outcome.
        """
        return self._add(f, True, args, kwargs)

    def add_errback(self, f, *args, **kwargs):
        """Call ``f(*args, error, **kwargs)`` after a failure; see :meth:`add_callback`. Returns the future.
        """
        return self._add(f, False, args, kwargs)

    def add_both(self, f, *args, **kwargs):
        """Call ``f`` after either, see :meth:`add_callback` and :meth:`add_errback`. Returns the future."""
        self._add(f, True, args, kwargs)
        return self._add(f, False, args, kwargs)

    cdef object _add(self, object function, bint on_success, tuple args, dict kwargs):
        cdef ProduceResult result
        if not callable(function):
            raise TypeError(f"a callback is a function; {function!r} is not")
        if args or kwargs:
            function = partial(function, *args, **kwargs)
        while True:
            result = self._current()
            with result._lock:
                if result._parts is not None:
                    continue
                if not result.done:
                    if result._watchers is None:
                        result._watchers = []
                    result._watchers.append((self, function, on_success))
                    return self
            break
        self._call(function, on_success, Exception)
        return self

    def _call(self, function, on_success, guarded):
        error = self.exception
        if on_success != (error is None):
            return
        try:
            function(self.value if error is None else error)
        except guarded:
            logger.exception("callback %r of a record of %s failed", function, self._result.topic_partition)

    def __repr__(self):
        state = "pending" if not self.is_done else repr(self.exception or self.value)
        return f"<FutureRecordMetadata {self._result.topic_partition} {state}>"
