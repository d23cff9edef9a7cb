"""Consume a topic as a member of a group until no records are left.

Several runs of this program with the same group share the partitions of the topic.

python examples/group.py localhost:9092 orders billing
"""

import sys

from kafkacore import KafkaConsumer
from kafkacore.errors import CommitFailedError, RebalanceInProgressError

if len(sys.argv) != 4:
    sys.exit(__doc__)
servers, topic, group = sys.argv[1:]


def caught_up(consumer: KafkaConsumer) -> bool:
    mine = consumer.assignment()
    return bool(mine) and all(consumer.current_lag(partition) == 0 for partition in mine)


with KafkaConsumer(
    topic,
    bootstrap_servers=servers,
    group_id=group,
    auto_offset_reset="earliest",  # where to start if the group has no committed offset
    enable_auto_commit=False,
) as consumer:
    while not caught_up(consumer):
        for records in consumer.poll(timeout_ms=1000).values():
            for record in records:
                print(record.partition, record.offset, record.value.decode())
        try:
            consumer.commit()  # the offsets after the last printed records
        except (CommitFailedError, RebalanceInProgressError) as error:
            print("commit failed, another member may print these records again:", error)
