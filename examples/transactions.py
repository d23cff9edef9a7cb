"""Write to two topics in transactions, and print the committed records.

python examples/transactions.py localhost:9092 orders invoices
"""

import sys

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.errors import KafkaError, ProducerFencedError

if len(sys.argv) != 4:
    sys.exit(__doc__)
servers, orders, invoices = sys.argv[1:]

with KafkaProducer(bootstrap_servers=servers, transactional_id="billing-1") as producer:
    producer.init_transactions()
    for number in range(5):
        try:
            producer.begin_transaction()
            producer.send(orders, b"order %d" % number)
            if number == 3:
                raise KafkaError("simulated failure")
            producer.send(invoices, b"invoice of order %d" % number)
            producer.commit_transaction()
        except ProducerFencedError:
            raise  # another process with this transactional_id has taken over
        except KafkaError as error:
            print("aborted:", error)
            producer.abort_transaction()

with KafkaConsumer(
    orders,
    invoices,
    bootstrap_servers=servers,
    isolation_level="read_committed",
    auto_offset_reset="earliest",
    consumer_timeout_ms=3000,
) as consumer:
    for record in consumer:
        print(record.topic, record.value.decode())
