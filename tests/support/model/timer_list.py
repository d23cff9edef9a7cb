"""The simplest timer: a list of tasks that is searched from end to end."""

from __future__ import annotations

from math import ceil, floor


class TimerList:
    """A timer of named deadlines, which returns the names that expire, by millisecond."""

    def __init__(self, now_ms: float) -> None:
        self._now = floor(now_ms)
        self._tasks: dict[str, float] = {}

    def add(self, deadline_ms: float, name: str) -> None:
        self._tasks.pop(name, None)
        self._tasks[name] = deadline_ms

    def cancel(self, name: str) -> None:
        self._tasks.pop(name, None)

    def advance(self, now_ms: float) -> list[set[str]]:
        """Return what expires, grouped by millisecond; tasks added after their deadline come first."""
        target = floor(now_ms)
        groups: dict[int, set[str]] = {}
        for name, deadline_ms in self._tasks.items():
            # A task that was due when it was added runs with the first group.
            tick = max(ceil(deadline_ms), self._now)
            if tick <= max(target, self._now):
                groups.setdefault(tick, set()).add(name)
        for group in groups.values():
            for name in group:
                del self._tasks[name]
        self._now = max(self._now, target)
        return [groups[tick] for tick in sorted(groups)]

    def earliest_ms(self) -> float | None:
        return min(self._tasks.values(), default=None)

    def __len__(self) -> int:
        return len(self._tasks)
