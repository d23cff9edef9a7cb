from typing import final

from kafkacore.clock import Clock
from kafkacore.metrics import Sensor

@final
class ApiStats:
    name: str
    total: Sensor
    remote: Sensor
    queue: Sensor
    errors: dict[int, int]
    def __init__(self, name: str, clock: Clock, outer: str, inner: str) -> None: ...
    def answered(self, began_ms: float, waited_since_ms: float, response: object) -> None: ...
