"""What a broker's process says of itself: log records in, lines on a stream out, as text or as JSON.

One line a record, whatever a client has put into a name; and no more than a few of the same kind in a while.
Does not know: what is said.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

from kafkacore.structs import printable

#: Of one message so many in so long; the rest is counted.
MAX_OF_A_KIND = 20
WINDOW_S = 10.0
#: Kinds that are remembered at a time.
MAX_KINDS = 1000
_MAX_LINE_LENGTH = 2000


class LineHandler(logging.Handler):
    """Writes records to ``stream``, one line each.

    Parameters
    ----------
    as_json:
        A line is an object: ``time``, ``level``, ``event``, ``message``, ``thread``, and what the event has
        of its own.
    """

    def __init__(self, stream: TextIO, *, as_json: bool = False) -> None:
        super().__init__()
        self._stream = stream
        self._format = _as_json if as_json else _as_text
        #: Kind → when its window began, and how many of it have come since.
        self._kinds: dict[tuple[str, int, str], tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._report_suppressed(record.created)
            if self._is_one_too_many(record):
                return
            self._write(record)
        except Exception:  # noqa: BLE001 - logging's own way of saying that a line could not be written
            self.handleError(record)

    def close(self) -> None:
        """Say what has been left out so far."""
        self.acquire()
        try:
            for kind, (_, count) in self._kinds.items():
                self._write_left_out(kind, count)
            self._kinds.clear()
        finally:
            self.release()
        super().close()

    def _is_one_too_many(self, record: logging.LogRecord) -> bool:
        # The message before its arguments are put in: what differs only in the client's address is one kind.
        kind = (record.name, record.levelno, str(record.msg))
        if kind not in self._kinds and len(self._kinds) >= MAX_KINDS:
            return False
        began, count = self._kinds.get(kind, (record.created, 0))
        self._kinds[kind] = (began, count + 1)
        return count >= MAX_OF_A_KIND

    def _report_suppressed(self, now: float) -> None:
        ended = [kind for kind, (began, _) in self._kinds.items() if not 0 <= now - began < WINDOW_S]
        for kind in ended:
            self._write_left_out(kind, self._kinds.pop(kind)[1])

    def _write_left_out(self, kind: tuple[str, int, str], count: int) -> None:
        if count <= MAX_OF_A_KIND:
            return
        name, level, message = kind
        said = f"{count - MAX_OF_A_KIND} more lines like this one were left out: {message}"
        self._write(logging.LogRecord(name, level, "", 0, said.replace("%", "%%"), None, None))

    def _write(self, record: logging.LogRecord) -> None:
        self._stream.write(self._format(record) + "\n")
        self._stream.flush()


class NameLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger for what clients have given names to: a name makes no line of its own, whoever writes them."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), None)

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if self.isEnabledFor(level):
            # The caller's place in the sources, not this one.
            kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
            escaped = [printable(each) if isinstance(each, str) else each for each in args]
            super().log(level, msg, *escaped, **kwargs)


def one_line(text: str) -> str:
    """``text`` as one line that is not too long."""
    return printable(text if len(text) <= _MAX_LINE_LENGTH else text[:_MAX_LINE_LENGTH] + "…")


def _as_text(record: logging.LogRecord) -> str:
    when = datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    line = f"{when} {record.levelname} [{record.threadName}] {one_line(_message(record))}"
    # Further lines begin with a blank, so that none of them passes for a record.
    return line + "".join("\n    " + one_line(part) for part in _traceback(record))


def _as_json(record: logging.LogRecord) -> str:
    when = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    event: dict[str, Any] = {
        "time": f"{when}Z",
        "level": record.levelname,
        "event": getattr(record, "event", "log"),
        "message": _message(record),
        "thread": record.threadName,
        **getattr(record, "fields", {}),
    }
    if lines := _traceback(record):
        event["traceback"] = lines
    return json.dumps(event, default=str)


def _message(record: logging.LogRecord) -> str:
    return record.getMessage() if record.args else str(record.msg).replace("%%", "%")


def _traceback(record: logging.LogRecord) -> list[str]:
    if not record.exc_info or record.exc_info[1] is None:
        return []
    return "".join(traceback.format_exception(record.exc_info[1])).splitlines()


def event(name: str, **fields: object) -> dict[str, object]:
    """``extra`` of a log call: the event's name and what it has, for those who read JSON."""
    return {"event": name, "fields": fields}


@contextmanager
def logging_to(stream: TextIO, level: str, *, as_json: bool = False) -> Iterator[None]:
    """Let kafkacore's loggers, and no others, say what is of ``level`` or above on ``stream``."""
    ours = logging.getLogger("kafkacore")
    handler, former = LineHandler(stream, as_json=as_json), (ours.level, ours.propagate)
    ours.addHandler(handler)
    ours.setLevel(level)
    ours.propagate = False
    try:
        yield
    finally:
        ours.removeHandler(handler)
        handler.close()
        ours.setLevel(former[0])
        ours.propagate = former[1]
