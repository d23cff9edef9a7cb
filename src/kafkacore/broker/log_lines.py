"""Writes log records to a stream, as text or as JSON.

Each record is one line, even if a name from a client contains line breaks. Repeated messages are suppressed.
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

#: Maximum number of lines with the same message in each time window. Further lines are counted, but not
#: written.
MAX_OF_A_KIND = 20
#: Length in seconds of the time window in which lines with the same message are counted.
WINDOW_S = 10.0
#: Maximum number of different messages that are counted at the same time.
MAX_KINDS = 1000
_MAX_LINE_LENGTH = 2000


class LineHandler(logging.Handler):
    """Handler that writes each record as one line.

    Parameters
    ----------
    stream:
        Stream to write to.
    as_json:
        Whether to write JSON objects with ``time``, ``level``, ``event``, ``message``, ``thread`` and the
        fields of the event.
    """

    def __init__(self, stream: TextIO, *, as_json: bool = False) -> None:
        super().__init__()
        self._stream = stream
        self._format = _as_json if as_json else _as_text
        #: Start of the window and number of records, for each logger, level and unformatted message.
        self._kinds: dict[tuple[str, int, str], tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._report_suppressed(record.created)
            if self._is_one_too_many(record):
                return
            self._write(record)
        except Exception:  # noqa: BLE001 - handleError is how logging handlers report errors
            self.handleError(record)

    def close(self) -> None:
        """Write how many lines have been suppressed, and close the handler."""
        self.acquire()
        try:
            for kind, (_, count) in self._kinds.items():
                self._write_left_out(kind, count)
            self._kinds.clear()
        finally:
            self.release()
        super().close()

    def _is_one_too_many(self, record: logging.LogRecord) -> bool:
        # Messages that differ only in their arguments, such as a client's address, are counted together.
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
        said = f"suppressed {count - MAX_OF_A_KIND} further lines of this message: {message}"
        self._write(logging.LogRecord(name, level, "", 0, said.replace("%", "%%"), None, None))

    def _write(self, record: logging.LogRecord) -> None:
        self._stream.write(self._format(record) + "\n")
        self._stream.flush()


class NameLogger(logging.LoggerAdapter[logging.Logger]):
    """Logger that escapes its string arguments, so that names from clients cannot add lines to the log."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), None)

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if self.isEnabledFor(level):
            # The record must report the source line of the caller, and not this line.
            kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
            escaped = [printable(each) if isinstance(each, str) else each for each in args]
            super().log(level, msg, *escaped, **kwargs)


def one_line(text: str) -> str:
    """Return ``text`` as one line of limited length, with control characters escaped."""
    return printable(text if len(text) <= _MAX_LINE_LENGTH else text[:_MAX_LINE_LENGTH] + "…")


def _as_text(record: logging.LogRecord) -> str:
    when = datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    line = f"{when} {record.levelname} [{record.threadName}] {one_line(_message(record))}"
    # Lines of a traceback are indented, so that they cannot be mistaken for records.
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
    """Return the ``extra`` argument of a log call, which adds the event and its fields to a JSON line."""
    return {"event": name, "fields": fields}


@contextmanager
def logging_to(stream: TextIO, level: str, *, as_json: bool = False) -> Iterator[None]:
    """Write the records of kafkacore's loggers with at least ``level`` to ``stream``."""
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
