"""Share a topic's partitions with every other run of this program for the same group, until caught up.

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
    auto_offset_reset="earliest",  # where the group has committed nothing yet
    enable_auto_commit=False,
) as consumer:
    while not caught_up(consumer):
        for records in consumer.poll(timeout_ms=1000).values():
            for record in records:
                print(record.partition, record.offset, record.value.decode())
        try:
            consumer.commit()  # all that was printed; who takes over goes on behind it
        except (CommitFailedError, RebalanceInProgressError) as error:
            print("may be printed once more, by whom it belongs to now:", error)
