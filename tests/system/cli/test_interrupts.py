"""The first Ctrl-C requests a stop, and the second one interrupts."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from kafkacore.cli.interrupts import asked_to_stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_asks_and_the_second_interrupts(number):
    former = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    calls = []
    with asked_to_stop(lambda: calls.append("once")) as wanted:
        assert not wanted()
        signal.raise_signal(number)
        # The signal handler does not make the call, because it may have interrupted a print().
        assert calls == []
        assert wanted()
        assert wanted()
        assert calls == ["once"]
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


INTERRUPTED_IN_A_TEXT = """
import sys
from kafkacore.cli import main, processes

def run(*_):
    # The helpers are imported already, as in the commands that start a broker or Spark.
    exec("raise KeyboardInterrupt")

main._run = run
sys.exit(main.main())
"""


def test_interrupt_while_python_runs_a_text_has_the_status_of_all_others(tmp_path):
    """Exit with status 130 when the interrupt arrives inside ``exec``, with which Python builds dataclasses.

    Python remembers such an interrupt, and by default kills the process by SIGINT when it ends.
    """
    (tmp_path / "interrupted.py").write_text(INTERRUPTED_IN_A_TEXT)
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (130, "kafkacore: interrupted\n")
