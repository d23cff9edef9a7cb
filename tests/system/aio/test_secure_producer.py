"""The asynchronous producer over TLS and SASL."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from eventually import BUDGET_S
from peers.secure_broker import SecureBroker

from kafkacore.aio import AIOKafkaProducer

SECURE = [("SSL", None), ("SASL_SSL", "SCRAM-SHA-256"), ("SASL_SSL", "OAUTHBEARER"), ("REAUTH", "PLAIN")]


class AwaitedTokens:
    """A token provider as for aiokafka."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    async def token(self) -> Any:
        await asyncio.sleep(0)
        return self._provider.token()


@pytest.mark.parametrize(("listener", "mechanism"), SECURE)
def test_records_are_sent_over_tls_and_sasl(
    secure_broker: SecureBroker, listener: str, mechanism: str | None
) -> None:
    settings = secure_broker.settings(listener, mechanism)
    if "sasl_oauth_token_provider" in settings:
        settings["sasl_oauth_token_provider"] = AwaitedTokens(settings["sasl_oauth_token_provider"])

    async def main() -> None:
        async with AIOKafkaProducer(**settings) as producer:
            for _ in range(3):
                futures = [await producer.send("aio-secure", b"v" * 5000) for _ in range(100)]
                await asyncio.gather(*futures)

    asyncio.run(asyncio.wait_for(main(), BUDGET_S))
