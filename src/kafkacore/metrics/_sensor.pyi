from typing import Self, final

@final
class Sensor:
    """A ring of samples, each of which covers a time window.

    Averages, maxima and rates cover all samples in the ring. Until the ring is full, rates count the missing
    samples as empty, so that the first values do not give a huge rate.

    Parameters
    ----------
    name
        Name for messages.
    sample_count
        Number of samples, 1 or more.
    window_ms
        Duration of a sample, in milliseconds.
    parents
        Sensors that record the same values.

    Attributes
    ----------
    total, count, last
        Sum and number of all recorded values, and the last value.
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
        """Return the average of the sampled values; 0 without any."""
    def largest(self, now_ms: float) -> float:
        """Return the maximum of the sampled values; minus infinity without any, as in kafka-python."""
    def smallest(self, now_ms: float) -> float:
        """Return the minimum of the sampled values; infinity without any."""
    def latest(self, now_ms: float) -> float:
        """Return the last recorded value; NaN without any."""
    def rate(self, now_ms: float) -> float:
        """Return the sum of the sampled values per second."""
    def occurrence_rate(self, now_ms: float) -> float:
        """Return the number of sampled values per second."""
    def sum(self, now_ms: float) -> float:
        """Return the sum of all values since the sensor was created."""
    def occurrences(self, now_ms: float) -> float:
        """Return the number of all values since the sensor was created."""
