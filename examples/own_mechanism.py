"""Authenticate with a password that may change while the program runs: it is read for each connection.

python examples/own_mechanism.py localhost:9092 greetings alice password.txt
"""

import sys
from pathlib import Path

from kafkacore import KafkaProducer
from kafkacore.security.sasl import SaslConfig, SaslMechanism, register_sasl_mechanism

if len(sys.argv) != 5:
    sys.exit(__doc__)
servers, topic, user, password_file = sys.argv[1:]


class PlainByFile(SaslMechanism):
    """SASL PLAIN (RFC 4616). An instance is created for each authentication and re-authentication."""

    name = "PLAIN"

    def __init__(self, config: SaslConfig, host: str) -> None:
        self.user = config.username

    def step(self, challenge: bytes | None) -> bytes | None:
        if challenge is None:  # the client sends the first message
            password = Path(password_file).read_text().strip()
            return f"\0{self.user}\0{password}".encode()
        self.is_complete = True
        return None


register_sasl_mechanism("PLAIN", PlainByFile, overwrite=True)

with KafkaProducer(
    bootstrap_servers=servers,
    security_protocol="SASL_PLAINTEXT",
    sasl_mechanism="PLAIN",
    sasl_plain_username=user,
) as producer:
    metadata = producer.send(topic, b"hello").get(timeout=10)
    print(f"{metadata.topic} partition {metadata.partition} offset {metadata.offset}")
