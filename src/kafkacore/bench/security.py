"""How each client reaches a secure cluster: the arguments of ours in, the settings of each by its names out.

Workers are told by their environment, and Java's by a file that is its user's own: a command line would show
the password to everybody. Does not know: what is measured.
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

#: What workers read.
VARIABLE = "KAFKACORE_BENCH_SECURITY"
#: What all of the peers have.
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
    """Refuse what not all of the clients can be told.

    Raises
    ------
    KafkaConfigurationError
        With the sentence for the user.
    """
    if not has_peers:
        return
    if strange := sorted(set(security) - set(COMMON)):
        raise KafkaConfigurationError(
            f"the peers cannot be told {strange[0]}: leave it out, or say --peers none"
        )
    mechanism = security.get("sasl_mechanism")
    if mechanism is not None and mechanism not in MECHANISMS:
        raise KafkaConfigurationError(
            f"the peers are measured with {', '.join(MECHANISMS)}: choose one of them, or say --peers none"
        )
    for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"):
        if "-----BEGIN" in security.get(name, ""):
            raise KafkaConfigurationError(f"the peers read {name} from a file: name one, or say --peers none")


@contextmanager
def exported(security: ClientSettings) -> Iterator[None]:
    """Workers that are started in the block can be told."""
    os.environ[VARIABLE] = json.dumps(dict(security))
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def settings_of(client: str) -> ClientSettings:
    """In a worker: what a client that runs in Python is told."""
    security: ClientSettings = json.loads(os.environ[VARIABLE])
    if client == "confluent":
        return for_librdkafka(security)
    return for_aiokafka(security) if client == "aiokafka" else security


def for_librdkafka(security: ClientSettings) -> ClientSettings:
    """By the names of librdkafka."""
    settings = {named: security[name] for name, named in _LIBRDKAFKA.items() if name in security}
    # Key and certificates may be in one file; it wants to be told of both.
    if "ssl_certfile" in security and "ssl_keyfile" not in security:
        settings["ssl.key.location"] = security["ssl_certfile"]
    if not security.get("ssl_check_hostname", True):
        settings["ssl.endpoint.identification.algorithm"] = "none"
    return settings


def for_aiokafka(security: ClientSettings) -> ClientSettings:
    """Ours, with a context in the place of files."""
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
    """By Java's names: stores of PEM, and a login module."""
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
    """A file that nobody else can read."""
    lines = []
    for name, value in for_java(security).items():
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "")
        lines.append(f"{name}={escaped}\n")
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
        opened.writelines(lines)
