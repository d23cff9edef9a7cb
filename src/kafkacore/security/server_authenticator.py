"""SASL authentication on a broker, carried in Kafka requests (KIP-43, KIP-152, KIP-368).

A client that is not authenticated may send only ApiVersions, SaslHandshake and SaslAuthenticate. Every
client that fails to authenticate gets the same response; the reason is in the error that closes the channel.
Kafka's class is ``SaslServerAuthenticator``.
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

#: Maximum number of ApiVersions requests before authentication. A client sends one request. If the version of
#: that request is too new, the client sends one or two more requests.
_MAX_API_VERSIONS: Final = 4
#: Minimum time between two re-authentications of a connection, in milliseconds.
_MIN_REAUTHENTICATION_MS: Final = 1_000.0

#: Function that takes the payload of an ApiVersions request of any version and returns the response's frame.
AnswerApiVersions = Callable[[memoryview], Pieces]


@dataclass(frozen=True, kw_only=True)
class ServerSaslSettings:
    """The SASL settings of a listener.

    Attributes
    ----------
    mechanisms:
        Factory of each enabled mechanism by name, in the order of ``sasl.enabled.mechanisms``.
    max_reauth_ms:
        ``connections.max.reauth.ms`` by mechanism: the time after which a client must authenticate again, in
        milliseconds. 0 or a missing entry means never.
    failure_delay_ms:
        ``connection.failed.authentication.delay.ms``, which slows down the guessing of passwords.
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
    """The authentication of one connection.

    Parameters
    ----------
    settings:
        Settings of the listener that accepted the connection.
    answer_api_versions:
        Answers ApiVersions requests that arrive before authentication is complete.
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
        #: Mechanism of the connection's previous authentication, if there was one.
        self._previous_mechanism: str | None = None
        #: Whether tokens arrive in SaslAuthenticate requests. Otherwise each token is a frame without a
        #: request header.
        self._in_requests = True
        self._last_reauthentication_ms = -math.inf
        self.max_receive_size = settings.max_receive_size
        self.failure_delay_ms = settings.failure_delay_ms

    def receive(self, payload: memoryview) -> Pieces | None:
        state, self._state = self._state, _State.FAILED
        try:
            if state is _State.INITIAL:
                return self._handle_request(payload)
            if state is _State.TOKENS:
                return self._handle_token(payload)
        except (MalformedMessageError, UnsupportedVersionError) as error:
            raise IllegalSaslStateError(
                f"cannot parse the client's frame as a SASL request: {error}"
            ) from error
        raise IllegalSaslStateError("the client sent a frame after authentication had ended")

    def begin_reauthentication(self, payload: memoryview | None) -> Pieces | None:
        assert payload is not None
        assert self._previous_mechanism is not None
        self.is_complete = False
        self._state = _State.INITIAL
        # The client has already received the API versions, so another ApiVersions request is an error.
        self._api_versions_count = _MAX_API_VERSIONS
        return self.receive(payload)

    def close(self) -> None:
        mechanism, self._mechanism = self._mechanism, None
        if mechanism is not None:
            mechanism.close()

    # ---- The request that chooses a mechanism --------------------------------------------------------------

    def _handle_request(self, payload: memoryview) -> Pieces:
        # The API key is checked before the body is parsed, because the client is not authenticated yet.
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
                UnsupportedSaslMechanismError(
                    f"the client requested SASL mechanism {shown(request.mechanism)}"
                ),
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
            text = "the client tried to re-authenticate, but its session does not expire"
            raise self._refused(header, IllegalSaslStateError(text), [previous])
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._last_reauthentication_ms < _MIN_REAUTHENTICATION_MS:
            text = "the client tried to re-authenticate less than a second after the last time"
            raise self._refused(header, IllegalSaslStateError(text), [previous])
        self._last_reauthentication_ms = now_ms
        if mechanism != previous:
            text = f"the client tried to re-authenticate with {shown(mechanism)} instead of {previous}"
            raise self._refused(header, UnsupportedSaslMechanismError(text), [previous])

    def _refused(
        self, header: RequestHeader, error: _HandshakeError, mechanisms: list[str]
    ) -> _HandshakeError:
        error.answer = _handshake_answer(header, error.errno, mechanisms)
        return error

    # ---- Tokens --------------------------------------------------------------------------------------------

    def _handle_token(self, payload: memoryview) -> Pieces:
        if not self._in_requests:
            return [self._step(bytes(payload))]
        header, cursor = decode_request_header(payload)
        if header.request_api_key != ApiKey.SASL_AUTHENTICATE:
            raise IllegalSaslStateError(f"the client sent {_name(header)} instead of SaslAuthenticate")
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
        again = ", or belong to another user" if self._previous_mechanism is not None else ""
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
                f"the client tried to re-authenticate as {shown(str(principal))}, but the connection belongs "
                f"to {shown(str(self.principal))}"
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


#: Errors that end an authentication at SaslHandshake.
_HandshakeError = UnsupportedSaslMechanismError | IllegalSaslStateError


def _handshake_answer(header: RequestHeader, error_code: int, mechanisms: list[str]) -> list[bytes]:
    return _frame(SaslHandshakeResponse(error_code=error_code, mechanisms=mechanisms), header)


def _frame(message: ResponseMessage, header: RequestHeader) -> list[bytes]:
    pieces = encode_response(message, header.request_api_version, header.correlation_id)
    # Join the pieces of the frame. An error may keep a reference to the frame, and an error that contains a
    # memoryview cannot be pickled.
    return [b"".join(pieces)]


def _name(header: RequestHeader) -> str:
    return ApiKey(header.request_api_key).name
