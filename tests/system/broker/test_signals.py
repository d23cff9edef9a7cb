"""Signals to the broker process: none is lost, whenever it arrives."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from eventually import BUDGET_S

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.process.run import WAKE_UP, _wait_for_end, run_broker
from kafkacore.broker.process.server import KafkaBroker


def test_wait_goes_on_over_numbers_of_signals_and_ends_with_a_poke() -> None:
    read_end, write_end = os.pipe()
    ended = threading.Event()

    def wait() -> None:
        _wait_for_end(read_end, watch_stdin=False)
        ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    os.write(write_end, bytes([signal.SIGCHLD, signal.SIGWINCH]))
    assert not ended.is_set()
    os.write(write_end, bytes([signal.SIGTERM]) + WAKE_UP)
    thread.join(BUDGET_S)
    assert ended.is_set()
    os.close(read_end)
    os.close(write_end)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_that_comes_before_the_wait_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    config = BrokerConfig(data_dir=tmp_path, port=0)

    def interrupt(broker: KafkaBroker) -> None:
        # The handler runs before the wait begins, but its byte is still in the pipe.
        signal.raise_signal(number)

    assert run_broker(config, on_ready=interrupt) == 0
    assert signal.set_wakeup_fd(-1) == -1
