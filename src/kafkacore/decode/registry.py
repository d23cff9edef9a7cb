"""Read schemas by id from a schema registry over HTTP, and keep them for the life of the process.

An id never changes its meaning, so a found schema is kept. A missing id is remembered for
:data:`ABSENT_MS`, and only a limited number of missing ids is asked for in that time, so that hostile
values cause no flood of requests. The registry's answers are not trusted: length, form, and references are
limited. Redirects are not followed, because they would carry the password elsewhere.

The API is Confluent's Schema Registry API, which Apicurio, Redpanda, and Karapace offer too.
"""

from __future__ import annotations

import base64
import json
import logging
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.decode.avro_schema import AvroSchemaError, AvroType, parse_schema
from kafkacore.decode.decoder import quoted
from kafkacore.errors import KafkaConfigurationError, KafkaError

logger = logging.getLogger(__name__)

#: Of a connection, and of each piece of an answer; of all of it.
TIMEOUT_S = 10.0
ANSWER_MS = 30_000.0
#: Attempts of each address, and the wait before the second; it doubles.
ATTEMPTS = 3
RETRY_MS = 200.0
MAX_ANSWER_BYTES = 8 * 1024 * 1024
#: How long "there is no such schema" is believed.
ABSENT_MS = 30_000.0
#: So many unknown ids are asked for in that time; then values are malformed without a question.
MAX_ABSENT = 100
#: What to change where a certificate is not trusted, by OpenSSL's code of the reason.
_REMEDIES = {
    9: "set this machine's clock, or renew the certificate",
    10: "renew the certificate",
    62: "set schema.registry.url to a name that it was issued for",
    64: "set schema.registry.url to an address that it was issued for",
}
_UNKNOWN_ISSUER = "set schema.registry.ssl.cafile to a PEM file with the certificate of who has issued it"
#: Schemas that one may refer to, directly or not.
MAX_REFERENCES = 100


class SchemaRegistryError(KafkaError):
    """The registry did not answer, or not with a schema; trying again may help."""

    retriable = True


@dataclass(frozen=True)
class RegistryOptions:
    """Where the registry is.

    Parameters
    ----------
    urls:
        Addresses of one registry, tried in order.
    auth:
        ``user:password``; never shown.
    cafile:
        File of the certificates to trust.
    """

    urls: tuple[str, ...]
    auth: str | None = field(default=None, repr=False)
    cafile: str | None = None


def registry_options(given: Mapping[str, str]) -> RegistryOptions | None:
    """The options in ``given``, whose names are in lower case; ``None``: there is no registry.

    Raises
    ------
    KafkaConfigurationError
        The address is none of http or https.
    """
    text = given.get("schema.registry.url")
    if text is None:
        return None
    urls = []
    auth = given.get("schema.registry.auth")
    for each in text.split(","):
        try:
            parts = urllib.parse.urlsplit(each.strip())
            sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            sound = False
        if not sound:
            raise KafkaConfigurationError(
                "schema.registry.url must be an address such as https://registry:8081, or several with commas"
            )
        if parts.username is not None:
            auth = auth or urllib.parse.unquote(f"{parts.username}:{parts.password or ''}")
        # Without the user, who is a secret, so that the address may stand in messages.
        urls.append(
            parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")
        )
    return RegistryOptions(tuple(urls), auth, given.get("schema.registry.ssl.cafile"))


_shared: dict[RegistryOptions, SchemaRegistry] = {}
_shared_lock = threading.Lock()


def shared_registry(options: RegistryOptions) -> SchemaRegistry:
    """This process's registry of these options."""
    with _shared_lock:
        return _shared.setdefault(options, SchemaRegistry(options))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


