# cython: auto_pickle=False, autotestdict=False
"""The answer to a request that has not come yet. A value or an error in, listeners called.

Unlike :class:`concurrent.futures.Future` nobody waits on it: the thread that owns the network client polls
until it is done. Does not know: what the request was, who polls. (Kafka's ``RequestFuture``.)

Compiled not for speed: the handler of a Ctrl-C runs between lines of Python, so there is no moment in here in
which a listener is neither waiting nor called, and no two threads are in here at once.
"""

cimport cython

from kafkacore.errors import RetriableError


cdef extern from "Python.h":
    # Compiled calls do not count towards Python's limit by themselves.
    int Py_EnterRecursiveCall(const char *where) except -1
    void Py_LeaveRecursiveCall()


class CallbackInterruptedError(RetriableError):
    """A Ctrl-C came while an answer was worked on: what was to come of it is not known."""


@cython.final
cdef class _Callbacks:
    """A listener made of two functions."""

    cdef readonly object on_success
    cdef readonly object on_failure

    def __cinit__(self, on_success, on_failure):
        self.on_success = on_success
        self.on_failure = on_failure


@cython.final
cdef class RequestFuture:
    """Completed once, with a value (which may be ``None``) or with an exception; by any thread."""

    cdef bint _done
    cdef object _value
    cdef object _error
    cdef list _listeners

    def __cinit__(self):
        self._listeners = []

    @staticmethod
    def failure(error):
        """A future that has failed already."""
        cdef RequestFuture future = RequestFuture()
        future._finish(None, error)
        return future

    @staticmethod
    def success(value):
        """A future that has succeeded already."""
        future = RequestFuture()
        future.complete(value)
        return future

    def is_done(self):
        return self._done

    def succeeded(self):
        return self._done and self._error is None

    def failed(self):
        return self._done and self._error is not None

    def is_retriable(self):
        """Whether the error, which must be there, may go away by trying again."""
        return bool(getattr(self.exception(), "retriable", False))

    def value(self):
        """The value; :class:`RuntimeError` unless the future succeeded."""
        if not self._done or self._error is not None:
            raise RuntimeError("the future has no value: it has not succeeded")
        return self._value

    def exception(self):
        """The error; :class:`RuntimeError` unless the future failed."""
        if self._error is None:
            raise RuntimeError("the future has no exception: it has not failed")
        return self._error

    def complete(self, value):
        """Succeed with ``value``.

        Raises
        ------
        TypeError
            If the value is an exception: that is a failure reported by the wrong door.
        RuntimeError
            If the future is completed already.
        """
        if isinstance(value, BaseException):
            raise TypeError("a future does not succeed with an exception; use fail()")
        self._finish(value, None)

    def fail(self, error):
        """Fail with ``error``; :class:`RuntimeError` if the future is completed already."""
        self._finish(None, error)

    def fail_unless_done(self, error):
        """Fail with ``error`` if nothing has come yet; if something has, see that all hear of it."""
        if self._done:
            self.fire_rest()
        else:
            self._finish(None, error)

    def complete_unless_done(self, value):
        """Succeed with ``value``, unless who waited has been told that a Ctrl-C came in between."""
        if self._done:
            self.fire_rest()
        else:
            self.complete(value)

    cdef int _finish(self, value, error) except -1:
        if self._done:
            raise RuntimeError("the future is completed already")
        self._value, self._error, self._done = value, error, True
        self.fire_rest()
        return 0

    def fire_rest(self):
        """Call the listeners that have not been called yet: one of them may have raised an error. A Ctrl-C in
        one keeps it from none of the others.
        """
        while self._listeners:
            listener = self._listeners.pop(0)
            Py_EnterRecursiveCall(" while the listeners of a future are called")
            try:
                self._fire(listener)
            except Exception:
                raise
            except BaseException:
                self.fire_rest()
                raise
            finally:
                Py_LeaveRecursiveCall()

    cdef int _fire(self, listener) except -1:
        if self._error is not None:
            listener.on_failure(self._error)
            return 0
        try:
            listener.on_success(self._value)
        except Exception:
            raise
        except BaseException:
            listener.on_failure(CallbackInterruptedError("interrupted while an answer was worked on"))
            raise
        return 0

    def add_listener(self, listener):
        """Have ``listener`` called on completion; at once if that has been already."""
        if self._done:
            self._fire(listener)
        else:
            self._listeners.append(listener)

    def add_callbacks(self, on_success, on_failure):
        """:meth:`add_listener` with two functions."""
        self.add_listener(_Callbacks(on_success, on_failure))

    def compose(self, adapter):
        """A future of another type: ``adapter(value, future)`` completes it on success; a failure passes
        unchanged.

        An exception out of the adapter is the new future's failure.
        """
        cdef RequestFuture adapted = RequestFuture()

        def on_success(value):
            try:
                adapter(value, adapted)
            except Exception as error:
                if adapted._done:
                    raise
                adapted._finish(None, error)

        self.add_callbacks(on_success, adapted.fail_unless_done)
        return adapted

    def chain(self, RequestFuture future not None):
        """Complete ``future`` the way this one completes."""
        self.add_callbacks(future.complete_unless_done, future.fail_unless_done)
