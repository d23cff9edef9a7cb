"""SASL mechanisms of clients and brokers."""

from kafkacore.security.sasl.mechanism import (
    SaslConfig,
    SaslMechanism,
    make_mechanism,
    register_sasl_mechanism,
    sasl_mechanisms,
)

__all__ = ["SaslConfig", "SaslMechanism", "make_mechanism", "register_sasl_mechanism", "sasl_mechanisms"]
