"""The outcomes of records as futures of asyncio.

A task that awaits such a future needs no further object: the future is its own iterator. All futures that a
response completes share one callback of the event loop, so completing a batch of a thousand records calls
``call_soon`` once.
"""

import asyncio
from contextvars import copy_context
from types import GenericAlias

cimport cython
from cpython.pythread cimport PyThread_get_thread_ident

from kafkacore.producer._batch_future cimport BatchFuture
from kafkacore.producer._future cimport FutureRecordMetadata
from kafkacore.wire._construction cimport made_only_by

from kafkacore.wire.copying import refuse_copy

cdef enum:
    # Number of futures whose callbacks run without giving other callbacks of the event loop a turn.
    FUTURES_PER_TURN = 32

# Event loop → its LoopFutures. Closed loops are removed when a further loop is added.
cdef dict by_loop = {}


@cython.final
cdef class LoopFutures:
    """The futures of one event loop.

    Parameters
    ----------
    loop
        The running event loop.
    """

    cdef object _loop
    cdef unsigned long _thread_id
    # Futures whose callbacks the event loop has to call.
    cdef list _due
    cdef bint _is_scheduled

    def __init__(self, loop not None):
        self._loop = loop
        self._thread_id = PyThread_get_thread_ident()
        self._due = []

    def of_record(self, FutureRecordMetadata record not None):
        """Return a future with the outcome of a record."""
        cdef ProduceFuture future = ProduceFuture.__new__(ProduceFuture)
        future._of = self
        future._record = record
        return future

    def of_rows(self, BatchFuture rows not None):
        """Return a future whose result is the offsets of many rows."""
        cdef ProduceFuture future = ProduceFuture.__new__(ProduceFuture)
        future._of = self
        future._rows = rows
        return future

    def of_batch(self, BatchFuture rows not None):
        """Return a future that is done when all rows are, and whose result is that of the first row."""
        cdef ProduceFuture future = self.of_rows(rows)
        future._is_batch = True
        return future

    cdef int _add(self, ProduceFuture future) except -1:
        """Let the event loop call the callbacks of ``future``. Any thread may call this method."""
        self._due.append(future)
        if self._is_scheduled:
            return 0
        self._is_scheduled = True
        return self._schedule()

    cdef int _schedule(self) except -1:
        try:
            if PyThread_get_thread_ident() == self._thread_id:
                self._loop.call_soon(self._call_due)
            else:
                self._loop.call_soon_threadsafe(self._call_due)
        except RuntimeError:
            # The loop is closed, and no task of the loop waits any more.
            if not self._loop.is_closed():
                raise
            self._is_scheduled = False
            self._due = []
        return 0

    def _call_due(self):
        cdef list due = self._due
        cdef Py_ssize_t called = 0
        self._due = []
        self._is_scheduled = False
        try:
            while called < len(due) and called < FUTURES_PER_TURN:
                called += 1
                (<ProduceFuture>due[called - 1])._call_callbacks()
        finally:
            if called < len(due):
                self._due = due[called:] + self._due
                if not self._is_scheduled:
                    self._is_scheduled = True
                    self._schedule()


cdef enum:
    WAITING, CANCELLED


