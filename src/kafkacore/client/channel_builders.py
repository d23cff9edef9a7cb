"""How a client's connections are made secure: its settings in, what builds their channels out.

Does not know: TLS, mechanisms. Source of the settings: kafka-python's ``ssl_`` and ``sasl_`` arguments.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.network import ChannelBuilder
from kafkacore.security import Secret
from kafkacore.security.client_authenticator import SaslClientAuthenticator
from kafkacore.security.sasl.mechanism import SaslConfig
from kafkacore.security.tls_contexts import ReloadingContext, TlsSettings, client_context

#: Settings that an ``ssl_context`` of the user's own has in it already.
_OF_A_CONTEXT: Final = (
    "ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_crlfile", "ssl_ciphers",
    "ssl_enabled_protocols",
)  # fmt: skip


def channel_builder(config: Mapping[str, Any], clock: Clock) -> ChannelBuilder | None:
    """Of a client's settings as ``config.resolve`` gives them; ``None`` if the connections are in the clear.

    Raises
    ------
    KafkaConfigurationError
        Settings that do not fit together, or certificates that cannot be read; names them.
    """
    protocol = config["security_protocol"]
    context = _context(config, clock) if protocol in ("SSL", "SASL_SSL") else None
    if not protocol.startswith("SASL_"):
        return None if context is None else ChannelBuilder(is_server=False, context=context)
    sasl, client_id = SaslConfig.from_client_config(config), config["client_id"]
    return ChannelBuilder(
        is_server=False,
        context=context,
        authenticator=lambda host: SaslClientAuthenticator(sasl, host, client_id, clock),
        on_close=sasl.close,
    )


def _context(config: Mapping[str, Any], clock: Clock) -> Callable[[], ssl.SSLContext]:
    own = config["ssl_context"]
    if own is not None:
        doubled = [name for name in _OF_A_CONTEXT if config[name] is not None]
        if doubled:
            raise KafkaConfigurationError(
                f"ssl_context says it all: leave out {', '.join(doubled)}, or load them into the context"
            )
        return lambda: own
    settings = TlsSettings(
        trusted=config["ssl_cafile"],
        certificate=config["ssl_certfile"],
        key=_secret(config["ssl_keyfile"]),
        key_password=_secret(config["ssl_password"]),
        revocation_list=config["ssl_crlfile"],
        ciphers=config["ssl_ciphers"],
        versions=config["ssl_enabled_protocols"] or (),
    )
    checks_host = config["ssl_check_hostname"]
    return ReloadingContext(
        lambda: client_context(settings, checks_host=checks_host), settings.files(), clock
    )


def _secret(value: str | Secret | None) -> Secret | None:
    return None if value is None else Secret(value)
