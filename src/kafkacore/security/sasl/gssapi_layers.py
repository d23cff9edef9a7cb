"""What both ends of GSSAPI say once Kerberos has introduced them: no security layer is wanted (RFC 4752).

Does not know: Kerberos. A layer would be spoken inside Kafka's frames, and Kafka has none: TLS encrypts.
"""

from __future__ import annotations

from typing import Final

from kafkacore.errors import SaslAuthenticationFailedError

#: Authentication alone; the other bits are integrity and confidentiality.
NO_LAYER: Final = 0x01
#: The layer, and the longest message that is taken, which is 0 without one.
OFFER: Final = bytes([NO_LAYER, 0, 0, 0])


def answer_to_offer(offer: bytes, authorization_id: str) -> bytes:
    """The client's choice among the layers that the server offers."""
    if len(offer) != 4 or not offer[0] & NO_LAYER:
        raise SaslAuthenticationFailedError(
            "the broker insists on a security layer, which Kafka does not have"
        )
    return OFFER + authorization_id.encode("utf-8")


def check_choice(choice: bytes) -> None:
    """The server's look at it. Whom the client wants to be is not: like Kafka, it is who its ticket says."""
    if len(choice) < 4 or choice[0] != NO_LAYER:
        raise SaslAuthenticationFailedError("the client wants a security layer, which Kafka does not have")
