"""PLAIN (RFC 4616), the client's side: the password itself goes over the wire.

So it goes only where nobody else reads: inside TLS, or where the user says that it may be
(``sasl_allow_plain_over_plaintext``). The address of the broker is no such word: behind one of this machine's
own may be a tunnel or a proxy.
"""

from __future__ import annotations

from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.security.sasl.mechanism import SaslConfig, SaslMechanism
from kafkacore.security.sasl.scram import user_and_password
from kafkacore.security.secret import Secret


class PlainClient(SaslMechanism):
    """One authentication."""

    name = "PLAIN"

    def __init__(self, user: str, password: Secret) -> None:
        self._user = user
        self._password = password

    def step(self, challenge: bytes | None) -> bytes | None:
        if challenge is not None:
            raise SaslAuthenticationFailedError("the broker has a question, and PLAIN has none")
        self.is_complete = True
        return b"\0" + self._user.encode("utf-8") + b"\0" + self._password.octets()


def plain_client(config: SaslConfig, host: str) -> PlainClient:
    """Of the settings ``sasl_plain_username`` and ``sasl_plain_password``."""
    return PlainClient(*sendable_user_and_password(config))


def sendable_user_and_password(config: SaslConfig) -> tuple[str, Secret]:
    """That there are some, and that they may be sent; else
    :class:`~kafkacore.errors.KafkaConfigurationError`.
    """
    if not config.is_encrypted and not config.allow_plain_over_plaintext:
        raise KafkaConfigurationError(
            "sasl_mechanism='PLAIN' with security_protocol='SASL_PLAINTEXT' would send the password in clear "
            "text: use security_protocol='SASL_SSL' or a SCRAM mechanism, or, where nobody can listen, set "
            "sasl_allow_plain_over_plaintext=True"
        )
    return user_and_password(config)
