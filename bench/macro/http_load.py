"""Send POST requests to an HTTP server on some connections, and print the figures as JSON.

python bench/macro/http_load.py PORT PATH REQUESTS
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from statistics import quantiles

CONNECTIONS = 32
BODY = b'{"item": "tea"}'


async def send(port: int, path: str, numbers: list[int], latencies_ms: list[float]) -> None:
    """Send requests on one connection, each after the response to the one before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(BODY)}\r\n\r\n"
    ).encode() + BODY
    while numbers:
        numbers.pop()
        began_s = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the server answered {head.decode()}")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
        latencies_ms.append((time.perf_counter() - began_s) * 1_000)
    writer.close()


async def main(port: int, path: str, requests: int) -> None:
    numbers, latencies_ms = list(range(requests)), []
    began_s = time.perf_counter()
    await asyncio.gather(*(send(port, path, numbers, latencies_ms) for _ in range(CONNECTIONS)))
    cuts = quantiles(latencies_ms, n=100)
    rate = requests / (time.perf_counter() - began_s)
    print(json.dumps({"records_per_s": rate, "p50_ms": cuts[49], "p99_ms": cuts[98]}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
