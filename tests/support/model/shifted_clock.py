"""The system clock with hours added on demand."""

from __future__ import annotations

from kafkacore import KafkaProducer
from kafkacore.clock import Clock

HOUR_MS = 3_600_000.0
#: Settings of a client for which hours may pass, so that only what the test waits for times out.
PATIENT = {"connections_max_idle_ms": 2**31 - 1, "metadata_max_age_ms": 2**31 - 1}


class ShiftedClock(Clock):
    """The system clock, to which a test can add hours."""

    shift_ms = 0.0

    def monotonic_ms(self) -> float:
        return super().monotonic_ms() + self.shift_ms

    def let_pass(self, producer: KafkaProducer, hours: float) -> None:
        """Add time, and let the producer notice it."""
        self.shift_ms += hours * HOUR_MS
        producer._client.wakeup()


def requests_in_flight(producer: KafkaProducer) -> int:
    """Return the number of requests without a response."""
    return int(producer.metrics()["producer-metrics"]["requests-in-flight"])
