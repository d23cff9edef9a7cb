"""What went wrong with TLS, in a sentence: an ``ssl.SSLError`` or a peer's first bytes in, text out.

Does not know: sockets, which settings a client has.
"""

from __future__ import annotations

import ssl

from kafkacore.network.other_protocols import spoken_protocol

#: What a peer may say of our certificate, by the end of OpenSSL's reason, and what that means here.
_ALERTS = {
    "ALERT_UNKNOWN_CA": "it does not trust who issued the certificate that was shown",
    "ALERT_BAD_CERTIFICATE": "it does not accept the certificate that was shown",
    "ALERT_CERTIFICATE_EXPIRED": "the certificate that was shown has expired",
    "ALERT_CERTIFICATE_REVOKED": "the certificate that was shown has been revoked",
    "ALERT_CERTIFICATE_UNKNOWN": "it does not accept the certificate that was shown",
    "ALERT_UNSUPPORTED_CERTIFICATE": "the certificate that was shown is not of a kind that it accepts",
    "ALERT_CERTIFICATE_REQUIRED": "it asks for a certificate, and none was shown",
    "ALERT_PROTOCOL_VERSION": "it speaks no version of TLS that is allowed here",
    "ALERT_HANDSHAKE_FAILURE": "no common version or cipher, or it asks for a certificate",
    "ALERT_ACCESS_DENIED": "it denies access to the certificate that was shown",
    "ALERT_UNRECOGNIZED_NAME": "it does not know itself by the name that it was called",
}
#: What the engine says itself.
_REASONS = {
    "UNSUPPORTED_PROTOCOL": "the peer speaks no version of TLS that is allowed here",
    "WRONG_SSL_VERSION": "the peer speaks no version of TLS that is allowed here",
    "NO_SHARED_CIPHER": "the two sides have no cipher in common",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the peer showed no certificate, and one is asked for",
    "WRONG_VERSION_NUMBER": "what came is not TLS",
}
#: OpenSSL's numbers of "self-signed certificate", the same "in certificate chain", "unable to get issuer
#: certificate" and "local issuer certificate": nobody that is trusted has issued it.
_UNTRUSTED = (18, 19, 2, 20)
_ADVICE = "; name the file with the certificate of who issued it as ssl_cafile (of a command: --cafile)"


def refusal(error: ssl.SSLError, is_server: bool) -> str:
    """Why there is no TLS with the peer, or no longer."""
    peer = "the client" if is_server else "the broker"
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = "" if is_server or error.verify_code not in _UNTRUSTED else _ADVICE
        return f"{peer}'s certificate is not accepted: {_verification(error)}{advice}"
    # Python's own have none.
    reason = getattr(error, "reason", None) or ""
    for ending, sentence in _ALERTS.items():
        if reason.endswith(ending):
            return f"{peer} has refused: {sentence} ({reason})"
    if reason in _REASONS:
        return f"no TLS with {peer}: {_REASONS[reason]} ({reason})"
    return f"no TLS with {peer}: {reason or error.__class__.__name__}"


def _verification(error: ssl.SSLCertVerificationError) -> str:
    said = error.verify_message or error.reason or "it could not be verified"
    # "Hostname mismatch, certificate is not valid for 'x'." and the like end in a dot.
    return said.removesuffix(".")


def hung_up() -> str:
    """Of a broker that hangs up at the first bytes, without a word."""
    return (
        "it hangs up when it is spoken to in TLS: if the port is in the clear, say "
        "security_protocol='PLAINTEXT' or 'SASL_PLAINTEXT', or use its TLS port"
    )


def spoken_instead(first: memoryview, is_server: bool) -> str:
    """What a peer speaks whose first bytes are no TLS."""
    spoken = spoken_protocol(int.from_bytes(first, signed=True))
    if is_server:
        speaks = f"the client speaks {spoken or 'plaintext'}, and this port wants TLS"
        return f"{speaks}: its security.protocol must be SSL or SASL_SSL"
    if spoken is not None:
        return f"it speaks {spoken}: this is not a Kafka broker's port"
    return "it answers without TLS: use its TLS port, or security_protocol PLAINTEXT or SASL_PLAINTEXT"
