"""The broker's timer for delayed operations and periodic tasks."""

from kafkacore.broker.purgatory._timer import SLOTS_OF_A_WHEEL, Timer, TimerTask

__all__ = ["SLOTS_OF_A_WHEEL", "Timer", "TimerTask"]
