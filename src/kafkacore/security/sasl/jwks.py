"""The public keys with which a broker verifies tokens: a JWKS (RFC 7517) in a file or at an HTTPS URL.

Keys that are part of a token are never used. Symmetric keys are not used either, because whoever can verify
with such a key can also sign with it. This module needs the extra ``[oauth]``.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.logs import logger_of
from kafkacore.security.https import HttpsOptions, checked_url, fetch
from kafkacore.security.sasl.oauth_token import json_object

logger = logger_of(__name__)

#: Broker property with the URL of the key set.
JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
#: Maximum number of unknown key ids to remember, so that each of them causes only one fetch.
MAX_MISSING_IDS: Final = 1000
#: How long an unknown key id is remembered, in milliseconds.
MISSING_FOR_MS: Final = 60_000.0
#: Minimum time between the last fetch and a fetch that an unknown key id causes, in milliseconds.
MIN_EXPEDITED_MS: Final = 10_000.0
MAX_KEY_ID_CHARS: Final = 1000
#: Minimum time between two checks whether a file has changed, in milliseconds.
FILE_LOOK_MS: Final = 1000.0
MIN_RSA_BITS: Final = 2048
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"})
_KEY_TYPES: Final = frozenset({"RSA", "EC", "OKP"})


class VerificationKey(NamedTuple):
    """A public key.

    ``algorithm`` is the only algorithm with which the key set allows the key to be used. ``None`` means that
    the key set does not restrict the algorithm.
    """

    jwk: jwt.PyJWK
    algorithm: str | None

    def supports(self, algorithm: str) -> bool:
        """Return whether the key may verify signatures of this algorithm."""
        if self.algorithm is not None:
            return self.algorithm == algorithm
        if self.jwk.key_type == "RSA":
            return algorithm[:2] in ("RS", "PS")
        return self.jwk.algorithm_name == algorithm


class KeySet:
    """The keys of one JWKS document."""

    def __init__(self, keys: list[VerificationKey]) -> None:
        self._by_id = {entry.jwk.key_id: entry for entry in keys if entry.jwk.key_id}
        self._only = keys[0] if len(keys) == 1 else None

    @classmethod
    def parse(cls, document: bytes, source: str) -> KeySet:
        """Parse a document. Keys for another use and keys of an unsupported type are skipped.

        Raises
        ------
        KafkaError
            The document is not a key set, or none of its keys can be used.
        """
        try:
            listed = json_object(document).get("keys")
        except ValueError as error:
            raise KafkaError(f"{source} is not a JSON Web Key Set: {error}") from None
        keys = [key for entry in (listed if isinstance(listed, list) else []) if (key := _usable(entry))]
        if not keys:
            raise KafkaError(f"{source} has no key that can verify signatures")
        return cls(keys)

    def key(self, key_id: str | None) -> VerificationKey | None:
        """Return the key with this id. For a token without an id, return the only key of the set."""
        return self._only if key_id is None else self._by_id.get(key_id)


def _usable(entry: object) -> VerificationKey | None:
    if not isinstance(entry, dict) or entry.get("kty") not in _KEY_TYPES or entry.get("use", "sig") != "sig":
        return None
    # The private parts are dropped, in case a private key has been published by mistake.
    public = {name: value for name, value in entry.items() if name not in _PRIVATE}
    try:
        key = jwt.PyJWK(public)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
        logger.warning("ignored an unusable key of the key set: %s", type(error).__name__)
        return None
    weak = isinstance(key.key, RSAPublicKey) and key.key.key_size < MIN_RSA_BITS
    return None if weak else VerificationKey(key, entry.get("alg"))


class KeySource(ABC):
    """A source of keys, which is closed with its broker."""

    @abstractmethod
    def key(self, key_id: str | None) -> VerificationKey | None:
        """Return a key from memory, or ``None`` if it is unknown."""

    def close(self) -> None:  # noqa: B027
        """Stop background work."""


class FileKeys(KeySource):
    """The key set in a file. A changed file is read again. After a failure, the previous keys are kept."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._seen = self._identity()
        self._looked_at_ms = clock.monotonic_ms()
        self._keys = self._read()

    def key(self, key_id: str | None) -> VerificationKey | None:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._looked_at_ms >= FILE_LOOK_MS:
            self._looked_at_ms = now_ms
            self._look()
        return self._keys.key(key_id)

    def _look(self) -> None:
        try:
            seen = self._identity()
            if seen != self._seen:
                self._seen = seen
                self._keys = self._read()
        except KafkaError as error:
            logger.error("failed to reload the keys, keeping the previous ones: %s", error)

    def _identity(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError as error:
            raise KafkaConfigurationError(f"{JWKS_URL}: {error}") from error
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> KeySet:
        try:
            document = self._path.read_bytes()
        except OSError as error:
            raise KafkaConfigurationError(f"{JWKS_URL}: {error}") from error
        return KeySet.parse(document, str(self._path))


class RefreshTimes(NamedTuple):
    """Time between two fetches, and initial and maximum pause before a retry, all in milliseconds."""

    refresh_ms: float = 3_600_000.0
    retry_ms: float = 100.0
    retry_max_ms: float = 10_000.0


class HttpsKeys(KeySource):
    """The key set at an HTTPS URL, which a background thread keeps up to date.

    The constructor fetches the key set for the first time. The thread fetches it again periodically, and when
    a token names an unknown key. Kafka's class is ``RefreshingHttpsJwks``.
    """

    def __init__(self, get: Callable[[], bytes], source: str, times: RefreshTimes, clock: Clock) -> None:
        self._get = get
        self._source = source
        self._times = times
        self._clock = clock
        self._failures = 0
        self._missing: OrderedDict[str, float] = OrderedDict()
        self._condition = threading.Condition(threading.RLock())
        self._wanted = self._closed = False
        self._keys = KeySet.parse(get(), source)
        self._fetched_at_ms = clock.monotonic_ms()
        self._thread = threading.Thread(target=self._run, name="kafka-jwks-refresh", daemon=True)
        self._thread.start()

    def key(self, key_id: str | None) -> VerificationKey | None:
        found = self._keys.key(key_id)
        if found is None and key_id is not None and len(key_id) <= MAX_KEY_ID_CHARS:
            self._expedite(key_id)
        return found

    def _expedite(self, key_id: str) -> None:
        now_ms = self._clock.monotonic_ms()
        with self._condition:
            if now_ms < self._missing.get(key_id, 0.0) or now_ms < self._fetched_at_ms + MIN_EXPEDITED_MS:
                return
            self._missing[key_id] = now_ms + MISSING_FOR_MS
            self._missing.move_to_end(key_id)
            if len(self._missing) > MAX_MISSING_IDS:
                self._missing.popitem(last=False)
            self._wanted = True
            self._condition.notify_all()

    def refresh(self) -> float:
        """Fetch the key set, or keep the old one if the fetch fails.

        Return the time until the next fetch, in milliseconds.
        """
        times = self._times
        try:
            self._keys = KeySet.parse(self._get(), self._source)
            self._failures = 0
            next_ms = times.refresh_ms
        except KafkaError as error:
            next_ms = min(times.retry_ms * 2.0 ** min(self._failures, 32), times.retry_max_ms)
            self._failures += 1
            logger.warning(
                "failed to fetch the keys, keeping the previous ones; retrying in %.0f ms: %s", next_ms, error
            )
        self._fetched_at_ms = self._clock.monotonic_ms()
        return next_ms

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        # Limit the wait. A thread that waits for an HTTP response does not stop until the response arrives or
        # the request times out.
        self._thread.join(1.0)

    def _run(self) -> None:
        next_ms = self._times.refresh_ms
        while True:
            with self._condition:
                self._clock.wait_for(self._condition, lambda: self._closed or self._wanted, next_ms)
                if self._closed:
                    return
                self._wanted = False
            next_ms = self.refresh()


def key_source(url: str, options: HttpsOptions, times: RefreshTimes, clock: Clock) -> KeySource:
    """Create the source for the broker property ``sasl.oauthbearer.jwks.endpoint.url``, and load the keys.

    Raises
    ------
    KafkaConfigurationError
        The URL is not allowed, or the file cannot be read.
    KafkaError
        The key set cannot be fetched or is invalid.
    """
    checked_url(url, JWKS_URL, ("https", "file"))
    if url.startswith("file:"):
        return FileKeys(Path(unquote(urlsplit(url).path)), clock)
    return HttpsKeys(lambda: fetch(url, options, clock=clock), url, times, clock)
