"""Delayed operations and the timer that completes them.

Does not know: what an operation waits for.
"""
