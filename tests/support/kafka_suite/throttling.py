"""Limits of clients and the throttle times that they had, for the stand-ins in Java."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkacore.broker.quota import ClientQuota, QuotaEntity, QuotaKind, Quotas
from kafkacore.broker.requests._request import Request
from kafkacore.protocol.generated.api_key import ApiKey

#: Quota types of clients, by Kafka's names.
KINDS = {"Produce": QuotaKind.PRODUCE, "Fetch": QuotaKind.FETCH, "Request": QuotaKind.REQUEST}


class Throttling:
    """Records the longest throttle time per quota type and entity, and per API. Any thread may read it."""

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        #: Milliseconds by quota type and entity. 0 stands for a client that was never throttled.
        self.of_clients: dict[tuple[str, QuotaEntity], float] = {}
        #: Milliseconds by API.
        self.of_apis: dict[str, float] = {"PRODUCE": 0.0, "FETCH": 0.0}
        for name, kind in KINDS.items():
            quota = quotas.of(kind)
            quota.record_and_get_throttle_ms = self._recorded(name, quota)  # type: ignore[method-assign]
        self._pause = quotas._pause
        quotas._pause = self._paused  # type: ignore[method-assign]

    def _recorded(self, name: str, quota: ClientQuota) -> Callable[..., float]:
        original = quota.record_and_get_throttle_ms

        def record_and_get_throttle_ms(client_id: str, amount: float, now_ms: float, user: str = "") -> float:
            throttle_ms = original(client_id, amount, now_ms, user)
            key = name, quota._limits.obeyed(client_id, user)[1]
            self.of_clients[key] = max(self.of_clients.get(key, 0.0), throttle_ms)
            return throttle_ms

        return record_and_get_throttle_ms

    def _paused(self, request: Request, throttle_ms: float) -> None:
        api = ApiKey(request.api_key).name
        self.of_apis[api] = max(self.of_apis.get(api, 0.0), throttle_ms)
        self._pause(request, throttle_ms)

    def described(self) -> dict[str, Any]:
        """Return all throttle times."""
        return {
            "clients": [
                [name, entity.user or "", entity.client_id or "", throttle_ms]
                for (name, entity), throttle_ms in list(self.of_clients.items())
            ],
            "apis": dict(self.of_apis),
        }

    def limit(self, name: str, user: str, client_id: str) -> float | None:
        """Return the limit of a client, or ``None`` for no limit."""
        return self._quotas.of(KINDS[name]).limit(client_id, user)
