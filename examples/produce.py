"""Produce ten records and print their partitions and offsets.

python examples/produce.py localhost:9092 greetings
"""

import sys

from kafkacore import KafkaProducer

if len(sys.argv) != 3:
    sys.exit(__doc__)
servers, topic = sys.argv[1:]

with KafkaProducer(bootstrap_servers=servers, compression_type="lz4") as producer:
    futures = [
        producer.send(
            topic, key=b"%d" % number, value=b"hello %d" % number, headers=[("example", b"produce")]
        )
        for number in range(10)
    ]
    for future in futures:
        metadata = future.get(timeout=10)
        print(f"{metadata.topic} partition {metadata.partition} offset {metadata.offset}")
