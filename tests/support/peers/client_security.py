"""Conversion of a client's security settings from kafka-python's names to those of other clients."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from model.tokens import TokenOf

Settings = Mapping[str, Any]

_MODULES = "org.apache.kafka.common.security"


def without_address(settings: Settings) -> dict[str, Any]:
    """Return the settings for kafka-python."""
    return {name: value for name, value in settings.items() if name != "bootstrap_servers"}


def for_kafkacore(settings: Settings) -> dict[str, Any]:
    """Return the settings for kafkacore, allowing a plaintext password where one is used."""
    found = without_address(settings)
    if (found.get("security_protocol"), found.get("sasl_mechanism")) == ("SASL_PLAINTEXT", "PLAIN"):
        found["sasl_allow_plain_over_plaintext"] = True
    return found


def for_librdkafka(settings: Settings) -> dict[str, Any]:
    names = {
        "security_protocol": "security.protocol",
        "ssl_cafile": "ssl.ca.location",
        "ssl_certfile": "ssl.certificate.location",
        "ssl_keyfile": "ssl.key.location",
        "ssl_password": "ssl.key.password",
        "sasl_mechanism": "sasl.mechanism",
        "sasl_plain_username": "sasl.username",
        "sasl_plain_password": "sasl.password",
    }
    found = {named: settings[name] for name, named in names.items() if name in settings}
    if provider := settings.get("sasl_oauth_token_provider"):
        found["oauth_cb"] = _for_oauth_cb(provider)
    return found


def _for_oauth_cb(provider: TokenOf) -> Callable[[str], tuple[str, float]]:
    return lambda _: (provider.token(), provider.expires_at_s())


def for_java(settings: Settings) -> dict[str, str]:
    """Return the settings for Java: PEM trust store and key store, and the mechanism's login module."""
    found = {"security.protocol": settings.get("security_protocol", "PLAINTEXT")}
    if "ssl_cafile" in settings:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": settings["ssl_cafile"]}
    if "ssl_certfile" in settings:
        found["ssl.keystore.type"] = "PEM"
        found["ssl.keystore.certificate.chain"] = Path(settings["ssl_certfile"]).read_text()
        found["ssl.keystore.key"] = Path(settings["ssl_keyfile"]).read_text()
    if mechanism := settings.get("sasl_mechanism"):
        found["sasl.mechanism"] = mechanism
        found["sasl.jaas.config"] = _login(mechanism, settings)
    return found


def _login(mechanism: str, settings: Settings) -> str:
    if mechanism == "GSSAPI":
        return "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;"
    if mechanism == "OAUTHBEARER":
        user = settings["sasl_oauth_token_provider"].user
        module = f'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{user}"'
    else:
        package = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
        user, password = settings["sasl_plain_username"], settings["sasl_plain_password"]
        module = f'{package}LoginModule required username="{user}" password="{password}"'
    return f"{_MODULES}.{module};"


def write_java_properties(settings: Settings, file: Path) -> str:
    """Write a file for ``--command-config`` of Java's tools, and return its path."""
    lines = [f"{name}={_escaped(value)}\n" for name, value in for_java(settings).items()]
    file.write_text("".join(lines))
    return str(file)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


class _AwaitedToken(AbstractTokenProvider):
    def __init__(self, provider: TokenOf) -> None:
        self._provider = provider

    async def token(self) -> str:
        return self._provider.token()


def for_aiokafka(settings: Settings) -> dict[str, Any]:
    found = {name: value for name, value in without_address(settings).items() if not name.startswith("ssl_")}
    if "ssl_cafile" in settings:
        found["ssl_context"] = context = ssl.create_default_context(cafile=settings["ssl_cafile"])
        if "ssl_certfile" in settings:
            context.load_cert_chain(
                settings["ssl_certfile"], settings["ssl_keyfile"], settings.get("ssl_password")
            )
    if provider := settings.get("sasl_oauth_token_provider"):
        found["sasl_oauth_token_provider"] = _AwaitedToken(provider)
    return found
