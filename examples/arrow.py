"""Read a topic into an Arrow table, with no Python object per record.

python examples/arrow.py localhost:9092 greetings
"""

import sys

import pyarrow

from kafkacore import KafkaConsumer, TopicPartition

if len(sys.argv) != 3:
    sys.exit(__doc__)
servers, topic = sys.argv[1:]

consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
partitions = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic) or ())]
ends = consumer.end_offsets(partitions)
consumer.assign(partitions)

batches = []
while any(consumer.position(partition) < end for partition, end in ends.items()):
    columns_by_partition = consumer.poll_arrow(
        timeout_ms=1000, columns=["offset", "timestamp", "key", "value"]
    )
    batches += [pyarrow.record_batch(columns) for columns in columns_by_partition.values()]
consumer.close()

table = pyarrow.Table.from_batches(batches)
print(table.schema)
print(f"{table.num_rows} records, {table.nbytes} bytes")
