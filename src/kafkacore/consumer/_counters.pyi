from collections.abc import Callable
from typing import final

from kafkacore.clock import Clock
from kafkacore.metrics import Sensor
from kafkacore.structs import TopicPartition

@final
class TopicSensors:
    size: Sensor
    records: Sensor
    def __init__(self, size: Sensor, records: Sensor) -> None: ...

@final
class PartitionSensors:
    lag: Sensor
    lead: Sensor
    def __init__(self, lag: Sensor, lead: Sensor) -> None: ...

@final
class FetchCounter:
    size: Sensor
    records: Sensor
    latency: Sensor
    throttle: Sensor
    def __init__(
        self,
        register_topic: Callable[[str], TopicSensors],
        register_partition: Callable[[TopicPartition], PartitionSensors],
        clock: Clock,
        size: Sensor,
        records: Sensor,
        latency: Sensor,
        throttle: Sensor,
    ) -> None: ...
    def response(self, latency_ms: float, throttle_ms: float, part_count: int) -> ResponseTally: ...
    def position_moved(
        self,
        partition: TopicPartition,
        position: int,
        end_offset: int,
        start_offset: int,
        now_ms: float,
    ) -> None: ...
    def forget(self, assigned: set[TopicPartition]) -> list[TopicPartition]: ...

@final
class ResponseTally:
    def __init__(self, counter: FetchCounter, part_count: int) -> None: ...
    def part_is_done(self, topic: str, size: float, records: float) -> None: ...

@final
class PollCounter:
    between: Sensor
    idle_ratio: Sensor
    last_began_ms: float
    def __init__(self, clock: Clock, between: Sensor, idle_ratio: Sensor) -> None: ...
    def began(self) -> None: ...
    def ended(self) -> None: ...
