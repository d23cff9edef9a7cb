"""The asynchronous clients over TLS and SASL."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from eventually import BUDGET_S
from peers.secure_broker import SecureBroker

from kafkacore.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer

SECURE = [("SSL", None), ("SASL_SSL", "SCRAM-SHA-256"), ("SASL_SSL", "OAUTHBEARER"), ("REAUTH", "PLAIN")]


class AwaitedTokens:
    """A token provider as for aiokafka."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    async def token(self) -> Any:
        await asyncio.sleep(0)
        return self._provider.token()


def with_awaited_tokens(settings: dict[str, Any]) -> dict[str, Any]:
    if "sasl_oauth_token_provider" in settings:
        settings["sasl_oauth_token_provider"] = AwaitedTokens(settings["sasl_oauth_token_provider"])
    return settings


@pytest.mark.parametrize(("listener", "mechanism"), SECURE)
def test_records_are_sent_over_tls_and_sasl(
    secure_broker: SecureBroker, listener: str, mechanism: str | None
) -> None:
    settings = with_awaited_tokens(secure_broker.settings(listener, mechanism))

    async def main() -> None:
        async with AIOKafkaProducer(**settings) as producer:
            for _ in range(3):
                futures = [await producer.send("aio-secure", b"v" * 5000) for _ in range(100)]
                await asyncio.gather(*futures)

    asyncio.run(asyncio.wait_for(main(), BUDGET_S))


@pytest.mark.parametrize(("listener", "mechanism"), SECURE)
def test_topics_are_managed_and_read_over_tls_and_sasl(
    secure_broker: SecureBroker, listener: str, mechanism: str | None
) -> None:
    settings = with_awaited_tokens(secure_broker.settings(listener, mechanism))
    topic = f"aio-secure-{listener}-{mechanism}"

    async def main() -> None:
        async with AIOKafkaAdminClient(**settings) as admin:
            await admin.create_topics([topic])
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, b"v")
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings) as consumer:
            assert (await consumer.getone()).value == b"v"

    asyncio.run(asyncio.wait_for(main(), BUDGET_S))


class SlowTokens:
    """A token provider that blocks until the event loop has run other code, and fails at first."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self.has_loop_run = threading.Event()
        self.calls = 0

    def token(self) -> Any:
        self.calls += 1
        assert self.has_loop_run.wait(BUDGET_S)
        if self.calls == 1:
            raise OSError("no token yet")
        return self._provider.token()


@pytest.mark.parametrize("kind", [AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer])
def test_fetch_of_the_first_token_blocks_neither_constructor_nor_loop(
    secure_broker: SecureBroker, kind: Any
) -> None:
    settings = secure_broker.settings("SASL_SSL", "OAUTHBEARER")
    tokens = settings["sasl_oauth_token_provider"] = SlowTokens(settings["sasl_oauth_token_provider"])

    async def main() -> None:
        client = kind(**settings)
        assert tokens.calls == 0
        starting = asyncio.create_task(client.start())
        await asyncio.sleep(0)
        tokens.has_loop_run.set()
        with pytest.raises(OSError, match="no token yet"):
            await starting
        await client.start()
        assert tokens.calls == 2
        await (client.close() if kind is AIOKafkaAdminClient else client.stop())

    asyncio.run(asyncio.wait_for(main(), BUDGET_S))
