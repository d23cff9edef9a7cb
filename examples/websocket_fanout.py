"""Send every record of a topic to all connected websockets.

python examples/websocket_fanout.py localhost:9092 prices 8765

    python -m websockets ws://localhost:8765
"""

import asyncio
import sys

from websockets.asyncio.server import ServerConnection, broadcast, serve

from kafkacore.aio import AIOKafkaConsumer

if len(sys.argv) != 4:
    sys.exit(__doc__)
servers, topic, port = sys.argv[1:]

connected: set[ServerConnection] = set()


async def hold_open(connection: ServerConnection) -> None:
    connected.add(connection)
    try:
        await connection.wait_closed()
    finally:
        connected.discard(connection)


async def main() -> None:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=servers)
    async with consumer, serve(hold_open, "localhost", int(port)):
        print("ready", flush=True)
        async for record in consumer:
            # A slow reader does not hold up the others: its messages wait in its own connection.
            broadcast(connected, record.value.decode())


try:
    asyncio.run(main())
except KeyboardInterrupt:
    sys.exit(130)