class SchemaRegistry:
    """A registry, and what it has said. Threads may share it.

    Parameters
    ----------
    options:
        Where it is.
    clock:
        For waits, and the age of what is not there.
    """

    def __init__(self, options: RegistryOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._options = options
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[int, AvroType] = {}
        self._absent: dict[int, tuple[float, str]] = {}

    def schema(self, schema_id: int) -> tuple[AvroType | None, str]:
        """The schema of an id; or ``None`` and one sentence on why it cannot be read.

        Raises
        ------
        SchemaRegistryError
            The registry cannot be asked.
        KafkaConfigurationError
            The file of certificates cannot be read.
        """
        with self._lock:
            if schema_id in self._found:
                return self._found[schema_id], ""
            now_ms = self._clock.monotonic_ms()
            self._absent = {n: kept for n, kept in self._absent.items() if now_ms - kept[0] < ABSENT_MS}
            if schema_id in self._absent:
                return None, self._absent[schema_id][1]
            if len(self._absent) >= MAX_ABSENT:
                return None, f"schema {schema_id} was not asked for, after {MAX_ABSENT} that are unknown"
            try:
                answer = self._get(f"/schemas/ids/{schema_id}")
                if answer is None:
                    reason = f"schema {schema_id} is not in the registry"
                else:
                    self._found[schema_id] = self._parse(answer)
                    return self._found[schema_id], ""
            except AvroSchemaError as error:
                reason = f"schema {schema_id}: {error}"
            self._absent[schema_id] = (now_ms, reason)
            return None, reason

    def latest(self, subject: str) -> AvroType:
        """The latest schema of a subject.

        Raises
        ------
        KafkaConfigurationError
            There is none, or it is none of Avro; or the file of certificates cannot be read.
        SchemaRegistryError
            The registry cannot be asked.
        """
        with self._lock:
            answer = self._get(f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/latest")
            if answer is None:
                raise KafkaConfigurationError(
                    f"the schema registry has no subject {subject!r}: set value.subject (or key.subject), or "
                    f"give the columns by .schema(...)"
                )
            try:
                return self._parse(answer)
            except AvroSchemaError as error:
                raise KafkaConfigurationError(f"the latest schema of subject {subject!r}: {error}") from error

    # ---- Answers -----------------------------------------------------------------------------------------

    def _parse(self, answer: Mapping[str, object]) -> AvroType:
        names: dict[str, AvroType] = {}
        self._refer(answer, names, set())
        return parse_schema(_text_of(answer), names)

    def _refer(
        self, answer: Mapping[str, object], names: dict[str, AvroType], known: set[tuple[str, int]]
    ) -> None:
        """Parse what an answer refers to, and what that refers to, first."""
        references = answer.get("references") or []
        if not isinstance(references, list):
            raise AvroSchemaError("its references are no list")
        for reference in references:
            subject = reference.get("subject") if isinstance(reference, dict) else None
            version = reference.get("version") if isinstance(reference, dict) else None
            if not isinstance(subject, str) or not isinstance(version, int):
                raise AvroSchemaError("a reference has no subject or no version")
            if (subject, version) in known:
                continue
            known.add((subject, version))
            if len(known) > MAX_REFERENCES:
                raise AvroSchemaError(f"it refers to more than {MAX_REFERENCES} schemas")
            referred = self._get(f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/{version}")
            if referred is None:
                raise AvroSchemaError(
                    f"version {version} of {quoted(subject)!r}, to which it refers, is not there"
                )
            self._refer(referred, names, known)
            parse_schema(_text_of(referred), names)

    # ---- Questions ---------------------------------------------------------------------------------------

    def _get(self, path: str) -> Mapping[str, object] | None:
        """What the registry answers; ``None``: it has no such thing."""
        trouble = "no address"
        wait_ms = RETRY_MS
        for attempt in range(ATTEMPTS):
            if attempt:
                self._clock.sleep_ms(wait_ms)
                wait_ms *= 2
            for url in self._options.urls:
                try:
                    return self._ask(url + path)
                except urllib.error.HTTPError as error:
                    is_absent = error.code == 404 and _is_registrys(error)
                    error.close()
                    if is_absent:
                        return None
                    if error.code in (401, 403):
                        raise SchemaRegistryError(
                            f"the schema registry {url} answered {error.code}: check schema.registry.auth"
                        ) from None
                    trouble = f"{url} answered {error.code}"
                    if error.code == 404:
                        raise SchemaRegistryError(
                            f"{trouble}, but not as a schema registry does: check schema.registry.url"
                        ) from None
                    if 300 <= error.code < 500 and error.code not in (408, 429):
                        raise SchemaRegistryError(f"the schema registry {trouble}") from None
                except (OSError, HTTPException, ValueError) as error:
                    reason = getattr(error, "reason", error)
                    if isinstance(reason, ssl.SSLCertVerificationError):
                        raise SchemaRegistryError(
                            f"the certificate of the schema registry {url} is not trusted "
                            f"({reason.verify_message}): {_REMEDIES.get(reason.verify_code, _UNKNOWN_ISSUER)}"
                        ) from None
                    trouble = f"{url}: {quoted(reason)}"
                logger.info("the schema registry did not answer: %s", trouble)
        raise SchemaRegistryError(f"the schema registry did not answer in {ATTEMPTS} attempts: {trouble}")

    def _ask(self, url: str) -> Mapping[str, object]:
        request = urllib.request.Request(url)  # noqa: S310 - http or https, by registry_options
        request.add_header("Accept", "application/vnd.schemaregistry.v1+json, application/json")
        if self._options.auth is not None:
            token = base64.b64encode(self._options.auth.encode()).decode("ascii")
            request.add_header("Authorization", f"Basic {token}")
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if url.startswith("https:"):
            handlers.append(urllib.request.HTTPSHandler(context=self._tls()))
        with urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT_S) as response:
            raw = self._read(response)
        if len(raw) > MAX_ANSWER_BYTES:
            raise ValueError(f"the answer exceeds {MAX_ANSWER_BYTES} bytes")
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise ValueError("the answer is no object in JSON")
        return answer

    def _tls(self) -> ssl.SSLContext:
        cafile = self._options.cafile
        try:
            return ssl.create_default_context(cafile=cafile)
        except OSError as error:
            raise KafkaConfigurationError(
                f"schema.registry.ssl.cafile is no PEM file of certificates that can be read here: {cafile} "
                f"({error.strerror or error})"
            ) from error

    def _read(self, response: HTTPResponse) -> bytes:
        """All of an answer, unless it is too long or takes too long."""
        raw = bytearray()
        until_ms = self._clock.monotonic_ms() + ANSWER_MS
        while len(raw) <= MAX_ANSWER_BYTES:
            piece = response.read1(MAX_ANSWER_BYTES + 1 - len(raw))
            if not piece:
                break
            raw += piece
            if self._clock.monotonic_ms() > until_ms:
                raise ValueError(f"the answer took more than {ANSWER_MS / 1000:.0f} s")
        return bytes(raw)


def _is_registrys(error: urllib.error.HTTPError) -> bool:
    """Whether it is a registry that says no, and not a proxy or a wrong path."""
    try:
        answer = json.loads(error.read(MAX_ANSWER_BYTES))
    except (OSError, HTTPException, ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and isinstance(answer.get("error_code"), int)


def _text_of(answer: Mapping[str, object]) -> str:
    kind = answer.get("schemaType", "AVRO")
    if kind != "AVRO":
        raise AvroSchemaError(f"it is of type {quoted(kind)}, not AVRO")
    text = answer.get("schema")
    if not isinstance(text, str):
        raise AvroSchemaError("the registry's answer has no schema")
    return text
