"""kafka-python's import path of :class:`AbstractTokenProvider`."""

from kafkacore.security.sasl.oauthbearer import AbstractTokenProvider

__all__ = ["AbstractTokenProvider"]
