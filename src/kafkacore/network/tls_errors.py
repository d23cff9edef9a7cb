"""Describe TLS failures in plain English, given an ``ssl.SSLError`` or the first bytes of the peer."""

from __future__ import annotations

import ssl

from kafkacore.network.other_protocols import spoken_protocol

#: Suffix of OpenSSL's reason → description of an alert that the peer sent.
_ALERTS = {
    "ALERT_UNKNOWN_CA": "the issuer of the presented certificate is not trusted",
    "ALERT_BAD_CERTIFICATE": "the presented certificate is not accepted",
    "ALERT_CERTIFICATE_EXPIRED": "the presented certificate has expired",
    "ALERT_CERTIFICATE_REVOKED": "the presented certificate has been revoked",
    "ALERT_CERTIFICATE_UNKNOWN": "the presented certificate is not accepted",
    "ALERT_UNSUPPORTED_CERTIFICATE": "the type of the presented certificate is not supported",
    "ALERT_CERTIFICATE_REQUIRED": "a certificate is required, but none was presented",
    "ALERT_PROTOCOL_VERSION": "the peer does not support any TLS version that is allowed here",
    "ALERT_HANDSHAKE_FAILURE": "there is no common TLS version or cipher, or a certificate is required",
    "ALERT_ACCESS_DENIED": "access with the presented certificate is denied",
    "ALERT_UNRECOGNIZED_NAME": "the requested server name is not recognized",
}
#: OpenSSL's reason → description of an error that OpenSSL detected on this side.
_REASONS = {
    "UNSUPPORTED_PROTOCOL": "the peer does not support any TLS version that is allowed here",
    "WRONG_SSL_VERSION": "the peer does not support any TLS version that is allowed here",
    "NO_SHARED_CIPHER": "the two sides have no cipher in common",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the peer presented no certificate, but one is required",
    "WRONG_VERSION_NUMBER": "the peer sent data that is not TLS",
}
#: OpenSSL's verification errors for an untrusted issuer: self-signed certificate, self-signed certificate in
#: the chain, and two cases of an unknown issuer.
_UNTRUSTED = (18, 19, 2, 20)
_ADVICE = "; set ssl_cafile (of a command: --cafile) to the file with the issuer's certificate"


def describe_error(error: ssl.SSLError, is_server: bool) -> str:
    """Return why TLS with the peer failed."""
    peer = "the client" if is_server else "the broker"
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = "" if is_server or error.verify_code not in _UNTRUSTED else _ADVICE
        return f"{peer}'s certificate is not accepted: {_verification(error)}{advice}"
    # Errors that Python itself raises have no reason code of OpenSSL.
    reason = getattr(error, "reason", None) or ""
    for ending, sentence in _ALERTS.items():
        if reason.endswith(ending):
            return f"{peer} rejected the TLS connection: {sentence} ({reason})"
    if reason in _REASONS:
        return f"TLS with {peer} failed: {_REASONS[reason]} ({reason})"
    return f"TLS with {peer} failed: {reason or error.__class__.__name__}"


def _verification(error: ssl.SSLCertVerificationError) -> str:
    message = error.verify_message or error.reason or "the certificate could not be verified"
    # Remove the full stop of messages such as "Hostname mismatch, certificate is not valid for 'x'."
    return message.removesuffix(".")


def describe_silent_close() -> str:
    """Return the message for a broker that closes the connection when the TLS handshake starts."""
    return (
        "the broker closed the connection at the start of the TLS handshake: if the port is plaintext, set "
        "security_protocol to 'PLAINTEXT' or 'SASL_PLAINTEXT'; otherwise use the TLS port"
    )


def describe_plaintext(first: memoryview, is_server: bool) -> str:
    """Return the message for a peer whose first bytes (``first``) are not TLS."""
    protocol = spoken_protocol(int.from_bytes(first, signed=True))
    if is_server:
        return (
            f"the client speaks {protocol or 'plaintext'}, but this port requires TLS: set the client's "
            "security.protocol to SSL or SASL_SSL"
        )
    if protocol is not None:
        return f"the peer speaks {protocol}: the port does not belong to a Kafka broker"
    return (
        "the broker answers without TLS: use its TLS port, or set security_protocol to PLAINTEXT or "
        "SASL_PLAINTEXT"
    )
