"""The admin client of a command."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafkacore.cli.connection import client_settings

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient


def admin_client(arguments: argparse.Namespace) -> KafkaAdminClient:
    """Return an admin client with the settings of the arguments."""
    # Imported here, so that the help of a command loads no client.
    from kafkacore.admin import KafkaAdminClient

    return KafkaAdminClient(**client_settings(arguments, "request_timeout_ms", "bootstrap_timeout_ms"))
