"""Who a peer is, and how it shows it: SASL of both ends, principals, secrets, TLS contexts.

Frames and settings in; frames, principals and contexts out. Does not know: sockets, channels, what a
principal may do.
"""

from kafkacore.security.authenticator import Authenticator
from kafkacore.security.principal import ANONYMOUS, KafkaPrincipal
from kafkacore.security.secret import Secret

__all__ = ["ANONYMOUS", "Authenticator", "KafkaPrincipal", "Secret"]
