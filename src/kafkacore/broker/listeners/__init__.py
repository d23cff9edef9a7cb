"""Listeners of the broker: TLS, SASL, users and connection limits."""
