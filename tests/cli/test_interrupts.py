"""The first Ctrl-C asks, the second interrupts."""

import signal
import threading

import pytest

from kafkacore.cli.interrupts import asked_to_stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_asks_and_the_second_interrupts(number):
    former = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    told = []
    with asked_to_stop(lambda: told.append("once")) as wanted:
        assert not wanted()
        signal.raise_signal(number)
        # Not told in the handler: it may have come in the middle of a print.
        assert told == []
        assert wanted()
        assert wanted()
        assert told == ["once"]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == former


def test_handlers_come_back_whatever_happens():
    former = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="broken"), asked_to_stop(lambda: None):
        raise ValueError("broken")
    assert signal.getsignal(signal.SIGINT) is former


def test_thread_that_cannot_take_signals_is_never_asked():
    answers = []

    def work():
        with asked_to_stop(lambda: None) as wanted:
            answers.append(wanted())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [False]
