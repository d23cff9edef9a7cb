"""The machine's clock for a client whose hours pass when the test wants them to."""

from __future__ import annotations

from kafkacore import KafkaProducer
from kafkacore.clock import Clock

HOUR_MS = 3_600_000.0
#: Settings of a client for which hours may pass: only what the test waits for times out.
PATIENT = {"connections_max_idle_ms": 2**31 - 1, "metadata_max_age_ms": 2**31 - 1}


class ShiftedClock(Clock):
    """The machine's clock, with hours that pass when the test says so."""

    shift_ms = 0.0

    def monotonic_ms(self) -> float:
        return super().monotonic_ms() + self.shift_ms

    def let_pass(self, producer: KafkaProducer, hours: float) -> None:
        """Let time pass, and have the producer notice."""
        self.shift_ms += hours * HOUR_MS
        producer._client.wakeup()


def requests_in_flight(producer: KafkaProducer) -> int:
    """Number of requests without a response."""
    return int(producer.metrics()["producer-metrics"]["requests-in-flight"])
