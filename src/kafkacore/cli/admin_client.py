"""The admin client of a command."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafkacore.cli.connection import client_settings
from kafkacore.errors import IllegalArgumentError, KafkaConfigurationError

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient


def admin_client(arguments: argparse.Namespace) -> KafkaAdminClient:
    """Return an admin client with the settings from the command-line arguments."""
    # Imported here, so that ``--help`` does not load the client.
    from kafkacore.admin import KafkaAdminClient

    return KafkaAdminClient(**client_settings(arguments, "request_timeout_ms", "bootstrap_timeout_ms"))


@contextmanager
def usage_errors() -> Iterator[None]:
    """Report a value that the admin client rejects as an invalid command-line argument."""
    try:
        yield
    except IllegalArgumentError as error:
        raise KafkaConfigurationError(str(error)) from None