@cython.final
@cython.no_gc
@cython.freelist(128)
cdef class ProduceFuture:
    """The outcome of a send as a future of asyncio, with the methods of :class:`asyncio.Future`.

    The producer creates this object. To cancel it ends the waits for it, but the producer continues to send
    the record.
    """

    cdef FutureRecordMetadata _record
    cdef BatchFuture _rows
    cdef bint _is_batch
    cdef LoopFutures _of
    # The first callback and its context; nearly every future has one. The list has further pairs.
    cdef object _callback, _context
    cdef list _more
    # The result, once it is known.
    cdef object _value
    cdef object _cancel_message
    cdef int _state
    cdef bint _is_watching
    # Whether the object is in ``_of._due``.
    cdef bint _is_due
    # A task that awaits the future sets and resets this flag. asyncio recognizes futures by this attribute.
    cdef public bint _asyncio_future_blocking

    # As in ``ProduceFuture[RecordMetadata]``.
    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self):
        raise TypeError("a ProduceFuture can only be created by AIOKafkaProducer.send()")

    def __reduce__(self):
        refuse_copy(self, "the future waits for a request of this process; copy its result")

    # ---- Outcome -------------------------------------------------------------------------------------------

    cdef bint _source_is_done(self) except -1:
        if self._record is not None:
            return self._record._current().done
        return self._rows._pending() is None

    def get_loop(self):
        """Return the event loop of the future."""
        return self._of._loop

    def done(self):
        """Return whether the outcome is known, or the future was cancelled."""
        return self._state == CANCELLED or self._source_is_done()

    def cancelled(self):
        """Return whether the future was cancelled."""
        return self._state == CANCELLED

    def cancel(self, msg=None):
        """End the waits for this future. The producer continues to send.

        Returns
        -------
        bool
            ``False`` if the future is done already.
        """
        self._asyncio_future_blocking = False
        if self.done():
            return False
        self._state = CANCELLED
        self._cancel_message = msg
        self._outcome_is_known()
        return True

    def _make_cancelled_error(self):
        if self._cancel_message is None:
            return asyncio.CancelledError()
        return asyncio.CancelledError(self._cancel_message)

    def result(self):
        """Return the ``RecordMetadata`` of the record, or the offsets of the rows.

        Raises
        ------
        KafkaError
            The record has failed. ``error.possibly_persisted`` is true if it may be in the log anyway.
        asyncio.CancelledError
            The future was cancelled.
        asyncio.InvalidStateError
            The outcome is not known yet.
        """
        self._check_known()
        if self._value is None:
            if self._record is not None:
                self._value = self._record.get()
            else:
                self._value = self._rows.get()
                if self._is_batch:
                    self._value = self._rows[0].get()
        return self._value

    def exception(self):
        """Return the error with which the record has failed, or ``None``. See :meth:`result`."""
        self._check_known()
        return self._record.exception if self._record is not None else self._rows.exception

    cdef int _check_known(self) except -1:
        if self._state == CANCELLED:
            raise self._make_cancelled_error()
        if not self._source_is_done():
            raise asyncio.InvalidStateError("the outcome is not known yet")
        return 0

    # ---- Callbacks -----------------------------------------------------------------------------------------

    def add_done_callback(self, fn, *, context=None):
        """Let the event loop call ``fn(future)`` when the outcome is known."""
        if context is None:
            context = copy_context()
        # Add the callback before the check, because another thread may complete the record in between.
        if self._callback is None:
            self._callback = fn
            self._context = context
        elif self._more is None:
            self._more = [(fn, context)]
        else:
            self._more.append((fn, context))
        if self.done():
            self._outcome_is_known()
        elif not self._is_watching:
            self._is_watching = True
            if self._record is not None:
                self._record.watch(self._outcome_is_known)
            else:
                self._rows.watch(self._outcome_is_known)

    def remove_done_callback(self, fn):
        """Remove all callbacks ``fn``, and return how many there were."""
        callbacks = self._take_callbacks()
        for callback, context in callbacks:
            if callback != fn:
                if self._callback is None:
                    self._callback, self._context = callback, context
                else:
                    self._more = self._more or []
                    self._more.append((callback, context))
        return len(callbacks) - (0 if self._callback is None else 1) - len(self._more or ())

    def _outcome_is_known(self):
        # The network thread of a synchronous producer calls this method too.
        if self._callback is not None and not self._is_due:
            self._is_due = True
            self._of._add(self)

    cdef list _take_callbacks(self):
        cdef list callbacks
        if self._callback is None:
            return []
        callbacks = [(self._callback, self._context)]
        if self._more is not None:
            callbacks += self._more
        self._callback = self._context = self._more = None
        return callbacks

    cdef int _call_callbacks(self) except -1:
        cdef object callback = self._callback, context = self._context
        cdef list more = self._more
        self._is_due = False
        self._callback = self._context = self._more = None
        if callback is not None:
            self._call(callback, context)
        if more is not None:
            for callback, context in more:
                self._call(callback, context)
        return 0

    cdef int _call(self, callback, context) except -1:
        try:
            context.run(callback, self)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._of._loop.call_exception_handler({
                "message": f"exception in callback {callback!r}", "exception": error, "future": self,
            })
        return 0

    # ---- Await ---------------------------------------------------------------------------------------------

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        if not self.done():
            self._asyncio_future_blocking = True
            return self
        raise StopIteration(self.result())

    def __repr__(self):
        if self._state == CANCELLED:
            state = "cancelled"
        else:
            state = repr(self._record if self._record is not None else self._rows)
        return f"<ProduceFuture {state}>"


made_only_by(ProduceFuture, "AIOKafkaProducer.send()")


def iterator_of(source):
    """Return an iterator with which a task of the running event loop awaits ``source``."""
    cdef LoopFutures futures
    loop = asyncio.get_running_loop()
    futures = by_loop.get(loop)
    if futures is None:
        for other in list(by_loop):
            if other.is_closed():
                by_loop.pop(other, None)
        by_loop[loop] = futures = LoopFutures(loop)
    return futures.of_record(source) if type(source) is FutureRecordMetadata else futures.of_rows(source)
