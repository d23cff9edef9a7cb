"""Create the network client and the metadata of a client from its settings."""

from __future__ import annotations

import functools
import math

from kafkacore.client.addresses import (
    Resolver,
    bootstrap_nodes,
    canonical_hosts,
    parse_bootstrap_servers,
    resolve_host,
)
from kafkacore.client.channel_builders import channel_builder
from kafkacore.client.metadata import Metadata
from kafkacore.client.network_client import NetworkClient
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.network import Selectable, Selector
from kafkacore.settings import Config


def bootstrap_client(
    config: Config,
    clock: Clock = SYSTEM_CLOCK,
    *,
    topic_expiry_ms: float | None = None,
    selector: Selectable | None = None,
    resolver: Resolver = resolve_host,
) -> tuple[NetworkClient, Metadata]:
    """Create the network client of a producer, a consumer or an admin client. It does not connect yet.

    Parameters
    ----------
    config:
        Settings that :func:`kafkacore.client.config.resolve` returned. After the first connection
        ``api_version`` holds the release of the broker, unless the user has set ``api_version``.
    clock:
        Clock of the client.
    topic_expiry_ms:
        Time, in milliseconds, after which an unused topic is dropped from the metadata; ``None`` keeps all
        topics. Only producers set a time.
    selector, resolver:
        Replacements for sockets and DNS in tests.

    Returns
    -------
    NetworkClient, Metadata
        The network client, and the metadata that it updates.

    Raises
    ------
    KafkaConfigurationError
        ``bootstrap_servers`` is invalid or cannot be resolved, the security settings are invalid, or the
        library for ``proxy_url`` is not installed.
    """
    proxy = None
    if config["proxy_url"] is not None:
        # Few clients use a proxy, and each program would import this module.
        from kafkacore.client.proxy import client_proxy

        proxy = client_proxy(config["proxy_url"], resolver, clock)
    builder = channel_builder(config, clock, proxy)
    servers = _servers(config)
    metadata = _metadata(config, clock, topic_expiry_ms)
    metadata.bootstrap(bootstrap_nodes(servers))
    rebootstraps = config["metadata_recovery_strategy"] == "rebootstrap"
    client = NetworkClient(
        selector or _selector(config, clock),
        metadata,
        clock=clock,
        client_id=config["client_id"],
        max_in_flight_requests_per_connection=config["max_in_flight_requests_per_connection"],
        reconnect_backoff_ms=config["reconnect_backoff_ms"],
        reconnect_backoff_max_ms=config["reconnect_backoff_max_ms"],
        send_buffer_bytes=config["send_buffer_bytes"],
        receive_buffer_bytes=config["receive_buffer_bytes"],
        request_timeout_ms=config["request_timeout_ms"],
        connection_setup_timeout_ms=config["socket_connection_setup_timeout_ms"],
        connection_setup_timeout_max_ms=config["socket_connection_setup_timeout_max_ms"],
        rebootstrap_trigger_ms=config["metadata_recovery_rebootstrap_trigger_ms"]
        if rebootstraps
        else math.inf,
        resolver=resolver,
        channel_builder=builder,
        proxy=proxy,
    )
    if config["api_version"] is None:
        client.api_versions.on_first = functools.partial(config.__setitem__, "api_version")
    return client, metadata


def _metadata(config: Config, clock: Clock, topic_expiry_ms: float | None) -> Metadata:
    return Metadata(
        clock,
        refresh_backoff_ms=config["retry_backoff_ms"],
        refresh_backoff_max_ms=config["retry_backoff_max_ms"],
        metadata_max_age_ms=config["metadata_max_age_ms"],
        topic_expiry_ms=topic_expiry_ms,
        allow_auto_topic_creation=config.get("allow_auto_create_topics", True),
    )


def _selector(config: Config, clock: Clock) -> Selector:
    idle_ms = config["connections_max_idle_ms"]
    return Selector(
        clock,
        max_receive_size=config["receive_message_max_bytes"],
        connections_max_idle_ms=None if idle_ms == math.inf else idle_ms,
        backend=config["selector"],
        socket_options=config["socket_options"],
        busy_poll_ms=config.get("busy_poll_ms", 0.0),
    )


def _servers(config: Config) -> list[tuple[str, int]]:
    servers = parse_bootstrap_servers(config["bootstrap_servers"], config["security_protocol"])
    if config["client_dns_lookup"] == "resolve_canonical_bootstrap_servers_only":
        try:
            servers = canonical_hosts(servers)
        except OSError as error:
            raise KafkaConfigurationError(
                f"bootstrap_servers={config['bootstrap_servers']!r}: no address found ({error})"
            ) from error
    return servers
