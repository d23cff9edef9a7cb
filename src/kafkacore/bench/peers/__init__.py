"""The clients that are measured, each behind the same two classes.

``Producer(settings)`` has ``send_all``, ``send_paced`` and ``close``; ``Consumer(settings, poll_records)``
has ``assign``, ``read``, ``rewind`` and ``close``. A loop is written out for each set of calls, with
nothing between them and the records: what an application would write. Does not know: what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from kafkacore.bench.pacing import Pacer
from kafkacore.bench.task import ClientSettings

# Not imported: a process that measures another client is not to hold ours.
if TYPE_CHECKING:
    from kafkacore.record import RecordColumns

#: Takes values, at most :data:`HANDFUL`; an empty list of a call that gave none.
Take = Callable[[list[bytes]], None]
#: Takes columns and returns their number of rows; ``None`` of a call that gave none.
TakeColumns: TypeAlias = "Callable[[RecordColumns | None], int]"
#: So many values at a time are handed on and let go of. Kept for a whole poll, they cost librdkafka's client
#: a quarter of its time, for memory that is new each time.
HANDFUL = 512
#: How long a call that reads may wait for records.
POLL_MS = 200

#: Peer → its module here.
MODULES = {
    "kafkacore": "ours",
    "kafkacore-arrow": "ours",
    "confluent": "confluent",
    "kafka-python": "kafka_python",
    "aiokafka": "aiokafka_",
}


class Producer(Protocol):
    """A client that sends."""

    def send_all(self, topic: str, values: Sequence[bytes], count: int) -> None:
        """Send ``count`` records, the values over and over, and wait until all are acknowledged."""

    def send_paced(self, topic: str, values: Sequence[bytes], pacer: Pacer) -> None:
        """Send each record when it is due and note when it was acknowledged."""

    def close(self) -> None:
        """End the client."""


@runtime_checkable
class ArrowProducer(Protocol):
    """The part of a producer that sends Arrow columns."""

    def prepare(self, values: Sequence[bytes]) -> None:
        """Make the columns, before the clock starts."""


class Consumer(Protocol):
    """A client that reads."""

    def assign(self, topic: str, partitions: int) -> None:
        """Read all partitions of the topic from their start."""

    def subscribe(self, topic: str) -> None:
        """Read the topic as a member of the group that the settings name, from its start."""

    def read(self, count: int, take: Take) -> None:
        """Read until ``count`` values have come."""

    def rewind(self) -> None:
        """Go back to the start of all partitions; what has been fetched ahead is dropped."""

    def close(self) -> None:
        """End the client."""


@runtime_checkable
class ArrowConsumer(Protocol):
    """The part of a consumer that reads Arrow columns."""

    def read_arrow(self, count: int, take: TakeColumns) -> None:
        """As :meth:`Consumer.read`, by columns."""


def producer_of(peer: str, settings: ClientSettings) -> Producer:
    """The peer's producer."""
    module = import_module(f"{__name__}.{MODULES[peer]}")
    kind = module.ArrowProducer if peer.endswith("-arrow") else module.Producer
    made: Producer = kind(settings)
    return made


def consumer_of(peer: str, settings: ClientSettings, poll_records: int) -> Consumer:
    """The peer's consumer."""
    made: Consumer = import_module(f"{__name__}.{MODULES[peer]}").Consumer(settings, poll_records)
    return made


def stream(values: Sequence[bytes], count: int) -> Iterator[bytes]:
    """``count`` values, over and over; nothing of it runs in Python."""
    return islice(chain.from_iterable(repeat(values)), count)
