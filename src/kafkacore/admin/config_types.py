"""Types of the settings of the admin; written by tools/settings.py."""

from __future__ import annotations

from kafkacore.client.config_types import ClientConfig


class AdminConfig(ClientConfig, total=False):
    """Keyword arguments of the admin; the reference has their defaults."""
