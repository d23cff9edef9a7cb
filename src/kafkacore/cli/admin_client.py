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
    """Return an admin client with the settings of the arguments."""
    # Imported here, so that the help of a command loads no client.
    from kafkacore.admin import KafkaAdminClient

    return KafkaAdminClient(**client_settings(arguments, "request_timeout_ms", "bootstrap_timeout_ms"))


@contextmanager
def usage_errors() -> Iterator[None]:
    """Report a value that the admin client does not accept as a wrong argument of the command."""
    try:
        yield
    except IllegalArgumentError as error:
        raise KafkaConfigurationError(str(error)) from None
