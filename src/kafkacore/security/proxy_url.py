"""The URL of a proxy, as in the setting ``proxy_url``."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkacore.security.secret import Secret

#: Schemes, and whether the proxy resolves the host names of brokers.
SCHEMES: Final = {"socks5": False, "socks5h": True, "http": True}


class ProxyUrl(NamedTuple):
    """The parts of a proxy's URL.

    Attributes
    ----------
    scheme:
        ``socks5``, ``socks5h`` or ``http``.
    password:
        Empty if the proxy does not authenticate clients.
    """

    scheme: str
    host: str
    port: int
    username: str
    password: Secret

    @property
    def resolves_names(self) -> bool:
        """Whether the proxy resolves the host names of brokers. Otherwise the client does."""
        return SCHEMES[self.scheme]

    @property
    def endpoint(self) -> str:
        """Host and port, for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_proxy_url(url: str) -> ProxyUrl:
    """Return the parts of a proxy's URL.

    Raises
    ------
    ValueError
        The URL is not valid. The message does not contain the URL, because it may have a password.
    """
    # Few clients use a proxy, and this module takes 2 ms to import.
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("the text is not a valid URL") from None
    if parts.scheme not in SCHEMES:
        raise ValueError(f"the URL must begin with {', '.join(f'{scheme}://' for scheme in SCHEMES)}")
    if not parts.hostname or not port:
        raise ValueError("the URL must have a host and a port")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(
            "the URL must end after the port; write '/', '?' and '#' in a password as %2F, %3F and %23"
        )
    username, password = unquote(parts.username or ""), unquote(parts.password or "")
    return ProxyUrl(parts.scheme, parts.hostname, port, username, Secret(password))
