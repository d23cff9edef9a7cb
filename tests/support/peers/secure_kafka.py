"""Apache Kafka with a listener for each security protocol: the reference for TLS, SASL and ACLs.

The listeners, users and certificates are those of ``secure_listeners.py``. In a test, use the session-wide
fixture ``secure_kafka``::

    def test_something(secure_kafka):
        settings = secure_kafka.settings("SASL_SSL", "SCRAM-SHA-256")
        producer = KafkaProducer(**settings)

To start it by hand until Ctrl-C, and print the settings for each listener::

    PYTHONPATH=tests/support .venv/bin/python -m peers.secure_kafka
"""

from __future__ import annotations

import contextlib
import json
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

from peers.apache_kafka import ApacheKafka
from peers.secure_listeners import LISTENERS, PASSWORDS, SecureListeners

#: Bytes after which a TLS 1.3 connection updates its keys.
KEY_LIFETIME_BYTES = 2**20


class SecureKafka(ApacheKafka):
    """Apache Kafka 4.3.1 with all of :class:`~integration.secure_listeners.SecureListeners`."""

    def __init__(self, data_dir: Path) -> None:
        self.secure = SecureListeners(data_dir)
        #: Returns the client's settings for a listener.
        self.settings = self.secure.settings
        scram = [
            f"--add-scram={mechanism}=[name={name},password={password}]"
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for name, password in PASSWORDS.items()
        ]
        super().__init__(data_dir, format_options=scram)
        self.port = self.secure.port_of("PLAINTEXT")
        limits = data_dir / "java.security"
        limits.write_text(f"jdk.tls.keyLimits=AES/GCM/NoPadding KeyUpdate {KEY_LIFETIME_BYTES}\n")
        self._jvm = (*self._jvm, f"-Djava.security.properties={limits}")
        properties = self.secure.properties()
        properties["listeners"] += f",CONTROLLER://127.0.0.1:{self._controller_port}"
        properties["listener.security.protocol.map"] += ",CONTROLLER:PLAINTEXT"
        properties["inter.broker.listener.name"] = "PLAINTEXT"
        properties["delegation.token.secret.key"] = "a secret of the tests"
        self._extra |= properties


@contextlib.contextmanager
def started_secure_kafka() -> Iterator[SecureKafka]:
    """Yield a broker whose data is deleted at the end of the block."""
    with (
        tempfile.TemporaryDirectory(prefix="secure-kafka-") as folder,
        SecureKafka(Path(folder)) as kafka,
    ):
        yield kafka


def main() -> None:
    with started_secure_kafka() as kafka:
        for name, protocol in LISTENERS.items():
            mechanism = "PLAIN" if protocol.startswith("SASL_") else None
            print(name, json.dumps(kafka.settings(name, mechanism)), flush=True)  # noqa: T201 - the answer
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
