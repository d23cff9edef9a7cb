"""Shared parts of the commands: common arguments, and records as lines of JSON."""

from __future__ import annotations

import argparse
import base64
import json
import logging
import socket
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from kafkacore.client.addresses import parse_bootstrap_servers, resolve_host
from kafkacore.client.proxy import Proxy, client_proxy
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.security import Secret
from kafkacore.security.settings import proxy_url_or_none
from kafkacore.settings import Config
from kafkacore.structs import INT64_MAX
from kafkacore.text import did_you_mean

DEFAULT_BOOTSTRAP = "localhost:9092"
DEFAULT_TIMEOUT_S = 10.0
#: Number of attempts to connect, and the pause between them. A broker that refuses connections may still be
#: starting.
REFUSALS = 5
REFUSAL_PAUSE_MS = 250.0
CONNECT_TIMEOUT_S = 0.5
#: Limits of ``--timeout``: longer than a fetch waits for records (0.5 s), and shorter than a connection may
#: be idle (9 minutes).
LEAST_TIMEOUT_S, MOST_TIMEOUT_S = 1.0, 500.0


class CommandError(KafkaError):
    """A command cannot continue, for example because a line of its input is invalid.

    Wrong arguments raise :class:`KafkaConfigurationError` instead.
    """


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """Add ``--timeout``, which :func:`time_limits` reads."""
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help=f"give up if no broker answers within this many seconds (default: {DEFAULT_TIMEOUT_S:g}, or "
        f"about {(REFUSALS - 1) * REFUSAL_PAUSE_MS / 1000:g} if all addresses refuse connections)",
    )


def time_limits(arguments: argparse.Namespace, *names: str) -> Config:
    """Return the client settings with these names. Each setting has the value of ``--timeout``."""
    timeout_s = DEFAULT_TIMEOUT_S if arguments.timeout is None else arguments.timeout
    return dict.fromkeys(names, int(timeout_s * 1000))


def require_listener(
    bootstrap: str, clock: Clock = SYSTEM_CLOCK, *, proxy_url: str | Secret | None = None
) -> None:
    """Check that at least one address of ``bootstrap`` accepts connections.

    A client would retry until its timeout. This function fails earlier, because the address is probably wrong
    if no broker has ever answered.

    Parameters
    ----------
    bootstrap:
        Addresses, separated by commas.
    clock:
        Clock of the pauses between attempts.
    proxy_url:
        Proxy through which the clients of the command connect.

    Raises
    ------
    CommandError
        If all addresses refuse connections, several times in a row.
    KafkaConfigurationError
        If ``proxy_url`` is invalid, or the library that it needs is not installed.
    """
    servers = parse_bootstrap_servers(bootstrap)
    checked = proxy_url_or_none("proxy_url", proxy_url)
    proxy = None if checked is None else client_proxy(checked, resolve_host, SYSTEM_CLOCK)
    for attempt in range(REFUSALS):
        if attempt:
            clock.sleep_ms(REFUSAL_PAUSE_MS)
        if not all(_refuses(server, proxy) for server in servers):
            return
    if proxy is not None:
        raise CommandError(
            f"no broker listens on {bootstrap}: connection refused (through proxy {proxy.endpoint}). Check "
            f"the address (--bootstrap) and the proxy (proxy.url). Use --timeout to wait for a broker"
        )
    raise CommandError(
        f"no broker listens on {bootstrap}: connection refused. Check the address (--bootstrap), and "
        f"that its port is that of the listener for your security_protocol, or start a broker (`kafkacore "
        f"broker`). Use --timeout to wait for a broker"
    )


def _refuses(server: tuple[str, int], proxy: Proxy | None) -> bool:
    """Return whether all addresses of a server refuse connections. The client reports all other failures."""
    try:
        if proxy is not None:
            proxy.connect(*server, CONNECT_TIMEOUT_S).close()
            return False
        socket.create_connection(server, CONNECT_TIMEOUT_S, all_errors=True).close()
    except ExceptionGroup as group:
        return all(isinstance(error, ConnectionRefusedError) for error in group.exceptions)
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def no_topic(arguments: argparse.Namespace, *topics: str, known: Collection[str] = ()) -> CommandError:
    """Return the error for missing topics. It suggests names from ``known`` for the first missing topic."""
    names = ", ".join(map(repr, topics))
    some = f"topic {names} does" if len(topics) == 1 else f"topics {names} do"
    hint = did_you_mean(topics[0], known, "see `kafkacore topics list`", show=repr)
    return CommandError(f"{some} not exist on {arguments.bootstrap}: {hint}")


@contextmanager
def lost_brokers_reported() -> Iterator[None]:
    """Report on standard error when a broker becomes unreachable, and when it is reachable again.

    Otherwise the command would wait silently. If the log level already shows these messages, nothing is
    added.
    """
    troubles = logging.getLogger("kafkacore.client.connection_errors")
    if troubles.isEnabledFor(logging.WARNING):
        yield
        return
    former = troubles.level, troubles.propagate
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("kafkacore: %(message)s"))
    troubles.addHandler(handler)
    troubles.setLevel(logging.WARNING)
    troubles.propagate = False
    try:
        yield
    finally:
        troubles.removeHandler(handler)
        troubles.level, troubles.propagate = former


def assignment(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE`` for argparse."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def seconds(text: str) -> float:
    """Parse a timeout in seconds for argparse."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not LEAST_TIMEOUT_S <= found <= MOST_TIMEOUT_S:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds from {LEAST_TIMEOUT_S:g} to {MOST_TIMEOUT_S:g}"
        )
    return found


def natural(text: str) -> int:
    """Parse a whole number from 0 to 2^63 - 1, for argparse."""
    return _bounded(text, INT64_MAX)


def natural_up_to(most: int) -> Callable[[str], int]:
    """Return a function with which argparse parses whole numbers from 0 to ``most``."""
    return lambda text: _bounded(text, most)


def _bounded(text: str, most: int) -> int:
    # The length is checked first, because Python refuses to convert long texts.
    if not text.isdecimal() or len(text.lstrip("0")) > len(str(most)) or int(text) > most:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number of 0 or more"
            if not text.isdecimal()
            else f"{text} is too large; the maximum is {most}"
        )
    return int(text)


def get_bytes(source: Mapping[str, object], name: str) -> bytes | None:
    """Read bytes that ``consume --json`` has printed: text, or ``<name>_base64`` if they are not UTF-8.

    A value other than text or null is encoded as JSON.
    """
    if (encoded := source.get(f"{name}_base64")) is not None:
        try:
            return base64.b64decode(cast("str", encoded), validate=True)
        except (TypeError, ValueError):
            raise KafkaConfigurationError(f"{name}_base64 is not base64: {encoded!r}") from None
    value = source.get(name)
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))).encode()
