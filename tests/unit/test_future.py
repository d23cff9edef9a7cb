"""The Future class, compared with kafka-python's."""

from __future__ import annotations

import inspect
import logging
from typing import Any

import kafka.future
import pytest

from kafkacore.errors import KafkaError, KafkaTimeoutError
from kafkacore.future import Future


@pytest.mark.parametrize("future_class", [Future, kafka.future.Future])
def test_callbacks_before_and_after_the_result_are_called_once(future_class: Any) -> None:
    calls: list[object] = []
    done, failed = future_class(), future_class()
    for future in (done, failed):
        future.add_callback(lambda *given, **named: calls.append((given, named)), "early", at=1)
        future.add_errback(calls.append)
        assert not future.is_done
    assert done.success(7) is done
    failed.failure(KafkaTimeoutError)
    done.add_both(calls.append)
    failed.add_both(calls.append)
    assert calls[0] == (("early", 7), {"at": 1})
    assert calls[1:] == [failed.exception, 7, failed.exception]
    assert (done.value, done.succeeded(), done.failed(), done.retriable()) == (7, True, False, False)
    assert (failed.value, failed.succeeded(), failed.failed()) == (None, False, True)


def test_chained_future_gets_the_value_or_the_error() -> None:
    first, second, third = Future(), Future(), Future()
    first.chain(second)
    second.chain(third)
    first.success(7)
    assert third.value == 7
    error = KafkaError("lost")
    failed = Future().failure(error)
    other = Future()
    failed.chain(other)
    assert other.exception is error
    assert not other.retriable()


def test_only_an_exception_is_a_failure() -> None:
    with pytest.raises(TypeError, match="an exception, not str"):
        Future().failure("lost")  # type: ignore[arg-type]


def test_failing_callback_is_logged_and_others_run(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    future, values = Future(), []
    future.add_callback(lambda value: 1 / value).add_callback(values.append)
    with caplog.at_level(logging.ERROR):
        future.success(0)
    assert values == [0]
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.setattr(Future, "error_on_callbacks", True)
    with pytest.raises(ZeroDivisionError):
        future.add_callback(lambda value: 1 / value)


def test_methods_are_kafka_pythons() -> None:
    def methods(future_class: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(future_class, callable) if not name.startswith("_")}

    assert methods(Future) - {"register"} == methods(kafka.future.Future)
