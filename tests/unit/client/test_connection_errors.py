"""Messages about unavailable brokers: each reason is logged once until the broker is available again."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from interleaving import at_each_step

from kafkacore.client.connection_errors import MAX_EARLY_CLOSES, MAX_REASONS, ConnectionErrors, reason_of
from kafkacore.errors import InvalidReceiveError
from kafkacore.network import ChannelState, ConnectionPhase


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def invalid(first: bytes) -> InvalidReceiveError:
    error = InvalidReceiveError("bootstrap-1.7: a frame")
    error.frame_size = int.from_bytes(first, signed=True)
    return error


def test_reason_is_said_once_and_anew_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    troubles = ConnectionErrors()
    for reason in ("refused", "refused", "silent", "refused", "silent"):
        troubles.failed("b:1", reason)
    said = warnings_in(caplog)
    assert [" refused;" in each or " silent;" in each for each in said] == [True, True]
    assert troubles.summary() == "b:1: silent"


def test_summary_is_whole_while_a_reason_is_added() -> None:
    seen: list[str] = []

    def prepare() -> tuple[Callable[[], None], Callable[[], None]]:
        errors = ConnectionErrors()

        def fail() -> None:
            for reason in ("refused", "silent", "refused", "refused"):
                errors.failed("b:1", reason)

        return fail, lambda: seen.append(errors.summary())

    assert set(at_each_step(ConnectionErrors.failed, prepare)) == {None}
    assert set(seen) == {"", "b:1: refused", "b:1: silent"}


def test_server_that_can_be_reached_again_is_said_and_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    troubles = ConnectionErrors()
    troubles.succeeded("b:1")
    assert warnings_in(caplog) == []
    troubles.failed("b:1", "refused")
    troubles.failed("c:2", "unknown")
    troubles.succeeded("b:1")
    assert troubles.summary() == "c:2: unknown"
    assert warnings_in(caplog)[-1] == "b:1 can be reached now"
    troubles.failed("b:1", "refused")
    assert "refused" in warnings_in(caplog)[-1]


def test_server_that_hangs_up_each_time_may_want_a_login(caplog: pytest.LogCaptureFixture) -> None:
    troubles = ConnectionErrors()
    for _ in range(MAX_EARLY_CLOSES):
        assert troubles.summary() == ""
        troubles.succeeded("b:1")
        troubles.closed_early("b:1")
    assert "requires a login" in troubles.summary()
    (warned,) = warnings_in(caplog)
    assert warned.startswith(
        "no answer from b:1: the broker closes the connection at the first request after"
    )
    troubles.closed_early("b:1")
    assert len(warnings_in(caplog)) == 1
    troubles.failed("b:1", "refused")
    assert troubles.summary() == "b:1: refused"


def test_server_that_answers_after_all_wants_no_login(caplog: pytest.LogCaptureFixture) -> None:
    troubles = ConnectionErrors()
    for times in (MAX_EARLY_CLOSES - 1, MAX_EARLY_CLOSES):
        for _ in range(times):
            troubles.closed_early("b:1")
        assert troubles.has_early_closes
        troubles.answered("b:1")
        assert not troubles.has_early_closes
        assert troubles.summary() == ""
    assert [each.partition(":")[0] for each in warnings_in(caplog)] == ["no answer from b", "b"]
    assert warnings_in(caplog)[-1] == "b:1 answers requests now"


def test_server_with_ever_new_reasons_does_not_flood(caplog: pytest.LogCaptureFixture) -> None:
    troubles = ConnectionErrors()
    for number in range(1000):
        troubles.failed("b:1", f"reason {number}")
    assert len(warnings_in(caplog)) == MAX_REASONS
    assert len(troubles.summary()) < 100


@pytest.mark.parametrize(
    ("first", "named"),
    [
        (b"HTTP", "the server speaks HTTP"),
        (b"SSH-", "the server speaks SSH"),
        (b"\x15\x03\x01\x00", "the port expects TLS"),
        (b"\x16\x03\x03\x40", "the port expects TLS"),
        (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
        (b"\x7f\x00\x00\x00", "a frame of 2130706432 bytes"),
    ],
)
def test_first_bytes_of_something_else_are_recognised(first: bytes, named: str) -> None:
    reason = reason_of(ChannelState(ConnectionPhase.READY, "not Kafka", invalid(first)))
    assert named in reason
    # With the connection id, each connection would count as a new reason.
    assert "bootstrap-1.7" not in reason


def test_server_that_hangs_up_without_a_word_may_want_tls() -> None:
    assert "expects TLS" in reason_of(
        ChannelState(ConnectionPhase.READY, "the peer has closed the connection")
    )


def test_refused_connection_is_called_as_the_system_calls_it() -> None:
    state = ChannelState(
        ConnectionPhase.NOT_CONNECTED, "Connection refused", OSError(111, "Connection refused")
    )
    assert reason_of(state) == "Connection refused"
