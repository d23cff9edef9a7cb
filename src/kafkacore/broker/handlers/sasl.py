"""SaslHandshake and SaslAuthenticate outside of an authentication: refuse them, as in Kafka.

SaslHandshake has versions 0 to 1. SaslAuthenticate has versions 0 to 2.
:mod:`kafkacore.security.server_authenticator` authenticates a client before its first request. These handlers
get requests from clients on a listener without SASL, and tokens sent after the authentication is complete.
"""

from __future__ import annotations

from kafkacore.broker.handlers.services import ApiHandler, Request
from kafkacore.broker.requests.authorization import AuthorizationServices
from kafkacore.errors import IllegalSaslStateError
from kafkacore.protocol.generated.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacore.protocol.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle_handshake(
    request: Request[SaslHandshakeRequest], services: AuthorizationServices
) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=IllegalSaslStateError.errno, mechanisms=[])


def handle_authenticate(
    request: Request[SaslAuthenticateRequest], services: AuthorizationServices
) -> SaslAuthenticateResponse:
    protocol = request.context.security_protocol
    if protocol.startswith("SASL_"):
        sentence = "The client is already authenticated."
    else:
        sentence = f"SASL is not enabled on this listener: its security protocol is {protocol}."
    return SaslAuthenticateResponse(
        error_code=IllegalSaslStateError.errno, error_message=sentence, auth_bytes=b""
    )


HANDSHAKE = ApiHandler(SaslHandshakeRequest, 0, 1, handle_handshake)
AUTHENTICATE = ApiHandler(SaslAuthenticateRequest, 0, 2, handle_authenticate)
