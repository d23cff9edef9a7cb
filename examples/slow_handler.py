"""Handle records that take longer than max_poll_interval_ms, without losing them. Needs Apache Kafka.

python examples/slow_handler.py localhost:9092 orders billing 10
"""

import sys
import time

from kafkacore import KafkaConsumer, TopicPartition
from kafkacore.errors import CommitFailedError, RebalanceInProgressError

servers, topic, group, seconds = sys.argv[1:]

with KafkaConsumer(
    topic,
    bootstrap_servers=servers,
    group_id=group,
    auto_offset_reset="earliest",  # where the group has committed nothing yet
    enable_auto_commit=False,
    max_poll_interval_ms=1000,
    consumer_timeout_ms=3000,
) as consumer:
    for record in consumer:
        with consumer.hold() as held:
            time.sleep(float(seconds))  # a model, a web service, a nightly job
            if not held.check(TopicPartition(record.topic, record.partition)):
                print("another member has it now:", record.value.decode())
                continue
            print("handled:", record.value.decode())
            try:
                consumer.commit()  # up to this record
            except (CommitFailedError, RebalanceInProgressError) as error:
                print("may be handled once more:", error)
