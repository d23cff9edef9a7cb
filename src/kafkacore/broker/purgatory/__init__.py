"""Delayed operations, the timer that expires them, and the queue of long-running changes."""
