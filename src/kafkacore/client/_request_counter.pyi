from collections.abc import Callable
from typing import final

from kafkacore.metrics import Sensor

@final
class ConnectionSensors:
    sent: Sensor
    received: Sensor
    latency: Sensor
    throttle: Sensor
    def __init__(self, sent: Sensor, received: Sensor, latency: Sensor, throttle: Sensor) -> None: ...

@final
class RequestCounter:
    def __init__(self, register_node: Callable[[int], ConnectionSensors], waits: Sensor) -> None: ...
    def request_sent(self, node_id: int, size: float, now_ms: float) -> None: ...
    def response_received(
        self, node_id: int, size: float, latency_ms: float, throttle_ms: float, now_ms: float
    ) -> None: ...
    def waited(self, duration_ms: float, now_ms: float) -> None: ...
