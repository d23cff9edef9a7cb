from typing import Self, final

@final
class Sensor:
    """A handful of samples, each of some seconds, of which the oldest makes room for the next.

    One record serves every figure that is taken of it. While not all samples are filled, rates are per second
    as if the missing ones had been there and empty, so that the first values make no enormous rate.

    Parameters
    ----------
    name
        For people.
    sample_count
        How many samples are kept, 1 or more.
    window_ms
        How long one is filled.
    parents
        Sensors that are told the same.

    Attributes
    ----------
    total, count, last
        Sum and number of all values ever recorded, and the last of them.
    """

    name: str
    total: float
    last: float
    count: int
    def __new__(
        cls,
        name: str,
        sample_count: int = 2,
        window_ms: float = 30_000.0,
        parents: tuple[Sensor, ...] = (),
    ) -> Self: ...
    def record(self, value: float, now_ms: float) -> int:
        """Note ``value``, now, here and with the parents."""
    def average(self, now_ms: float) -> float:
        """Of the values of the last while; 0 without any."""
    def largest(self, now_ms: float) -> float:
        """Of the values of the last while; minus infinity without any, as kafka-python has it."""
    def smallest(self, now_ms: float) -> float:
        """Of the values of the last while; infinity without any."""
    def latest(self, now_ms: float) -> float:
        """The last value that was recorded; not a number before the first."""
    def rate(self, now_ms: float) -> float:
        """Sum of the values of the last while, per second."""
    def occurrence_rate(self, now_ms: float) -> float:
        """Number of the values of the last while, per second."""
    def sum(self, now_ms: float) -> float:
        """Of all values ever recorded."""
    def occurrences(self, now_ms: float) -> float:
        """Number of all values ever recorded."""
