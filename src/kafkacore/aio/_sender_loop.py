"""Run the turns of a producer's Sender in an event loop, in place of the network thread."""

from __future__ import annotations

import asyncio
import atexit
import math
import warnings
from weakref import WeakSet

from kafkacore.aio import _greenlets
from kafkacore.aio._loop_clock import LoopClock
from kafkacore.aio._loop_resolver import loop_resolver
from kafkacore.aio._loop_wait import watched_descriptor
from kafkacore.network import Selector
from kafkacore.producer._partition_queue import PartitionQueue
from kafkacore.producer.sender_run import SenderRun


class SenderLoop:
    """Runs the turns of a Sender as callbacks of an event loop, with the interface of the network thread.

    A turn runs when a socket is ready, at the Sender's next deadline, and after :meth:`wake`. It runs the
    Sender once, so its time is bounded. Only while a host name is looked up, a turn waits, and then no other
    turn runs. If each record was sent alone lately, :meth:`wake` sends the next one without a turn. Only the
    event loop refers to a started object.

    Parameters
    ----------
    sender_run:
        The turns to run.
    loop:
        The running event loop.
    clock:
        Clock of the producer.

    Raises
    ------
    KafkaConfigurationError
        The selector uses poll(2).
    """

    def __init__(self, sender_run: SenderRun, loop: asyncio.AbstractEventLoop, clock: LoopClock) -> None:
        selector = sender_run.client.selector
        assert isinstance(selector, Selector)
        self._selector = selector
        self._fd = watched_descriptor(selector)
        self._run = sender_run
        self._loop = loop
        self._clock = clock
        self._is_watching = False
        #: Handle of the turn that the event loop runs next, if any.
        self._next_turn: asyncio.Handle | None = None
        #: Timer of the next turn, and its time, which may be earlier than necessary.
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = math.inf
        self._wait_ms = 0.0
        #: Whether a turn runs now.
        self._is_in_turn = False
        #: Whether the last turn that had something to send had one record only. Otherwise, other tasks
        #: probably send records in the same iteration of the loop, and a request with all of them is cheaper.
        self._sends_alone = False
        #: Whether an unexpected error has occurred, and the pause after it is not over.
        self._is_paused = False
        #: Runs the rest of a turn that waits; ``None`` if no turn waits.
        self._waiting_turn: asyncio.Task[None] | None = None
        sender_run.client.states.resolver = loop_resolver(loop)
        sender_run.client.event_wait = self
        sender_run.accumulator.sender_wakeup.wakeup = self.wake
        # While a request is in flight, the records of all tasks collect in a batch. It is sent when the
        # response has arrived, or when it is full.
        sender_run.accumulator.sender_wakeup.in_flight = sender_run.client.in_flight
        # No other thread polls, so send() cannot write a request itself: wake() does.
        sender_run.accumulator.records.direct = None

    # ---- Interface of the network thread -------------------------------------------------------------------

    @property
    def closing(self) -> bool:
        return self._run.closing

    @property
    def is_this_thread(self) -> bool:
        """Whether the caller runs in a turn. Turns call no code of the application that could wait."""
        return False

    def start(self) -> None:
        """Run the first turn in the next iteration of the event loop."""
        _running.add(self)
        self.wake()

    def initiate_close(self) -> None:
        """Reject further records, send the remaining records, then stop. Any thread may call this method."""
        self._run.initiate_close()
        self._wake_from_any_thread()

    def force_close(self) -> None:
        """Fail the remaining records, and stop."""
        if self._waiting_turn is not None:
            self._waiting_turn.cancel()
        self._run.force_close()
        self._wake_from_any_thread()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the last turn has ended."""
        self._run.await_end(timeout)

    def is_alive(self) -> bool:
        return not self._run.has_ended

    # ---- Turns ---------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Run a turn at the end of the loop's current iteration, or in the next one."""
        if (
            self._next_turn is None
            and self._waiting_turn is None
            and not self._is_paused
            and not self._has_sent_at_once()
        ):
            self._next_turn = self._loop.call_soon(self._turn)

    def _has_sent_at_once(self) -> bool:
        """Write the only waiting batch if no request is in flight, and return whether no turn is needed."""
        run = self._run
        direct = run.sender.direct
        if (
            direct is None
            or not self._sends_alone
            or run.client.in_flight.total > 0
            or self._is_in_turn
            or not self._is_watching
            or self._timer is None
            or run.closing
            or run.accumulator.is_forked
        ):
            return False
        if direct.send_waiting(self._clock.monotonic_ms(), True) < 0:
            return False
        run.accumulator.sender_wakeup.sender_runs()
        return True

    def _wake_from_any_thread(self) -> None:
        if self._loop.is_closed():
            # No turn can send the remaining records.
            self.end()
        else:
            self._loop.call_soon_threadsafe(self._turn)

    def _turn(self) -> None:
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None
        if self._run.has_ended or self._waiting_turn is not None:
            return
        if self._run.accumulator.is_forked:
            # The connections, and the loop's selector, belong to the parent process.
            return
        self._is_paused = False
        self._watch()
        try:
            rest = _greenlets.begin(self._run_turn)
        except BaseException:
            # Ctrl-C has interrupted the turn.
            self.wake()
            raise
        finally:
            self._clock.check()
        if rest is not None:
            self._unwatch()
            self._waiting_turn = self._loop.create_task(rest)
            self._waiting_turn.add_done_callback(self._turn_has_waited)

    def _run_turn(self) -> None:
        # Without a poll in this turn, the next turn is due at once.
        self._wait_ms = 0.0
        if not self._run.has_more():
            self.end()
            return
        active = self._run.accumulator.active
        if active:
            self._sends_alone = _is_one_record(active)
        self._is_in_turn = True
        try:
            pause_ms = self._run.turn()
        finally:
            self._is_in_turn = False
        if pause_ms > 0:
            self._pause(pause_ms)
        elif self._is_idle():
            # The timer of an earlier turn is early enough, because responses bring no deadline forward.
            self._run.accumulator.sender_wakeup.sender_runs()
        else:
            self._sleep(self._wait_ms)

    def _is_idle(self) -> bool:
        """Return whether this turn has only received responses, and the next one would do nothing."""
        run = self._run
        return (
            self._timer is not None
            and not run.closing
            and self._selector.has_only_received()
            and run.sender.is_idle
        )

    def _turn_has_waited(self, turn: asyncio.Task[None]) -> None:
        self._waiting_turn = None
        self._clock.check()
        self._turn()

    def _sleep(self, wait_ms: float) -> None:
        """Run the next turn after ``wait_ms``, if no event comes earlier."""
        if wait_ms <= 0:
            self.wake()
            return
        at_s = self._loop.time() + wait_ms / 1000.0
        # Keep a timer that fires earlier. Setting a timer for each request would cost more than the turn.
        if at_s < self._timer_at_s:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(at_s, self._on_timer)
            self._timer_at_s = at_s

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_at_s = math.inf
        self._turn()

    def _pause(self, pause_ms: float) -> None:
        self._is_paused = True
        self._unwatch()
        self._sleep(pause_ms)

    def end(self) -> None:
        """Close the connections, and fail the records that remain."""
        _running.discard(self)
        try:
            self._run.end()
        finally:
            self._clock.check()

    # ---- Waiting for events: kafkacore.client.EventWait ----------------------------------------------------

    def poll(self, timeout_ms: float, return_on_completed_sends: bool = True) -> None:
        """Do the I/O that is possible, and note how long the Sender would wait for more."""
        self._wait_ms = self._selector.poll_events(timeout_ms, return_on_completed_sends)

    def close(self) -> None:
        """Stop watching the selector, which is about to be closed."""
        self._unwatch()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None

    def _watch(self) -> None:
        if not self._is_watching:
            self._loop.add_reader(self._fd, self._turn)
            self._is_watching = True

    def _unwatch(self) -> None:
        if self._is_watching and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._is_watching = False


def _is_one_record(active: dict[PartitionQueue, None]) -> bool:
    if len(active) > 1:
        return False
    head = next(iter(active)).head
    return head is not None and head.record_count == 1


#: Producers of this process that are open.
_running: WeakSet[SenderLoop] = WeakSet()


def _end_all_at_exit() -> None:
    """Close all producers that are still open when the interpreter exits. No event loop runs any more."""
    for sender_loop in list(_running):
        if sender_loop._run.accumulator.is_forked:
            continue
        if not sender_loop.closing:
            warnings.warn(
                f"unclosed AIOKafkaProducer: {sender_loop._run.name}", ResourceWarning, stacklevel=2
            )
        sender_loop._run.initiate_close()
        sender_loop.end()


atexit.register(_end_all_at_exit)
