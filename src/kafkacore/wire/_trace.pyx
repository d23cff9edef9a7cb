"""Trace when records reach the stages of a client, for ``kafkacore bench latency --stages``.

Compiled code calls ``stamp`` at each stage. While no trace is in progress, this only reads a variable.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef struct Stamp:
    int64_t at_ns
    int64_t number
    Stage stage

is_on = False
cdef Stamp *_stamps = NULL
cdef Py_ssize_t _capacity = 0
# Number of all stamps, including those that newer stamps have replaced.
cdef Py_ssize_t _count = 0


# Stages by name. Creating an IntEnum would delay the start of every client.
STAGES = {
    "SEND_CALLED": <int> Stage.SEND_CALLED,
    "BATCH_SEALED": <int> Stage.BATCH_SEALED,
    "REQUEST_WRITTEN": <int> Stage.REQUEST_WRITTEN,
    "WAIT_ENDED": <int> Stage.WAIT_ENDED,
    "RESPONSE_READ": <int> Stage.RESPONSE_READ,
    "BATCH_COMPLETED": <int> Stage.BATCH_COMPLETED,
}


@cython.cdivision(True)
cdef int write_stamp(Stage stage, int64_t number) noexcept:
    global _count
    cdef timespec now
    cdef Stamp *at = &_stamps[_count % _capacity]
    clock_gettime(CLOCK_MONOTONIC, &now)
    at.at_ns = <int64_t> now.tv_sec * 1_000_000_000 + now.tv_nsec
    at.number = number
    at.stage = stage
    _count += 1
    return 0


def start(Py_ssize_t capacity):
    """Start a trace of the clients in this process.

    Parameters
    ----------
    capacity:
        Maximum number of stamps. A stamp takes 24 bytes. When all are used, a new stamp replaces the oldest.

    Raises
    ------
    ValueError
        The capacity is less than 1.
    RuntimeError
        A trace is in progress.
    """
    global is_on, _stamps, _capacity, _count
    if capacity < 1:
        raise ValueError(f"the capacity must be at least 1, not {capacity}")
    if is_on:
        raise RuntimeError("a trace is in progress: call stop() first")
    if capacity > PY_SSIZE_T_MAX // <Py_ssize_t> sizeof(Stamp):
        raise MemoryError
    _stamps = <Stamp *> PyMem_Malloc(capacity * sizeof(Stamp))
    if _stamps == NULL:
        raise MemoryError
    _capacity = capacity
    _count = 0
    is_on = True


def stop():
    """Stop the trace.

    Returns
    -------
    stamps : list of tuple
        Stage, time and number of each stamp, in order. The time is in nanoseconds of ``CLOCK_MONOTONIC``,
        which is the clock of ``time.monotonic_ns`` on Linux.
    lost : int
        Number of stamps before them that newer stamps have replaced.

    Raises
    ------
    RuntimeError
        No trace is in progress.
    """
    global is_on
    cdef Stamp *made = _stamps
    cdef Py_ssize_t at, count, capacity, first
    cdef list stamps = []
    if not is_on:
        raise RuntimeError("no trace is in progress: call start() first")
    # From here on, another thread may start the next trace.
    is_on = False
    count, capacity = _count, _capacity
    first = max(0, count - capacity)
    try:
        for at in range(first, count):
            stamps.append((
                <int> made[at % capacity].stage, made[at % capacity].at_ns, made[at % capacity].number
            ))
    finally:
        PyMem_Free(made)
    return stamps, first
