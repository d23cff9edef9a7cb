"""The broker's timer for delayed operations and periodic tasks: a hierarchical timing wheel.

Adding and cancelling a task take constant time. Only the network thread uses the timer. The design is that
of Kafka's ``SystemTimer`` and ``TimingWheel``.

Wheel 0 has 20 slots of 1 ms, wheel 1 has 20 slots of 20 ms, and so on. A task is stored in the finest wheel
that reaches its deadline. When a slot is due, its tasks run or move to a finer wheel. A heap of the slots
that have tasks (at most 20 for each wheel) determines which slot is due next.
"""

cimport cython
from libc.math cimport ceil, floor

import heapq

cdef enum:
    SLOTS = 20

SLOTS_OF_A_WHEEL = SLOTS
# Limit of the deadlines in milliseconds, so that the numbers of all slots fit into 64 bits.
cdef double LATEST_MS = 1e15
cdef object push = heapq.heappush
cdef object pop = heapq.heappop


cdef class TimerTask:
    """A task that runs at a deadline. A subclass implements :meth:`run`.

    Attributes
    ----------
    deadline_ms:
        Monotonic time in milliseconds at which the task is due, as last passed to :meth:`Timer.add`.
    """

    @property
    def is_armed(self):
        """Whether the task is in a timer."""
        return self.slot_tasks is not None

    def cancel(self):
        """Remove the task from its timer, if it is in one."""
        self.remove()

    cdef int remove(self) except -1:
        cdef dict tasks = self.slot_tasks
        if tasks is not None:
            self.slot_tasks = None
            del tasks[self]
        return 0

    def run(self):
        """Do the work. Called once per :meth:`Timer.add`, unless the task is cancelled or added again."""
        raise NotImplementedError(f"{type(self).__name__}.run")


@cython.final
cdef class _Slot:
    """A slot of a wheel: its tasks and the time at which it begins."""

    cdef long long begin_ms
    cdef bint is_queued
    cdef dict tasks

    def __cinit__(self):
        self.tasks = {}


cdef class Timer:
    """Timer with a resolution of one millisecond. Deadlines are rounded up, so that no task runs too early.

    Parameters
    ----------
    now_ms:
        Monotonic time in milliseconds when the timer is created.
    """

    def __init__(self, double now_ms=0.0):
        self._now = <long long> floor(now_ms)
        self._wheels = []
        self._queue = []
        self.overdue = {}

    def __len__(self):
        """Return the number of tasks in the timer."""
        cdef _Slot slot
        cdef Py_ssize_t count = len(self.overdue)
        for _, _, slot in self._queue:
            count += len(slot.tasks)
        return count

    def add(self, double deadline_ms, TimerTask task not None):
        """Schedule ``task`` for ``deadline_ms``. A task that is already in the timer is rescheduled."""
        self.add_task(deadline_ms, task)

    cdef int add_task(self, double deadline_ms, TimerTask task) except -1:
        cdef dict tasks = task.slot_tasks
        if not -LATEST_MS < deadline_ms < LATEST_MS:
            raise OverflowError(f"a task cannot have the deadline {deadline_ms} ms")
        if tasks is not None:
            if deadline_ms >= task.deadline_ms and tasks is not self.overdue:
                # When the slot is due, advance() moves the task. A heartbeat thus does not.
                task.deadline_ms = deadline_ms
                return 0
            task.remove()
        task.deadline_ms = deadline_ms
        return self.place(<long long> ceil(deadline_ms), task)

    def advance(self, double now_ms):
        """Run the tasks that are due at ``now_ms`` and return their number.

        A task added by a running task runs at the next call, even if it is due already. If a task raises an
        exception, the remaining tasks run at the next call.
        """
        cdef Py_ssize_t ran = 0
        cdef long long target = <long long> floor(now_ms)
        cdef long long tick
        cdef _Slot slot
        cdef TimerTask task
        # Removing the first key of a dictionary again and again takes quadratic time, so iterate over lists.
        for task in list(self.overdue):
            if task.slot_tasks is self.overdue:
                run(task)
                ran += 1
        while self._queue and <long long> (<tuple> self._queue[0])[0] <= target:
            slot = (<tuple> self._queue[0])[2]
            self._now = max(self._now, slot.begin_ms)
            for task in list(slot.tasks):
                # Another task may have cancelled or restarted this one.
                if task.slot_tasks is not slot.tasks:
                    continue
                tick = <long long> ceil(task.deadline_ms)
                if tick <= self._now:
                    run(task)
                    ran += 1
                else:
                    task.remove()
                    self.place(tick, task)
            self.dequeue()
        self._now = max(self._now, target)
        return ran

    def time_to_next_ms(self, double now_ms):
        """Return the milliseconds until :meth:`advance` must be called, or ``None`` if there are no tasks.

        The call can be needed before the first deadline, because tasks may have to move to a finer wheel.
        """
        cdef _Slot slot
        if self.overdue:
            return 0.0
        while self._queue:
            slot = (<tuple> self._queue[0])[2]
            if slot.tasks:
                return max(slot.begin_ms - now_ms, 0.0)
            self.dequeue()
        return None

    cdef int place(self, long long tick, TimerTask task) except -1:
        """Put a task, which is not in the timer, into the slot of its deadline."""
        cdef long long slot_ms = 1
        cdef long long number
        cdef Py_ssize_t level = 0
        cdef _Slot slot
        if tick <= self._now:
            task.slot_tasks = self.overdue
            self.overdue[task] = None
            return 0
        # Python's floor division, because the tests have times before 0.
        while tick // slot_ms - self._now // slot_ms >= SLOTS:
            level += 1
            slot_ms *= SLOTS
        while level >= len(self._wheels):
            self._wheels.append([_Slot() for _ in range(SLOTS)])
        number = tick // slot_ms
        slot = (<list> self._wheels[level])[number % SLOTS]
        if not slot.is_queued:
            # A slot is used for one period after another. If the slot is already queued, it is in use for the
            # period of this task. Its earlier periods are over, and its later periods are beyond the end of
            # the wheel.
            slot.is_queued = True
            slot.begin_ms = number * slot_ms
            self.ties += 1
            push(self._queue, (slot.begin_ms, self.ties, slot))
        task.slot_tasks = slot.tasks
        slot.tasks[task] = None
        return 0

    cdef int dequeue(self) except -1:
        cdef _Slot slot = pop(self._queue)[2]
        slot.is_queued = False
        return 0


cdef int run(TimerTask task) except -1:
    task.remove()
    task.run()
    return 0
