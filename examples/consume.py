"""Print the records of a topic until no record arrives for one second.

python examples/consume.py localhost:9092 greetings
"""

import sys

from kafkacore import KafkaConsumer

if len(sys.argv) != 3:
    sys.exit(__doc__)
servers, topic = sys.argv[1:]

consumer = KafkaConsumer(
    topic, bootstrap_servers=servers, auto_offset_reset="earliest", consumer_timeout_ms=1000
)
for record in consumer:
    print(record.partition, record.offset, record.key, record.value)
consumer.close()
