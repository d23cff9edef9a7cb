"""Random network faults: a thread that sets and lifts faults of a proxy until it is stopped.

After :meth:`stop`, or at the end of the block, the network has no faults and all connections have been reset.
"""

from __future__ import annotations

import random
import threading
from types import TracebackType

from kafkacore.testing import Direction, Ending, FaultProxy

PRODUCE = 0
FETCH = 1


class NetworkChaos:
    """``with NetworkChaos(proxy, seed): …``. Total outages last up to ``longest_s`` seconds."""

    def __init__(self, proxy: FaultProxy, seed: int, *, longest_s: float = 0.7) -> None:
        self._proxy = proxy
        self._chance = random.Random(seed)
        self._longest_s = longest_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        faults = [
            self._link,
            self._half_open,
            self._refusal,
            self._cut,
            self._cut,
            self._reset,
            self._proxy.lift,
        ]
        while not self._stopped.wait(self._chance.uniform(0.01, 0.15)):
            self._chance.choice(faults)()

    def _direction(self) -> Direction | None:
        return self._chance.choice([None, *Direction])

    def _pause(self) -> None:
        self._stopped.wait(self._chance.uniform(0.0, self._longest_s))

    def _link(self) -> None:
        delay_ms, jitter_ms = self._chance.uniform(0.0, 60.0), self._chance.uniform(0.0, 60.0)
        self._proxy.set_delay(delay_ms, jitter_ms, direction=self._direction())
        self._proxy.set_rate(self._chance.choice([None, 100_000.0, 1_000_000.0]), direction=self._direction())

    def _half_open(self) -> None:
        fault = self._chance.choice([self._proxy.set_stalled, self._proxy.set_black_hole])
        fault(True, direction=self._direction())
        self._pause()
        fault(False)

    def _refusal(self) -> None:
        self._proxy.set_refusing()
        self._pause()
        self._proxy.set_refusing(False)

    def _cut(self) -> None:
        api_key, number = self._chance.choice([PRODUCE, FETCH]), self._chance.randint(1, 4)
        after, ending = self._chance.randrange(3_000), self._chance.choice(list(Ending))
        if self._chance.random() < 0.5:
            self._proxy.cut_request(api_key, after, number=number, ending=ending)
        else:
            self._proxy.cut_response(api_key, after, number=number, ending=ending)

    def _reset(self) -> None:
        self._proxy.reset_connections(self._chance.choice([Ending.FIN, Ending.RST]))

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._proxy.lift()
        self._proxy.reset_connections()

    def __enter__(self) -> NetworkChaos:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()
