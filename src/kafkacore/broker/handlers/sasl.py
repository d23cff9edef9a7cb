"""SaslHandshake and SaslAuthenticate where no authentication is going on: they are refused, as in Kafka.

Versions 0 to 1 and 0 to 2. What authenticates a client comes before its requests and is no business of a
handler: :mod:`kafkacore.security.server_authenticator`. Here arrive those of a client on a listener without
SASL, and tokens behind the end of an authentication.
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
        sentence = "This client has been authenticated already."
    else:
        sentence = f"Nobody authenticates by SASL here: the listener speaks {protocol}."
    return SaslAuthenticateResponse(
        error_code=IllegalSaslStateError.errno, error_message=sentence, auth_bytes=b""
    )


HANDSHAKE = ApiHandler(SaslHandshakeRequest, 0, 1, handle_handshake)
AUTHENTICATE = ApiHandler(SaslAuthenticateRequest, 0, 2, handle_authenticate)
