"""The handlers of all APIs that the broker serves, collected from the modules of this package.

An API without a handler is not announced, and a request for it closes the connection. To add an API, add a
module.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

from kafkacore.broker import handlers
from kafkacore.broker.handlers.services import AnyApiHandler, ApiHandler


def _found() -> tuple[AnyApiHandler, ...]:
    names = [module.name for module in pkgutil.iter_modules(handlers.__path__)]
    modules = [importlib.import_module(f"{handlers.__name__}.{name}") for name in names if name != "registry"]
    by_key = {
        value.request_class.API_KEY: value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, ApiHandler)
    }
    return tuple(by_key[key] for key in sorted(by_key))


HANDLERS: Final = _found()
