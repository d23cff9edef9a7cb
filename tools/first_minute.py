"""Do what a new user does in the first minute: start a broker, produce, consume, and print the result.

The script uses the kafkacore that is installed, so it must run outside of a checkout's ``src``. The tests of
wheels run it in environments without a compiler.
"""

from kafkacore import KafkaConsumer, KafkaProducer, __version__
from kafkacore.testing import EmbeddedBroker

with EmbeddedBroker() as broker:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, compression_type="zstd") as producer:
        producer.send("greetings", b"hello").get(timeout=30)
    with KafkaConsumer(
        "greetings", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        record = next(iter(consumer))

print(f"kafkacore {__version__}: offset {record.offset} of {record.topic} is {record.value!r}")
