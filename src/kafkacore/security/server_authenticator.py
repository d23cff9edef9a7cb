"""A broker's SASL over Kafka's requests: ApiVersions, SaslHandshake, SaslAuthenticate, nothing else before.

In: the listener's settings, and the client's frames. Out: frames for the client, and who it is. Does not
know: sockets, what a mechanism says, where users are kept. (Kafka's ``SaslServerAuthenticator``; KIP-43,
KIP-152, KIP-368.)

A client that fails is told the same whatever was wrong; what was is in the error that the channel ends with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from kafkacore.clock import Clock
from kafkacore.errors import (
    IllegalSaslStateError,
    MalformedMessageError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
)
from kafkacore.protocol import (
    ApiKey,
    RequestHeader,
    ResponseMessage,
    decode_request_header,
    encode_response,
)
from kafkacore.protocol.generated.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacore.protocol.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacore.security.authenticator import Authenticator, Pieces
from kafkacore.security.server_mechanism import SaslServerMechanism, ServerMechanismFactory
from kafkacore.text import shown

#: A client asks once for what the broker speaks, and once or twice more if it begins with too new a version.
_MAX_API_VERSIONS: Final = 4
#: A connection authenticates anew at most so often.
_MIN_REAUTHENTICATION_MS: Final = 1_000.0

#: An ApiVersions request's payload in, the frame of the answer out, whatever the request's version.
AnswerApiVersions = Callable[[memoryview], Pieces]


@dataclass(frozen=True, kw_only=True)
class ServerSaslSettings:
    """What a listener asks of its clients.

    Attributes
    ----------
    mechanisms:
        Name → what makes one authentication by it: ``sasl.enabled.mechanisms``, in this order.
    max_reauth_ms:
        Name → after how long a client must authenticate again (``connections.max.reauth.ms``); 0, or no
        entry, for never.
    failure_delay_ms:
        ``connection.failed.authentication.delay.ms``: what guessing at passwords costs.
    max_receive_size:
        ``sasl.server.max.receive.size``, in bytes.
    """

    mechanisms: Mapping[str, ServerMechanismFactory]
    max_reauth_ms: Mapping[str, float] = field(default_factory=dict)
    failure_delay_ms: float = 100.0
    max_receive_size: int = 524_288


class _State(Enum):
    INITIAL = auto()
    TOKENS = auto()
    COMPLETE = auto()
    FAILED = auto()


class SaslServerAuthenticator(Authenticator):
    """Of one connection.

    Parameters
    ----------
    settings:
        Of the listener that the connection came by.
    answer_api_versions:
        Answers what comes before it is known who asks.
    """

    is_complete = False

    def __init__(
        self, settings: ServerSaslSettings, answer_api_versions: AnswerApiVersions, clock: Clock
    ) -> None:
        self._settings = settings
        self._answer_api_versions = answer_api_versions
        self._clock = clock
        self._state = _State.INITIAL
        self._api_versions_count = 0
        self._mechanism: SaslServerMechanism | None = None
        #: Of the authentication before, if this one is not the first.
        self._previous_mechanism: str | None = None
        #: Whether tokens come in SaslAuthenticate requests; else they are frames by themselves.
        self._in_requests = True
        self._last_reauthentication_ms = -math.inf
        self.max_receive_size = settings.max_receive_size
        self.failure_delay_ms = settings.failure_delay_ms

    def receive(self, payload: memoryview) -> Pieces | None:
        state, self._state = self._state, _State.FAILED
        try:
            if state is _State.INITIAL:
                return self._request_came(payload)
            if state is _State.TOKENS:
                return self._token_came(payload)
        except (MalformedMessageError, UnsupportedVersionError) as error:
            raise IllegalSaslStateError(f"the client's frame is no request of SASL: {error}") from error
        raise IllegalSaslStateError("the client goes on where authentication has ended")

    def begin_reauthentication(self, payload: memoryview | None) -> Pieces | None:
        assert payload is not None
        assert self._previous_mechanism is not None
        self.is_complete = False
        self._state = _State.INITIAL
        # What is spoken here has been asked for long ago.
        self._api_versions_count = _MAX_API_VERSIONS
        return self.receive(payload)

    def close(self) -> None:
        mechanism, self._mechanism = self._mechanism, None
        if mechanism is not None:
            mechanism.close()

    # ---- The request that chooses a mechanism --------------------------------------------------------------

    def _request_came(self, payload: memoryview) -> Pieces:
        # The API is looked at before its body is: nobody has said yet who this is.
        header, cursor = decode_request_header(payload)
        if header.request_api_key == ApiKey.API_VERSIONS and self._api_versions_count < _MAX_API_VERSIONS:
            self._api_versions_count += 1
            self._state = _State.INITIAL
            return self._answer_api_versions(payload)
        if header.request_api_key != ApiKey.SASL_HANDSHAKE:
            raise IllegalSaslStateError(f"the client sent {_name(header)} before it had authenticated")
        request = SaslHandshakeRequest.decode(cursor, header.request_api_version)
        self._check_reauthentication(header, request.mechanism)
        if request.mechanism not in self._settings.mechanisms:
            raise self._refused(
                header,
                UnsupportedSaslMechanismError(f"the client wants SASL mechanism {shown(request.mechanism)}"),
                list(self._settings.mechanisms),
            )
        self._in_requests = header.request_api_version >= 1
        self._mechanism = self._settings.mechanisms[request.mechanism]()
        self._state = _State.TOKENS
        return _handshake_answer(header, 0, list(self._settings.mechanisms))

    def _check_reauthentication(self, header: RequestHeader, mechanism: str) -> None:
        previous = self._previous_mechanism
        if previous is None:
            return
        if math.isinf(self.expires_at_ms):
            text = "the client authenticates again, and its session has no end"
            raise self._refused(header, IllegalSaslStateError(text), [previous])
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._last_reauthentication_ms < _MIN_REAUTHENTICATION_MS:
            text = "the client authenticates again, less than a second after the last time"
            raise self._refused(header, IllegalSaslStateError(text), [previous])
        self._last_reauthentication_ms = now_ms
        if mechanism != previous:
            text = f"the client wants to authenticate again by {shown(mechanism)}, where it was {previous}"
            raise self._refused(header, UnsupportedSaslMechanismError(text), [previous])

    def _refused(
        self, header: RequestHeader, error: _HandshakeError, mechanisms: list[str]
    ) -> _HandshakeError:
        error.answer = _handshake_answer(header, error.errno, mechanisms)
        return error

    # ---- Tokens --------------------------------------------------------------------------------------------

    def _token_came(self, payload: memoryview) -> Pieces:
        if not self._in_requests:
            return [self._step(bytes(payload))]
        header, cursor = decode_request_header(payload)
        if header.request_api_key != ApiKey.SASL_AUTHENTICATE:
            raise IllegalSaslStateError(f"the client sent {_name(header)} where SaslAuthenticate was to come")
        request = SaslAuthenticateRequest.decode(cursor, header.request_api_version)
        try:
            challenge = self._step(request.auth_bytes)
        except SaslAuthenticationFailedError as error:
            error.answer = self._failure_answer(header)
            raise
        lifetime_ms = self.expires_at_ms - self._clock.monotonic_ms() if self.is_complete else math.inf
        answer = SaslAuthenticateResponse(
            error_code=0,
            error_message=None,
            auth_bytes=challenge,
            session_lifetime_ms=0 if math.isinf(lifetime_ms) else max(0, round(lifetime_ms)),
        )
        return _frame(answer, header)

    def _failure_answer(self, header: RequestHeader) -> list[bytes]:
        assert self._mechanism is not None
        name = self._mechanism.name
        again = ", or not those of this connection" if self._previous_mechanism is not None else ""
        answer = SaslAuthenticateResponse(
            error_code=SaslAuthenticationFailedError.errno,
            error_message=f"{name} authentication failed: the credentials are not valid{again}",
        )
        return _frame(answer, header)

    def _step(self, token: bytes) -> bytes:
        mechanism = self._mechanism
        assert mechanism is not None
        challenge = mechanism.step(token)
        if mechanism.is_complete:
            self._complete(mechanism)
        else:
            self._state = _State.TOKENS
        return challenge

    def _complete(self, mechanism: SaslServerMechanism) -> None:
        principal = mechanism.principal
        if self._previous_mechanism is not None and principal != self.principal:
            raise SaslAuthenticationFailedError(
                f"{shown(str(self.principal))} may not become {shown(str(principal))} on the same connection"
            )
        lifetimes_ms = [math.inf]
        if max_reauth_ms := self._settings.max_reauth_ms.get(mechanism.name, 0):
            lifetimes_ms.append(max_reauth_ms)
        if mechanism.expires_at_ms is not None:
            lifetimes_ms.append(max(0, mechanism.expires_at_ms - self._clock.wall_ms()))
        self.expires_at_ms = self._clock.monotonic_ms() + min(lifetimes_ms)
        self.principal = principal
        self._previous_mechanism = mechanism.name
        self._state = _State.COMPLETE
        self.is_complete = True
        self.close()


#: What ends an authentication at its SaslHandshake.
_HandshakeError = UnsupportedSaslMechanismError | IllegalSaslStateError


def _handshake_answer(header: RequestHeader, error_code: int, mechanisms: list[str]) -> list[bytes]:
    return _frame(SaslHandshakeResponse(error_code=error_code, mechanisms=mechanisms), header)


def _frame(message: ResponseMessage, header: RequestHeader) -> list[bytes]:
    pieces = encode_response(message, header.request_api_version, header.correlation_id)
    # Joined: an error keeps it, and a view could not be pickled with it.
    return [b"".join(pieces)]


def _name(header: RequestHeader) -> str:
    return ApiKey(header.request_api_key).name
