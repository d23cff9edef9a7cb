"""Translate the security settings of kafkacore's clients to the settings of each peer.

Workers get them through the environment, and the Java program through a file that only its user can read. On
a command line, every user of the machine could see the password.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafkacore.bench.task import ClientSettings
from kafkacore.errors import KafkaConfigurationError

#: Environment variable that contains the settings for workers.
VARIABLE = "KAFKACORE_BENCH_SECURITY"
#: Settings that all peers support.
COMMON = (
    "security_protocol", "ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_check_hostname",
    "sasl_mechanism", "sasl_plain_username", "sasl_plain_password",
)  # fmt: skip
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_LIBRDKAFKA = {
    "security_protocol": "security.protocol",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_password": "ssl.key.password",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
}


def check(security: ClientSettings, has_peers: bool) -> None:
    """Check that all peers support the settings.

    Raises
    ------
    KafkaConfigurationError
        A peer does not support a setting.
    """
    if not has_peers:
        return
    if strange := sorted(set(security) - set(COMMON)):
        raise KafkaConfigurationError(
            f"the peers do not support {strange[0]}: remove it, or use --peers none"
        )
    mechanism = security.get("sasl_mechanism")
    if mechanism is not None and mechanism not in MECHANISMS:
        raise KafkaConfigurationError(
            f"the peers support only the SASL mechanisms {', '.join(MECHANISMS)}, not {mechanism}: use one "
            "of them, or use --peers none"
        )
    for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"):
        if "-----BEGIN" in security.get(name, ""):
            raise KafkaConfigurationError(
                f"the peers read {name} from a file: set it to a path, or use --peers none"
            )


@contextmanager
def exported(security: ClientSettings) -> Iterator[None]:
    """Pass the settings through the environment to workers that are started in the ``with`` block."""
    os.environ[VARIABLE] = json.dumps(dict(security))
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def settings_of(client: str) -> ClientSettings:
    """Return the security settings of a Python client, in a worker."""
    security: ClientSettings = json.loads(os.environ[VARIABLE])
    if client == "confluent":
        return for_librdkafka(security)
    return for_aiokafka(security) if client == "aiokafka" else security


def for_librdkafka(security: ClientSettings) -> ClientSettings:
    """Return the settings for librdkafka."""
    settings = {named: security[name] for name, named in _LIBRDKAFKA.items() if name in security}
    # Key and certificates may be in one file, but librdkafka needs both settings.
    if "ssl_certfile" in security and "ssl_keyfile" not in security:
        settings["ssl.key.location"] = security["ssl_certfile"]
    if not security.get("ssl_check_hostname", True):
        settings["ssl.endpoint.identification.algorithm"] = "none"
    return settings


def for_aiokafka(security: ClientSettings) -> ClientSettings:
    """Return the settings for aiokafka, which needs an SSL context in place of files."""
    settings = {name: value for name, value in security.items() if not name.startswith("ssl_")}
    if security["security_protocol"].endswith("SSL"):
        context = ssl.create_default_context(cafile=security.get("ssl_cafile"))
        context.check_hostname = security.get("ssl_check_hostname", True)
        if "ssl_certfile" in security:
            own = (security["ssl_certfile"], security.get("ssl_keyfile"), security.get("ssl_password"))
            context.load_cert_chain(*own)
        settings["ssl_context"] = context
    return settings


def for_java(security: ClientSettings) -> dict[str, str]:
    """Return the settings for Java, with PEM stores and a login module."""
    settings = {"security.protocol": security["security_protocol"]}
    if "ssl_cafile" in security:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": security["ssl_cafile"]}
    if "ssl_certfile" in security:
        settings["ssl.keystore.type"] = "PEM"
        settings["ssl.keystore.certificate.chain"] = Path(security["ssl_certfile"]).read_text()
        settings["ssl.keystore.key"] = Path(
            security.get("ssl_keyfile") or security["ssl_certfile"]
        ).read_text()
        if "ssl_password" in security:
            settings["ssl.key.password"] = security["ssl_password"]
    if not security.get("ssl_check_hostname", True):
        settings["ssl.endpoint.identification.algorithm"] = ""
    if mechanism := security.get("sasl_mechanism"):
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        user, password = (
            security[name].replace("\\", "\\\\").replace('"', '\\"')
            for name in ("sasl_plain_username", "sasl_plain_password")
        )
        settings["sasl.mechanism"] = mechanism
        settings["sasl.jaas.config"] = (
            f'org.apache.kafka.common.security.{module} required username="{user}" password="{password}";'
        )
    return settings


def write_java_properties(security: ClientSettings, file: Path) -> None:
    """Write the settings for Java to a file that only its owner can read."""
    lines = []
    for name, value in for_java(security).items():
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "")
        lines.append(f"{name}={escaped}\n")
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
        opened.writelines(lines)
