"""Call OAUTHBEARER token providers, whose method may be a coroutine."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from kafkacore.aio import _greenlets


class TokenProviderCaller:
    """The token provider that a client calls. It calls the application's, and awaits its coroutines.

    Parameters
    ----------
    provider:
        The value of ``sasl_oauth_token_provider``. Its method ``token`` may be a coroutine, as in aiokafka.
    loop:
        Event loop in which the coroutines run.
    """

    def __init__(self, provider: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._provider = provider
        self._loop = loop

    def token(self) -> Any:
        """Return the provider's token.

        The first token is fetched when the client is started. Later calls come from the thread that refreshes
        tokens.
        """
        outcome = self._provider.token()
        if not inspect.isawaitable(outcome):
            return outcome
        if _greenlets.can_wait():
            return _greenlets.wait(outcome)
        return asyncio.run_coroutine_threadsafe(_await(outcome), self._loop).result()

    def extensions(self) -> Mapping[str, str]:
        """Return the provider's SASL extensions (KIP-342), if it has any."""
        extensions = getattr(self._provider, "extensions", None)
        return {} if extensions is None else extensions()


async def _await(awaitable: Any) -> Any:
    return await awaitable
