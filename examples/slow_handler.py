"""Process records for longer than max_poll_interval_ms without losing the assigned partitions.

python examples/slow_handler.py localhost:9092 orders billing 10
"""

import sys
import time

from kafkacore import KafkaConsumer, OffsetAndMetadata
from kafkacore.errors import CommitFailedError, RebalanceInProgressError

if len(sys.argv) != 5:
    sys.exit(__doc__)
servers, topic, group, seconds = sys.argv[1:]


def caught_up(consumer: KafkaConsumer) -> bool:
    mine = consumer.assignment()
    return bool(mine) and all(consumer.current_lag(partition) == 0 for partition in mine)


with KafkaConsumer(
    topic,
    bootstrap_servers=servers,
    group_id=group,
    auto_offset_reset="earliest",  # where to start if the group has no committed offset
    enable_auto_commit=False,
    max_poll_interval_ms=1000,
) as consumer:
    while not caught_up(consumer):
        for partition, records in consumer.poll(timeout_ms=1000).items():
            with consumer.hold() as held:
                for record in records:
                    if not held.check(partition):
                        print("another member owns the partition now:", record.value.decode())
                        break
                    time.sleep(float(seconds))  # a model, a web service, a nightly job
                    print("handled:", record.value.decode())
                    try:
                        consumer.commit({partition: OffsetAndMetadata(record.offset + 1)})
                    except (CommitFailedError, RebalanceInProgressError) as error:
                        print("commit failed, the record may be handled again:", error)
