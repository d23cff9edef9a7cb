"""Token providers whose method is a function or a coroutine."""

from __future__ import annotations

import asyncio

from kafkacore.aio._token_provider import TokenProviderCaller


class Provider:
    def token(self):
        return "plain"


class AsyncProvider:
    async def token(self):
        await asyncio.sleep(0)
        return "awaited"

    def extensions(self):
        return {"name": "value"}


def test_tokens_come_from_functions_and_coroutines():
    async def main():
        loop = asyncio.get_running_loop()
        plain, awaited = TokenProviderCaller(Provider(), loop), TokenProviderCaller(AsyncProvider(), loop)
        assert await asyncio.to_thread(plain.token) == "plain"
        assert await asyncio.to_thread(awaited.token) == "awaited"
        assert (plain.extensions(), awaited.extensions()) == ({}, {"name": "value"})

    asyncio.run(main())
