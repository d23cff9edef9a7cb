from typing import Self, final

@final
class Sensor:
    """A ring of samples, each of which covers a time window.

    Averages, maxima and rates cover all samples in the ring. Until the ring is full, rates count the missing
    samples as empty. Otherwise the first values would give a huge rate.

    Parameters
    ----------
    name
        Name of the sensor, for messages.
    sample_count
        Number of samples, 1 or more.
    window_ms
        Duration of a sample, in milliseconds.
    parents
        Sensors that also record every value of this sensor.

    Attributes
    ----------
    total, count, last
        Sum, number and last of all values recorded since the sensor was created.
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
        """Record a value at time ``now_ms``, in this sensor and in its parents."""
    def average(self, now_ms: float) -> float:
        """Return the average of the values in the samples; 0 without values."""
    def largest(self, now_ms: float) -> float:
        """Return the maximum of the values in the samples; -infinity without values, as in kafka-python."""
    def smallest(self, now_ms: float) -> float:
        """Return the minimum of the values in the samples; infinity without values."""
    def latest(self, now_ms: float) -> float:
        """Return the last recorded value; NaN before the first value."""
    def rate(self, now_ms: float) -> float:
        """Return the sum of the values in the samples, per second."""
    def occurrence_rate(self, now_ms: float) -> float:
        """Return the number of values in the samples, per second."""
    def sum(self, now_ms: float) -> float:
        """Return the sum of all values since the sensor was created."""
    def occurrences(self, now_ms: float) -> float:
        """Return the number of all values since the sensor was created."""
