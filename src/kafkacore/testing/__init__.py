"""What a test of a Kafka program needs: a broker as a process, a clock that moves only when told.

For kafkacore's own tests also a scripted network (``mock_client``) and a disk that fails (``disk``).
"""

from typing import TYPE_CHECKING, Any

from kafkacore.testing.clock import VirtualClock

if TYPE_CHECKING:
    from kafkacore.testing.embedded_broker import EmbeddedBroker

__all__ = ["EmbeddedBroker", "VirtualClock"]


def __getattr__(name: str) -> Any:
    # pytest imports this package in every run, for the plugin: what only some tests need is loaded when
    # asked for.
    if name == "EmbeddedBroker":
        from kafkacore.testing.embedded_broker import EmbeddedBroker

        return EmbeddedBroker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
