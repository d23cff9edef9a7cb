from typing import Any

from typing_extensions import disjoint_base

from kafkacore.clock import Clock
from kafkacore.metrics import Sensor

@disjoint_base
class ApiCounts:
    total: Sensor
    remote: Sensor
    queue: Sensor
    errors: dict[int, int]
    def __init__(
        self, total: Sensor, remote: Sensor, queue: Sensor, clock: Clock, outer: str, inner: str
    ) -> None: ...
    def answered(self, began_ms: float, waited_since_ms: float, response: Any) -> None: ...
