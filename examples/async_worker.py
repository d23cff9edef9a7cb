"""Copy a topic to another one in upper case. On SIGTERM, finish what was read, then stop.

python examples/async_worker.py localhost:9092 words shouts shouters
"""

import asyncio
import signal
import sys

from kafkacore.aio import AIOKafkaConsumer, AIOKafkaProducer

if len(sys.argv) != 5:
    sys.exit(__doc__)
servers, source, target, group = sys.argv[1:]


async def main() -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    consumer = AIOKafkaConsumer(
        source,
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with consumer, AIOKafkaProducer(bootstrap_servers=servers) as producer:
        while not stopping.is_set():
            found = await consumer.getmany(timeout_ms=500, max_records=100)
            for records in found.values():
                for record in records:
                    await producer.send_and_wait(target, record.value.upper())
                    print("done:", record.value.decode(), flush=True)
            # Only now are the records done. After a crash before this line, the group reads them again.
            if found:
                await consumer.commit()
    print("stopped", flush=True)


asyncio.run(main())
