"""The admin client of a command."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafkacore.cli.connection import client_settings
from kafkacore.errors import IllegalArgumentError, KafkaConfigurationError
from kafkacore.logs import logger_of

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient

logger = logger_of(__name__)


@contextmanager
def admin_client(arguments: argparse.Namespace) -> Iterator[KafkaAdminClient]:
    """Yield an admin client with the settings of the arguments, and close it.

    A value that the admin client does not accept is reported as a wrong argument of the command.
    """
    # Imported here, so that the help of a command loads no client.
    from kafkacore.admin import KafkaAdminClient

    settings = client_settings(arguments, "request_timeout_ms", "bootstrap_timeout_ms")
    try:
        with KafkaAdminClient(**settings) as admin:
            yield admin
    except UnicodeEncodeError:
        raise
    except (IllegalArgumentError, ValueError) as error:
        logger.debug("the admin client rejected an argument of the command", exc_info=True)
        raise KafkaConfigurationError(str(error)) from None
