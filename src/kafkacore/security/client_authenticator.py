"""SASL authentication of a client, in Kafka requests (KIP-43, KIP-152, KIP-368).

The client sends ApiVersions, SaslHandshake, and SaslAuthenticate until the exchange is complete. It uses only
the configured mechanism and SaslHandshake version 1, so brokers must be 1.0 or newer. Kafka's class is
``SaslClientAuthenticator``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

from kafkacore.clock import Clock
from kafkacore.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    MalformedMessageError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
    for_code,
)
from kafkacore.logs import logger_of
from kafkacore.protocol import ApiKey, RequestMessage, decode_response, encode_request
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacore.protocol.generated.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacore.protocol.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacore.protocol.message import ResponseMessage, ResponseT
from kafkacore.security.authenticator import Authenticator, Pieces
from kafkacore.security.sasl.mechanism import SaslConfig, SaslMechanism, make_mechanism
from kafkacore.text import shown

logger = logger_of(__name__)

#: Correlation ids that only the requests of this module use. They distinguish the responses to these requests
#: from responses to requests that the client sent before a re-authentication.
CORRELATION_IDS: Final = range(2**31 - 8, 2**31)
_OTHER_PORT: Final = "use a port of a SASL listener, or security_protocol='PLAINTEXT' or 'SSL'"
#: First version of SaslHandshake after which the client sends its tokens in SaslAuthenticate requests.
_HANDSHAKE_VERSION: Final = 1
#: Fraction of the session's lifetime after which a client re-authenticates, and the largest random fraction
#: to add, so that clients do not re-authenticate at the same time.
_SESSION_SHARE: Final = 0.85
_SESSION_JITTER: Final = 0.10


class _State(Enum):
    NEW = auto()
    API_VERSIONS = auto()
    HANDSHAKE = auto()
    TOKENS = auto()
    COMPLETE = auto()
    FAILED = auto()


class SaslClientAuthenticator(Authenticator):
    """The authentication of one connection.

    Parameters
    ----------
    host:
        Host name of the broker, from ``bootstrap_servers`` or the cluster's metadata.
    client_id:
        Client id to send, as in the client's other requests.
    """

    is_complete = False

    def __init__(self, config: SaslConfig, host: str, client_id: str | None, clock: Clock) -> None:
        self._config = config
        self._host = host
        self._client_id = client_id
        self._clock = clock
        self._state = _State.NEW
        self._mechanism: SaslMechanism | None = None
        self._authenticate_version = 0
        self._correlation_id = CORRELATION_IDS[-1]
        self._is_reauthentication = False

    def begin(self) -> Pieces:
        self._state = _State.API_VERSIONS
        # Every broker supports ApiVersions version 0.
        return self._request(ApiVersionsRequest(), 0)

    def begin_reauthentication(self, payload: memoryview | None) -> Pieces:
        assert self._state is _State.COMPLETE
        self.is_complete = False
        self.reauthenticate_at_ms = math.inf
        self._is_reauthentication = True
        return self._handshake()

    def expects(self, payload: memoryview) -> bool:
        if self.is_complete:
            return False
        # A frame that is too short for a correlation id is malformed. receive() reports the error.
        is_ours = len(payload) < 4 or int.from_bytes(payload[:4]) in CORRELATION_IDS
        return not self._is_reauthentication or is_ours

    def receive(self, payload: memoryview) -> Pieces | None:
        try:
            return self._handle(payload)
        except AuthenticationFailedError:
            raise
        except Exception as error:
            # The mechanism or its token provider may be the user's code, which can raise anything.
            name = self._config.mechanism
            raise SaslAuthenticationFailedError(
                f"{name}: the client's own code failed: {type(error).__name__}: {error}"
            ) from error

    def _handle(self, payload: memoryview) -> Pieces | None:
        state, self._state = self._state, _State.FAILED
        if state is _State.API_VERSIONS:
            return self._handle_api_versions(self._response(payload, ApiVersionsRequest, 0))
        if state is _State.HANDSHAKE:
            return self._handle_handshake(self._response(payload, SaslHandshakeRequest, _HANDSHAKE_VERSION))
        if state is _State.TOKENS:
            version = self._authenticate_version
            return self._handle_authenticate(self._response(payload, SaslAuthenticateRequest, version))
        raise IllegalSaslStateError("the broker sent an unexpected frame during authentication")

    def close(self) -> None:
        mechanism, self._mechanism = self._mechanism, None
        if mechanism is not None:
            mechanism.close()

    # ---- Responses -----------------------------------------------------------------------------------------

    def _handle_api_versions(self, response: ApiVersionsResponse) -> Pieces:
        if response.error_code:
            raise IllegalSaslStateError(
                f"the broker rejected ApiVersions: {for_code(response.error_code).message}"
            )
        highest = {entry.api_key: entry.max_version for entry in response.api_keys}
        if ApiKey.SASL_HANDSHAKE not in highest:
            raise IllegalSaslStateError(f"the broker does not support SASL on this port: {_OTHER_PORT}")
        authenticate_version = highest.get(ApiKey.SASL_AUTHENTICATE, -1)
        if highest[ApiKey.SASL_HANDSHAKE] < _HANDSHAKE_VERSION or authenticate_version < 0:
            raise UnsupportedSaslMechanismError(
                "the broker is older than 1.0, and kafkacore does not support the form of SASL that such "
                "brokers use: upgrade the broker"
            )
        self._authenticate_version = min(authenticate_version, SaslAuthenticateRequest.MAX_VERSION)
        return self._handshake()

    def _handshake(self) -> Pieces:
        self._state = _State.HANDSHAKE
        return self._request(SaslHandshakeRequest(mechanism=self._config.mechanism), _HANDSHAKE_VERSION)

    def _handle_handshake(self, response: SaslHandshakeResponse) -> Pieces:
        mechanism = self._config.mechanism
        if response.error_code == UnsupportedSaslMechanismError.errno:
            raise UnsupportedSaslMechanismError(
                f"the broker does not support sasl_mechanism={mechanism!r} on this port; "
                f"it supports {_listed(response.mechanisms)}"
            )
        if response.error_code == IllegalSaslStateError.errno:
            if self._is_reauthentication:
                raise IllegalSaslStateError(
                    "the broker rejected the re-authentication: it does not allow re-authentication, "
                    "or requires more time between two authentications"
                )
            raise IllegalSaslStateError(f"the broker does not expect SASL on this port: {_OTHER_PORT}")
        if response.error_code:
            raise IllegalSaslStateError(
                f"the broker rejected SaslHandshake: {for_code(response.error_code).message}"
            )
        self._mechanism = make_mechanism(self._config, self._host)
        token = self._mechanism.step(None)
        return self._tokens(b"" if token is None else token)

    def _tokens(self, token: bytes) -> Pieces:
        self._state = _State.TOKENS
        return self._request(SaslAuthenticateRequest(auth_bytes=token), self._authenticate_version)

    def _handle_authenticate(self, response: SaslAuthenticateResponse) -> Pieces | None:
        mechanism = self._mechanism
        assert mechanism is not None
        if response.error_code:
            raise self._refused(response)
        if not mechanism.is_complete:
            token = mechanism.step(bytes(response.auth_bytes))
            if token is not None:
                return self._tokens(token)
            if not mechanism.is_complete:
                raise SaslAuthenticationFailedError(
                    f"{mechanism.name}: the exchange ended before authentication was complete"
                )
        self._complete(response.session_lifetime_ms)
        return None

    def _refused(self, response: SaslAuthenticateResponse) -> AuthenticationFailedError:
        message = shown(response.error_message or for_code(response.error_code).message)
        user = f" of user {shown(self._config.username)}" if self._config.username else ""
        challenge = self._mechanism.refusal if self._mechanism is not None else ""
        message += f" (the broker's last challenge was {challenge})" if challenge else ""
        text = f"the broker rejected the {self._config.mechanism} authentication{user}: {message}"
        kind = for_code(response.error_code)
        if issubclass(kind, AuthenticationFailedError):
            return kind(text)
        return SaslAuthenticationFailedError(text)

    def _complete(self, session_lifetime_ms: int) -> None:
        self.close()
        self._state = _State.COMPLETE
        self.is_complete = True
        if session_lifetime_ms > 0:
            share = _SESSION_SHARE + self._clock.random.random() * _SESSION_JITTER
            self.reauthenticate_at_ms = self._clock.monotonic_ms() + session_lifetime_ms * share
        logger.debug(
            "%s to %s with %s; session lifetime: %s",
            "re-authenticated" if self._is_reauthentication else "authenticated",
            self._host,
            self._config.mechanism,
            f"{session_lifetime_ms} ms" if session_lifetime_ms > 0 else "unlimited",
        )

    # ---- Frames --------------------------------------------------------------------------------------------

    def _request(self, message: RequestMessage[ResponseMessage], version: int) -> Pieces:
        following = self._correlation_id + 1
        self._correlation_id = following if following in CORRELATION_IDS else CORRELATION_IDS[0]
        return encode_request(message, version, self._correlation_id, self._client_id)

    def _response(
        self, payload: memoryview, request: type[RequestMessage[ResponseT]], version: int
    ) -> ResponseT:
        try:
            correlation_id, response = decode_response(payload, request, version)
        except (MalformedMessageError, UnsupportedVersionError) as error:
            raise IllegalSaslStateError(
                f"cannot parse the broker's response to {request.NAME} ({error}): {_OTHER_PORT}"
            ) from error
        if correlation_id != self._correlation_id:
            raise IllegalSaslStateError(
                f"the broker's response to {request.NAME} has correlation id {correlation_id}, expected "
                f"{self._correlation_id}"
            )
        return response


def _listed(mechanisms: Iterable[str]) -> str:
    names = [shown(name) for name in mechanisms]
    return ", ".join(names[:20]) if names else "none"
