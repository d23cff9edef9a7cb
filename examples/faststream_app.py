"""Run a FastStream application on kafkacore: write the squares of a topic's numbers to another topic.

python examples/faststream_app.py localhost:9092 numbers squares
"""

import asyncio
import sys

# isort: off
import kafkacore.aio.as_aiokafka  # noqa: F401 - before FastStream, which then imports kafkacore's clients
from faststream import FastStream
from faststream.kafka import KafkaBroker
# isort: on

if len(sys.argv) != 4:
    sys.exit(__doc__)
servers, source, target = sys.argv[1:]

broker = KafkaBroker(servers)
app = FastStream(broker)


@broker.subscriber(source, group_id="squarers", auto_offset_reset="earliest")
@broker.publisher(target)
async def square(number: int) -> int:
    return number**2


asyncio.run(app.run())
