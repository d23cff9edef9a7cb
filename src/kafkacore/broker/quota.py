"""Quotas: how much a client may send, be sent and have worked for it, and how long it pauses for more.

Users, client ids and amounts in, milliseconds to pause out. Does not know: sockets, what a request says.
Owned by the network thread. Source of the behaviour: Kafka's ``ClientQuotaManager``,
``ClientRequestQuotaManager`` and ``Rate``.

What is over a quota is never refused: the answer goes out at once, says how long the pause is, and the
connection is not read for that long (KIP-219).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.config.quota_overrides import parse_overrides
from kafkacore.clock import Clock

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.requests._request import Request

PRODUCE_API_KEY = 0


class QuotaKind(IntEnum):
    """What is counted: bytes of Produce requests, bytes of records fetched, percent of the network thread."""

    PRODUCE = 0
    FETCH = 1
    REQUEST = 2


class QuotaEntity(NamedTuple):
    """Whose limit it is: a name, "" for all without one of their own, ``None`` where it does not matter."""

    user: str | None
    client_id: str | None


class WindowedRate:
    """How much a second, over the last samples: all but the newest count as whole, as in Kafka.

    Parameters
    ----------
    sample_count, sample_ms:
        ``quota.window.num`` and ``quota.window.size.seconds``.
    """

    __slots__ = ("_sample_count", "_sample_ms", "_samples", "used_ms")

    def __init__(self, sample_count: int, sample_ms: float) -> None:
        self._sample_count = sample_count
        self._sample_ms = sample_ms
        # Each the time at which it begins and its sum.
        self._samples: deque[list[float]] = deque()
        self.used_ms = 0.0

    def record(self, amount: float, now_ms: float) -> None:
        self.used_ms = now_ms
        if not self._samples or now_ms - self._samples[-1][0] >= self._sample_ms:
            self._samples.append([now_ms, 0.0])
        self._samples[-1][1] += amount

    def measure(self, now_ms: float) -> tuple[float, float]:
        """The rate per second, and the milliseconds that it is of."""
        samples = self._samples
        while samples and now_ms - samples[0][0] >= self._sample_count * self._sample_ms:
            samples.popleft()
        elapsed_ms = now_ms - samples[0][0] if samples else 0.0
        missing = self._sample_count - 1 - elapsed_ms // self._sample_ms
        # One that has just begun has not had the time that its rate is of.
        window_ms = max(elapsed_ms + max(missing, 0) * self._sample_ms, 1.0)
        return sum(amount for _, amount in samples) / window_ms * 1000, window_ms


_ANY_CLIENT = QuotaEntity(None, "")


class ClientQuota:
    """One kind of quota, for every client.

    Whoever has several limits obeys the most precise one, as in Kafka: of user and client id, of the user, of
    the client id; each by name, then the default. One limit of a user is for all of its clients together.
    What an API has set goes before the configuration.

    Parameters
    ----------
    default:
        Limit per second of a client that has none of its own; ``None`` for no limit.
    overrides:
        Client id → its limit.
    max_throttle_ms:
        The longest pause; ``None`` if it is as long as it takes.
    """

    def __init__(
        self,
        default: float | None,
        overrides: Mapping[str, float],
        *,
        sample_count: int,
        sample_ms: float,
        max_throttle_ms: float | None = None,
    ) -> None:
        self._default = default
        self._overrides = dict(overrides)
        self._sample_count = sample_count
        self._sample_ms = sample_ms
        self._max_throttle_ms = max_throttle_ms
        #: Who has not been seen for so long has a rate of nothing: to forget it changes none.
        self._inactive_ms = sample_count * sample_ms
        self._entities: dict[QuotaEntity, float] = {}
        # The one that was seen longest ago first.
        self._rates: OrderedDict[QuotaEntity, WindowedRate] = OrderedDict()

    @property
    def is_enabled(self) -> bool:
        """Whether any client has a limit."""
        return self._default is not None or bool(self._overrides) or bool(self._entities)

    def limit(self, client_id: str, user: str = "") -> float | None:
        """What a client may have in a second; ``None`` for as much as it wants."""
        return self._obeyed(client_id, user)[0]

    def _obeyed(self, client_id: str, user: str) -> tuple[float | None, QuotaEntity]:
        """The limit of a client, and whoever shares it."""
        entities, shared = self._entities, QuotaEntity(None, client_id)
        if entities:
            for name in (user, ""):
                for client in (client_id, ""):
                    limit = entities.get(QuotaEntity(name, client))
                    if limit is not None:
                        return limit, QuotaEntity(user, client_id)
                limit = entities.get(QuotaEntity(name, None))
                if limit is not None:
                    return limit, QuotaEntity(user, None)
            limit = entities.get(shared)
            if limit is not None:
                return limit, shared
        limit = self._overrides.get(client_id)
        if limit is None:
            limit = entities.get(_ANY_CLIENT, self._default)
        return limit, shared

    def set_entity(self, entity: QuotaEntity, limit: float | None) -> None:
        """Give an entity another limit; ``None`` takes it away."""
        if limit is None:
            self._entities.pop(entity, None)
        else:
            self._entities[entity] = limit

    def set_limit(self, client_id: str | None, limit: float | None) -> None:
        """Give a client, or all that have none of their own, another limit; ``None`` takes it away."""
        if client_id is None:
            self._default = limit
        elif limit is None:
            self._overrides.pop(client_id, None)
        else:
            self._overrides[client_id] = limit

    def max_in_window(self, client_id: str, user: str = "") -> float | None:
        """More than this at once is over the limit whatever was before."""
        limit = self.limit(client_id, user)
        return None if limit is None else limit * (self._sample_count - 1) * self._sample_ms / 1000

    def record_and_get_throttle_ms(
        self, client_id: str, amount: float, now_ms: float, user: str = ""
    ) -> float:
        """Count ``amount``; how long the client is to pause for its rate to be what it may be."""
        limit, shared = self._obeyed(client_id, user)
        if limit is None:
            return 0.0
        rate = self._rate(shared, now_ms)
        rate.record(amount, now_ms)
        observed, window_ms = rate.measure(now_ms)
        if observed <= limit:
            return 0.0
        throttle_ms = float(round((observed - limit) / limit * window_ms))
        return throttle_ms if self._max_throttle_ms is None else min(throttle_ms, self._max_throttle_ms)

    def record(self, client_id: str, amount: float, now_ms: float, user: str = "") -> None:
        """Count ``amount``, which may be negative, and let the next request find out."""
        limit, shared = self._obeyed(client_id, user)
        if limit is not None:
            self._rate(shared, now_ms).record(amount, now_ms)

    def rate(self, client_id: str, now_ms: float, user: str = "") -> float:
        """What a client with a limit, and whoever shares it, has had in a second, of late."""
        rate = self._rates.get(self._obeyed(client_id, user)[1])
        return 0.0 if rate is None else rate.measure(now_ms)[0]

    def _rate(self, shared: QuotaEntity, now_ms: float) -> WindowedRate:
        rate = self._rates.get(shared)
        if rate is None:
            rate = self._rates[shared] = WindowedRate(self._sample_count, self._sample_ms)
        self._rates.move_to_end(shared)
        while now_ms - (oldest := next(iter(self._rates.items())))[1].used_ms > self._inactive_ms:
            if oldest[1] is rate:
                break
            del self._rates[oldest[0]]
        return rate


class Quotas:
    """The quotas of a broker, and what they make of requests and responses."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._clock = clock
        sample_ms = config.quota_window_size_seconds * 1000.0
        self._kinds = {
            kind: ClientQuota(
                default,
                parse_overrides(f"quota.{name}.overrides", overrides),
                sample_count=config.quota_window_num,
                sample_ms=sample_ms,
                max_throttle_ms=sample_ms if kind is QuotaKind.REQUEST else None,
            )
            for kind, name, default, overrides in (
                (
                    QuotaKind.PRODUCE,
                    "producer",
                    config.quota_producer_default,
                    config.quota_producer_overrides,
                ),
                (QuotaKind.FETCH, "consumer", config.quota_consumer_default, config.quota_consumer_overrides),
                (QuotaKind.REQUEST, "request", config.quota_request_default, config.quota_request_overrides),
            )
        }
        #: Responses with a throttle time.
        self.throttled_count = 0
        #: Whether any client has a limit of any kind.
        self.is_enabled = any(quota.is_enabled for quota in self._kinds.values())

    def of(self, kind: QuotaKind) -> ClientQuota:
        return self._kinds[kind]

    def set_limit(self, kind: QuotaKind, client_id: str | None, limit: float | None) -> None:
        """As :meth:`ClientQuota.set_limit`, from the next request on."""
        self._kinds[kind].set_limit(client_id, limit)
        self.is_enabled = any(quota.is_enabled for quota in self._kinds.values())

    def set_entity(self, kind: QuotaKind, entity: QuotaEntity, limit: float | None) -> None:
        """As :meth:`ClientQuota.set_entity`, from the next request on."""
        self._kinds[kind].set_entity(entity, limit)
        self.is_enabled = any(quota.is_enabled for quota in self._kinds.values())

    def on_response(self, request: Request, response: object) -> None:
        """Record a response, also one that the client does not want, and throttle the client if need be.

        The throttle time is in the response, if its API has a field for it, and in ``request.throttle_ms``.
        """
        now_ms = self._clock.monotonic_ms()
        throttle_ms = 0.0
        if request.api_key == PRODUCE_API_KEY:
            throttle_ms = self._kinds[QuotaKind.PRODUCE].record_and_get_throttle_ms(
                request.client_id or "", request.size, now_ms, request.context.principal.name
            )
        if response is not None:
            throttle_ms = max(throttle_ms, self._request_throttle_ms(request, now_ms))
        self._pause(request, throttle_ms)
        if hasattr(response, "throttle_time_ms"):
            # Zero, too: the message may be one that is answered again and again.
            response.throttle_time_ms = int(throttle_ms)

    def fetch_throttle_ms(self, request: Request, size: int) -> int:
        """Whether a Fetch may be answered with ``size`` bytes of records: 0, else the pause after none."""
        now_ms = self._clock.monotonic_ms()
        client_id, user = request.client_id or "", request.context.principal.name
        fetch = self._kinds[QuotaKind.FETCH]
        throttle_ms = fetch.record_and_get_throttle_ms(client_id, size, now_ms, user)
        throttle_ms = max(throttle_ms, self._request_throttle_ms(request, now_ms))
        if throttle_ms > 0:
            fetch.record(client_id, -size, now_ms, user)
        self._pause(request, throttle_ms)
        return int(throttle_ms)

    def _request_throttle_ms(self, request: Request, now_ms: float) -> float:
        # A request that waits costs the thread nothing meanwhile.
        worked_ms = (request.waits_since_ms or now_ms) - request.began_ms
        return self._kinds[QuotaKind.REQUEST].record_and_get_throttle_ms(
            request.client_id or "", worked_ms / 10, now_ms, request.context.principal.name
        )

    def _pause(self, request: Request, throttle_ms: float) -> None:
        # It has been counted.
        request.quotas = None
        request.throttle_ms = throttle_ms
        self.throttled_count += throttle_ms > 0

    def max_fetch_bytes(self, request: Request) -> float | None:
        """More than this in one answer could only be throttled, for ever."""
        user = request.context.principal.name
        return self._kinds[QuotaKind.FETCH].max_in_window(request.client_id or "", user)
