"""Call OAUTHBEARER token providers, whose method may be a coroutine."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, MutableMapping
from typing import Any


class TokenProviderCaller:
    """The token provider that a client calls. It calls the application's, and awaits its coroutines.

    Parameters
    ----------
    provider:
        The value of ``sasl_oauth_token_provider``. Its method ``token`` may be a coroutine, as in aiokafka.
    loop:
        Event loop in which the coroutines run; ``None`` before the client is started.
    """

    def __init__(self, provider: Any, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._provider = provider
        self.loop = loop

    @classmethod
    def wrap(
        cls, settings: MutableMapping[str, Any], loop: asyncio.AbstractEventLoop | None = None
    ) -> TokenProviderCaller | None:
        """Replace the provider in ``settings``, if there is one, by a caller, and return the caller."""
        if settings.get("sasl_oauth_token_provider") is None:
            return None
        caller = settings["sasl_oauth_token_provider"] = cls(settings["sasl_oauth_token_provider"], loop)
        return caller

    def token(self) -> Any:
        """Return the provider's token. Only threads without an event loop call this method.

        A thread of the event loop's executor fetches the first token, when the client is started. The thread
        that refreshes tokens fetches the others.
        """
        outcome = self._provider.token()
        if not inspect.isawaitable(outcome):
            return outcome
        assert self.loop is not None
        return asyncio.run_coroutine_threadsafe(_await(outcome), self.loop).result()

    def extensions(self) -> Mapping[str, str]:
        """Return the provider's SASL extensions (KIP-342), if it has any."""
        extensions = getattr(self._provider, "extensions", None)
        return {} if extensions is None else extensions()


async def _await(awaitable: Any) -> Any:
    return await awaitable
