"""A client's SASL over Kafka's requests: ApiVersions, SaslHandshake, SaslAuthenticate until both are sure.

In: the settings, and the broker's frames. Out: frames for the broker. Does not know: sockets, what a
mechanism says. (Kafka's ``SaslClientAuthenticator``; KIP-43, KIP-152, KIP-368.)

Nothing is negotiated: it is the mechanism that was configured, in frames of requests (SaslHandshake version
1, brokers from 1.0), or an error that says what the broker has.
"""

from __future__ import annotations

import logging
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
from kafkacore.protocol import ApiKey, RequestMessage, decode_response, encode_request
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacore.protocol.generated.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacore.protocol.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacore.protocol.message import ResponseMessage, ResponseT
from kafkacore.security.authenticator import Authenticator, Pieces
from kafkacore.security.sasl.mechanism import SaslConfig, SaslMechanism, make_mechanism
from kafkacore.text import shown

logger = logging.getLogger(__name__)

#: Of the requests here and of no others, so that their answers are told apart from those of requests that
#: were sent before a re-authentication.
CORRELATION_IDS: Final = range(2**31 - 8, 2**31)
_OTHER_PORT: Final = "use a port of a SASL listener, or security_protocol='PLAINTEXT' or 'SSL'"
#: The first version whose tokens are wrapped in SaslAuthenticate.
_HANDSHAKE_VERSION: Final = 1
#: A client re-authenticates when this much of the session is over, and a random bit more, so that not all of
#: them do at once.
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
    """Of one connection.

    Parameters
    ----------
    host:
        The broker's name as the user or the cluster's metadata gives it.
    client_id:
        As in the client's other requests.
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
        self._is_again = False

    def begin(self) -> Pieces:
        self._state = _State.API_VERSIONS
        # Version 0: what every broker understands.
        return self._request(ApiVersionsRequest(), 0)

    def begin_reauthentication(self, payload: memoryview | None) -> Pieces:
        assert self._state is _State.COMPLETE
        self.is_complete = False
        self.reauthenticate_at_ms = math.inf
        self._is_again = True
        return self._handshake()

    def expects(self, payload: memoryview) -> bool:
        if self.is_complete:
            return False
        # What has no correlation id is malformed, which receive() says.
        return not self._is_again or len(payload) < 4 or int.from_bytes(payload[:4]) in CORRELATION_IDS

    def receive(self, payload: memoryview) -> Pieces | None:
        try:
            return self._received(payload)
        except AuthenticationFailedError:
            raise
        except Exception as error:
            # A mechanism may be the user's own, or ask the user's code for a token.
            name = self._config.mechanism
            raise SaslAuthenticationFailedError(
                f"{name} failed in this process: {type(error).__name__}: {error}"
            ) from error

    def _received(self, payload: memoryview) -> Pieces | None:
        state, self._state = self._state, _State.FAILED
        if state is _State.API_VERSIONS:
            return self._versions_came(self._response(payload, ApiVersionsRequest, 0))
        if state is _State.HANDSHAKE:
            return self._handshake_came(self._response(payload, SaslHandshakeRequest, _HANDSHAKE_VERSION))
        if state is _State.TOKENS:
            version = self._authenticate_version
            return self._token_came(self._response(payload, SaslAuthenticateRequest, version))
        raise IllegalSaslStateError("the broker sent a frame that nobody asked for")

    def close(self) -> None:
        mechanism, self._mechanism = self._mechanism, None
        if mechanism is not None:
            mechanism.close()

    # ---- One answer after the other ------------------------------------------------------------------------

    def _versions_came(self, response: ApiVersionsResponse) -> Pieces:
        if response.error_code:
            raise IllegalSaslStateError(
                f"the broker does not say what it speaks ({for_code(response.error_code).message})"
            )
        highest = {entry.api_key: entry.max_version for entry in response.api_keys}
        if ApiKey.SASL_HANDSHAKE not in highest:
            raise IllegalSaslStateError(f"the broker does not know SASL at this port: {_OTHER_PORT}")
        authenticate_version = highest.get(ApiKey.SASL_AUTHENTICATE, -1)
        if highest[ApiKey.SASL_HANDSHAKE] < _HANDSHAKE_VERSION or authenticate_version < 0:
            raise UnsupportedSaslMechanismError(
                "the broker is older than 1.0, whose SASL kafkacore does not speak: update the broker"
            )
        self._authenticate_version = min(authenticate_version, SaslAuthenticateRequest.MAX_VERSION)
        return self._handshake()

    def _handshake(self) -> Pieces:
        self._state = _State.HANDSHAKE
        return self._request(SaslHandshakeRequest(mechanism=self._config.mechanism), _HANDSHAKE_VERSION)

    def _handshake_came(self, response: SaslHandshakeResponse) -> Pieces:
        mechanism = self._config.mechanism
        if response.error_code == UnsupportedSaslMechanismError.errno:
            raise UnsupportedSaslMechanismError(
                f"the broker does not take sasl_mechanism={mechanism!r} at this port; "
                f"it takes {_listed(response.mechanisms)}"
            )
        if response.error_code == IllegalSaslStateError.errno:
            if self._is_again:
                raise IllegalSaslStateError(
                    "the broker does not let this client authenticate again so soon, or at all"
                )
            raise IllegalSaslStateError(f"the broker wants no SASL at this port: {_OTHER_PORT}")
        if response.error_code:
            raise IllegalSaslStateError(
                f"the broker refuses to begin with SASL ({for_code(response.error_code).message})"
            )
        self._mechanism = make_mechanism(self._config, self._host)
        token = self._mechanism.step(None)
        return self._tokens(b"" if token is None else token)

    def _tokens(self, token: bytes) -> Pieces:
        self._state = _State.TOKENS
        return self._request(SaslAuthenticateRequest(auth_bytes=token), self._authenticate_version)

    def _token_came(self, response: SaslAuthenticateResponse) -> Pieces | None:
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
                    f"{mechanism.name} has come to no end, and has nothing more to say"
                )
        self._complete(response.session_lifetime_ms)
        return None

    def _refused(self, response: SaslAuthenticateResponse) -> AuthenticationFailedError:
        said = shown(response.error_message or for_code(response.error_code).message)
        user = f" of user {shown(self._config.username)}" if self._config.username else ""
        before = self._mechanism.refusal if self._mechanism is not None else ""
        said += f" and, before that, {before}" if before else ""
        text = f"the broker refuses the {self._config.mechanism} authentication{user}; it says {said}"
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
            "authenticated%s at %s by %s; the session lasts %s",
            " again" if self._is_again else "",
            self._host,
            self._config.mechanism,
            f"{session_lifetime_ms} ms" if session_lifetime_ms > 0 else "for ever",
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
                f"the broker's answer to {request.NAME} cannot be read ({error}): {_OTHER_PORT}"
            ) from error
        if correlation_id != self._correlation_id:
            raise IllegalSaslStateError(
                f"the broker answered correlation id {correlation_id}, where {request.NAME} was "
                f"{self._correlation_id}"
            )
        return response


def _listed(mechanisms: Iterable[str]) -> str:
    names = [shown(name) for name in mechanisms]
    return ", ".join(names[:20]) if names else "none"
