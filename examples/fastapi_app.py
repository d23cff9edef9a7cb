"""Produce a record for each request, and count the records of the topic, in a FastAPI application.

python examples/fastapi_app.py localhost:9092 orders 8000

    curl -X POST localhost:8000/orders -d '{"item": "tea"}' -H 'Content-Type: application/json'
    curl localhost:8000/count
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from kafkacore.aio import AIOKafkaConsumer, AIOKafkaProducer

if len(sys.argv) != 4:
    sys.exit(__doc__)
servers, topic, port = sys.argv[1:]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Start the producer, and the consumer in a task of its own; stop both with the application."""
    producer = AIOKafkaProducer(bootstrap_servers=servers)
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest")
    async with producer, consumer:
        app.state.producer, app.state.count = producer, 0
        counting = asyncio.create_task(count(app, consumer))
        yield
        counting.cancel()
        await asyncio.gather(counting, return_exceptions=True)


async def count(app: FastAPI, consumer: AIOKafkaConsumer) -> None:
    async for _ in consumer:
        app.state.count += 1


app = FastAPI(lifespan=lifespan)


@app.post("/orders")
async def order(body: dict[str, str]) -> dict[str, int]:
    metadata = await app.state.producer.send_and_wait(topic, json.dumps(body).encode())
    return {"partition": metadata.partition, "offset": metadata.offset}


@app.get("/count")
async def counted() -> dict[str, int]:
    return {"count": app.state.count}


if __name__ == "__main__":
    uvicorn.run(app, port=int(port), log_level="warning")
