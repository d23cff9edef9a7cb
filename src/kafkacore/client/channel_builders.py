"""Create the builder of TLS and SASL channels from the ``ssl_`` and ``sasl_`` settings of a client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.network import ChannelBuilder
from kafkacore.security import Secret

if TYPE_CHECKING:
    import ssl

    from kafkacore.client.proxy import Proxy

#: Settings that cannot be combined with ``ssl_context``, because the context contains them.
_CONTEXT_SETTINGS: Final = (
    "ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_crlfile", "ssl_ciphers",
    "ssl_enabled_protocols",
)  # fmt: skip


def channel_builder(
    config: Mapping[str, Any], clock: Clock, proxy: Proxy | None = None
) -> ChannelBuilder | None:
    """Create the channel builder of a client; return ``None`` if the connections are plaintext.

    Parameters
    ----------
    config:
        Settings that ``config.resolve`` returned.
    clock:
        Clock of the client.
    proxy:
        Proxy through which tokens are fetched; ``None`` without ``proxy_url``.

    Raises
    ------
    KafkaConfigurationError
        Settings contradict each other, or a certificate cannot be read. The message names the settings.
    """
    protocol = config["security_protocol"]
    context = _context(config, clock) if protocol in ("SSL", "SASL_SSL") else None
    if not protocol.startswith("SASL_"):
        return None if context is None else ChannelBuilder(is_server=False, context=context)
    # A client without SASL does not need these modules, whose import takes longer than that of the client.
    from kafkacore.security.client_authenticator import SaslClientAuthenticator
    from kafkacore.security.sasl.mechanism import SaslConfig

    sasl, client_id = SaslConfig.from_client_config(config, proxy), config["client_id"]
    return ChannelBuilder(
        is_server=False,
        context=context,
        authenticator=lambda host: SaslClientAuthenticator(sasl, host, client_id, clock),
        on_close=sasl.close,
    )


def _context(config: Mapping[str, Any], clock: Clock) -> Callable[[], ssl.SSLContext]:
    own = config["ssl_context"]
    if own is not None:
        redundant = [name for name in _CONTEXT_SETTINGS if config[name] is not None]
        if redundant:
            raise KafkaConfigurationError(
                f"ssl_context cannot be combined with {', '.join(redundant)}: remove these settings, and "
                "load their values into the context"
            )
        return lambda: own
    from kafkacore.security.tls_contexts import ReloadingContext, TlsSettings, client_context

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
