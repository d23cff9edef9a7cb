"""The ledger of a kill run records what each producer reports about its own records."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from eventually import eventually
from model.kill_run import KillRun
from peers.apache_kafka import free_ports


def test_send_that_librdkafka_gives_up_is_known_from_its_own_report() -> None:
    (port,) = free_ports(1)
    broker: Any = SimpleNamespace(bootstrap_servers=f"127.0.0.1:{port}")
    run = KillRun(broker, limit_s=0.5)
    producer = threading.Thread(target=run._produce_librdkafka, args=(2,))
    producer.start()
    try:
        eventually(lambda: run.ledger.outcomes)
    finally:
        run._stopped.set()
        producer.join()
    sends = sum(len(line) for line in run.ledger.outcomes.values())
    assert sends > 0
    assert run.ledger.given_up == sends
    assert run.ledger.check([], {}) == []
