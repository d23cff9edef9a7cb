"""The broker's log messages: one line for each record, whatever it contains, and a limit for each kind."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from kafkacore.broker.log_lines import MAX_OF_A_KIND, WINDOW_S, LineHandler, event, logging_to, one_line

logger = logging.getLogger("kafkacore.broker.test")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    with logging_to(stream, "INFO"):
        yield stream


def at(when: float, message: str, *arguments: object) -> logging.LogRecord:
    record = logging.LogRecord("kafkacore", logging.WARNING, "", 0, message, arguments, None)
    record.created = when
    return record


def test_line_has_time_level_thread_and_message(stream: io.StringIO) -> None:
    logger.warning("closing %s", "127.0.0.1:5")
    line = stream.getvalue()
    assert line.endswith(" WARNING [MainThread] closing 127.0.0.1:5\n")
    assert line[4] == line[7] == "-"


def test_level_says_from_which_on_and_other_libraries_say_nothing(stream: io.StringIO) -> None:
    logger.debug("too little")
    logging.getLogger("another.library").error("not ours")
    assert stream.getvalue() == ""


def test_text_of_a_client_makes_no_line_of_its_own(stream: io.StringIO) -> None:
    logger.warning("topic %s", "x\n2026-01-01 00:00:00,000 ERROR [MainThread] forged\x1b[31m\r\u202e")
    assert stream.getvalue().count("\n") == 1
    assert "x\\n2026" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
    assert "\u202e" not in stream.getvalue()


def test_lines_of_a_traceback_cannot_be_taken_for_records(stream: io.StringIO) -> None:
    try:
        raise ValueError("bad\n2026-01-01 00:00:00,000 ERROR [MainThread] forged")
    except ValueError:
        logger.exception("it failed")
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("it failed")
    assert any("ValueError: bad" in line for line in rest)
    assert all(line.startswith("    ") for line in rest)


def test_long_text_is_cut() -> None:
    assert len(one_line("x" * 10_000)) < 2100


def test_flood_of_one_kind_is_counted_and_told_in_the_end() -> None:
    stream = io.StringIO()
    handler = LineHandler(stream)
    for number in range(MAX_OF_A_KIND + 30):
        handler.handle(at(100.0, "refused %s", number))
        handler.handle(at(100.0, "something else")) if number == 40 else None
    assert len(stream.getvalue().splitlines()) == MAX_OF_A_KIND + 1
    handler.handle(at(100.0 + WINDOW_S, "refused %s", "later"))
    *_, left_out, later = stream.getvalue().splitlines()
    assert "suppressed 30 further lines of this message: refused %s" in left_out
    assert later.endswith("refused later")
    for number in range(MAX_OF_A_KIND + 5):
        handler.handle(at(101.0 + WINDOW_S, "refused %s", number))
    handler.close()
    assert "suppressed 6 further lines" in stream.getvalue().splitlines()[-1]


def test_json_line_is_an_event_with_what_it_has() -> None:
    stream = io.StringIO()
    with logging_to(stream, "INFO", as_json=True):
        logger.info("all of %s", "it", extra=event("loaded", topics=3))
        logger.info("at 100%")
        try:
            raise ValueError("bad")
        except ValueError:
            logger.exception("failed")
    loaded, plain, failed = map(json.loads, stream.getvalue().splitlines())
    assert (loaded["event"], loaded["topics"], loaded["level"]) == ("loaded", 3, "INFO")
    assert loaded["time"].endswith("Z")
    assert (plain["event"], plain["message"]) == ("log", "at 100%")
    assert failed["traceback"][-1] == "ValueError: bad"


def test_loggers_are_as_before_afterwards() -> None:
    ours = logging.getLogger("kafkacore")
    before = (ours.level, ours.propagate, list(ours.handlers))
    with logging_to(io.StringIO(), "DEBUG"):
        assert (ours.level, ours.propagate) == (logging.DEBUG, False)
    assert (ours.level, ours.propagate, ours.handlers) == before
