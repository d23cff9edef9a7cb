"""The measured clients, each with the same two classes.

``Producer(settings)`` has ``send_all``, ``send_paced`` and ``close``. ``Consumer(settings, poll_records)``
has ``assign``, ``read``, ``rewind`` and ``close``. Each client has its own loop, as an application would
write it, without a layer between the loop and the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from kafkacore.bench.pacing import Pacer
from kafkacore.bench.task import ClientSettings

# kafkacore is not imported at run time, because it would add to the measured memory of another client.
if TYPE_CHECKING:
    from kafkacore.record import RecordColumns

#: Function that a peer calls with up to :data:`CHUNK_RECORDS` values, or with an empty list if a call of its
#: client returned no records.
Take = Callable[[list[bytes]], None]
#: Function that a peer calls with the columns of a poll, or with ``None`` if the poll returned no records. It
#: returns the number of rows.
TakeColumns: TypeAlias = "Callable[[RecordColumns | None], int]"
#: Number of values that are processed together. If all values of a poll were kept, librdkafka's client would
#: take 25 % more time, because it would allocate new memory each time.
CHUNK_RECORDS = 512
#: Maximum time in ms that a call waits for records.
POLL_MS = 200

#: Module of each peer in this package.
MODULES = {
    "kafkacore": "ours",
    "kafkacore-arrow": "ours",
    "confluent": "confluent",
    "kafka-python": "kafka_python",
    "aiokafka": "aiokafka_",
}


class Producer(Protocol):
    """Producer of a measured client."""

    def send_all(self, topic: str, values: Sequence[bytes], count: int) -> None:
        """Send ``count`` records, repeating the values, and wait until all are acknowledged."""

    def send_paced(self, topic: str, values: Sequence[bytes], pacer: Pacer) -> None:
        """Send each record when it is due, and record when it was acknowledged."""

    def close(self) -> None:
        """Close the client."""


@runtime_checkable
class ArrowProducer(Protocol):
    """The method that a producer of Arrow columns has in addition to :class:`Producer`."""

    def prepare(self, values: Sequence[bytes]) -> None:
        """Create the columns before the measurement."""


class Consumer(Protocol):
    """Consumer of a measured client."""

    def assign(self, topic: str, partitions: int) -> None:
        """Read all partitions of the topic from their start."""

    def subscribe(self, topic: str) -> None:
        """Read the topic from its start, as a member of the group in the settings."""

    def read(self, count: int, take: Take) -> None:
        """Read until ``count`` values have been received."""

    def rewind(self) -> None:
        """Seek to the start of all partitions and drop prefetched records."""

    def close(self) -> None:
        """Close the client."""


@runtime_checkable
class ArrowConsumer(Protocol):
    """The method that a consumer of Arrow columns has in addition to :class:`Consumer`."""

    def read_arrow(self, count: int, take: TakeColumns) -> None:
        """Read ``count`` records like :meth:`Consumer.read`, but pass them to ``take`` as columns."""


def producer_of(peer: str, settings: ClientSettings) -> Producer:
    """Create the producer of a peer."""
    module = import_module(f"{__name__}.{MODULES[peer]}")
    kind = module.ArrowProducer if peer.endswith("-arrow") else module.Producer
    made: Producer = kind(settings)
    return made


def consumer_of(peer: str, settings: ClientSettings, poll_records: int) -> Consumer:
    """Create the consumer of a peer."""
    made: Consumer = import_module(f"{__name__}.{MODULES[peer]}").Consumer(settings, poll_records)
    return made


def stream(values: Sequence[bytes], count: int) -> Iterator[bytes]:
    """Return an iterator that cycles through ``values`` until it has returned ``count`` of them.

    The iterator runs no Python code per value.
    """
    return islice(chain.from_iterable(repeat(values)), count)
