"""What a test of a Kafka program needs: a broker in a process of its own, a clock that moves only when told."""

from kafkacore.testing.clock import VirtualClock

__all__ = ["VirtualClock"]
