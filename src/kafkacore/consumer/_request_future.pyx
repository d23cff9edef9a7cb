# cython: auto_pickle=False, autotestdict=False
"""The future response of a request.

No thread waits for this future, unlike for :class:`concurrent.futures.Future`. Instead the thread that owns
the network client polls until the future is done. This is Kafka's ``RequestFuture``.

The module is compiled for safety and not for speed. Python runs signal handlers and switches threads only
between bytecodes. In compiled code, a Ctrl-C therefore cannot lose a listener, and only one thread at a time
can run this code.
"""

cimport cython

from kafkacore.errors import RetriableError


cdef extern from "Python.h":
    # Counts a compiled call towards Python's recursion limit. Otherwise compiled calls do not count.
    int Py_EnterRecursiveCall(const char *where) except -1
    void Py_LeaveRecursiveCall()


class CallbackInterruptedError(RetriableError):
    """A Ctrl-C interrupted the processing of a response, so the outcome is unknown."""


@cython.final
cdef class _Callbacks:
    """A listener that consists of two functions."""

    cdef readonly object on_success
    cdef readonly object on_failure

    def __cinit__(self, on_success, on_failure):
        self.on_success = on_success
        self.on_failure = on_failure


@cython.final
cdef class RequestFuture:
    """Future that is completed once, by any thread, with a value (which may be ``None``) or an exception."""

    cdef bint _done
    cdef object _value
    cdef object _error
    cdef list _listeners

    def __cinit__(self):
        self._listeners = []

    @staticmethod
    def failure(error):
        """Return a future that has failed."""
        cdef RequestFuture future = RequestFuture()
        future._finish(None, error)
        return future

    @staticmethod
    def success(value):
        """Return a future that has succeeded."""
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
        """Return whether the error may go away with a retry. The future must have failed."""
        return bool(getattr(self.exception(), "retriable", False))

    def value(self):
        """Return the value; raise ``RuntimeError`` unless the future has succeeded."""
        if not self._done or self._error is not None:
            raise RuntimeError("the future has no value: it has not succeeded")
        return self._value

    def exception(self):
        """Return the error; raise ``RuntimeError`` unless the future has failed."""
        if self._error is None:
            raise RuntimeError("the future has no exception: it has not failed")
        return self._error

    def complete(self, value):
        """Complete the future with ``value``.

        Raises
        ------
        TypeError
            If the value is an exception. Use :meth:`fail` for exceptions.
        RuntimeError
            If the future is already completed.
        """
        if isinstance(value, BaseException):
            raise TypeError("cannot complete a future with an exception; use fail()")
        self._finish(value, None)

    def fail(self, error):
        """Fail with ``error``; raise ``RuntimeError`` if the future is already completed."""
        self._finish(None, error)

    def fail_unless_done(self, error):
        """Fail with ``error`` unless the future is completed; in both cases call the remaining listeners."""
        if self._done:
            self.fire_rest()
        else:
            self._finish(None, error)

    def complete_unless_done(self, value):
        """Complete with ``value``, unless a Ctrl-C has already completed the future with an error.

        In both cases, call the remaining listeners.
        """
        if self._done:
            self.fire_rest()
        else:
            self.complete(value)

    cdef int _finish(self, value, error) except -1:
        if self._done:
            raise RuntimeError("the future is already completed")
        self._value, self._error, self._done = value, error, True
        self.fire_rest()
        return 0

    def fire_rest(self):
        """Call the listeners that have not been called yet.

        If a listener raises an error, the next call of this method calls the remaining listeners. If a Ctrl-C
        interrupts a listener, the remaining listeners are still called.
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
            listener.on_failure(CallbackInterruptedError("interrupted while a response was processed"))
            raise
        return 0

    def add_listener(self, listener):
        """Call ``listener`` on completion, or at once if the future is completed."""
        if self._done:
            self._fire(listener)
        else:
            self._listeners.append(listener)

    def add_callbacks(self, on_success, on_failure):
        """Add a listener that consists of two functions; see :meth:`add_listener`."""
        self.add_listener(_Callbacks(on_success, on_failure))

    def compose(self, adapter):
        """Return a future of another type, which ``adapter(value, future)`` completes on success.

        A failure of this future, or an exception of the adapter, becomes the failure of the new future.
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
        """Complete ``future`` with the value or the error of this future."""
        self.add_callbacks(future.complete_unless_done, future.fail_unless_done)
