"""The version of kafkacore in this process."""

from __future__ import annotations

from importlib import import_module


def installed_version() -> str:
    """Return the version, such as ``0.1.0``; ``unknown`` in a checkout that was never built."""
    try:
        version: str = import_module("kafkacore._version").VERSION
    except ModuleNotFoundError:
        return "unknown"
    return version
