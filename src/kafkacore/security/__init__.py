"""Authentication and encryption of clients and brokers: SASL, principals, secrets and TLS contexts."""

from kafkacore.security.authenticator import Authenticator
from kafkacore.security.principal import ANONYMOUS, KafkaPrincipal
from kafkacore.security.secret import Secret

__all__ = ["ANONYMOUS", "Authenticator", "KafkaPrincipal", "Secret"]
