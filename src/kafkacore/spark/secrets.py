"""Resolve references to secrets in Spark options, and hide secrets that are written in plain text.

Spark shows the options of a query in ``explain``, in its log and in its UI. An option may therefore refer to
a secret. The reference is resolved only where a client is created: in the planner's process and in each
Python worker.
"""

from __future__ import annotations

import re

from kafkacore.security import references
from kafkacore.security.references import holds_secret

#: Text that Spark should redact in its plans (``spark.sql.redaction.string.regex``): options that are, or may
#: contain, a secret. Spark prints options as ``[name=value, name=value]`` without quotes, so a value ends
#: before the next name or the closing bracket.
REDACTION_REGEX = (
    r"(?i)(?<=[\[ ,])(kafka\.(sasl|ssl|security)\.[\w.]+|storage\.[\w.]+"
    r"|[\w.]*(password|secret|token|\.auth|credential|proxy)[\w.]*)"
    r'=("[^"\n]*"|(?!, [\w.]+=|\]([\s,)\]]|$))[^\n])*'
)
#: Name of an unknown option whose value is probably a secret.
_SECRET_NAME = re.compile(r"(?i)(password|passwd|pwd|secret|token|credentials?)$")
#: Names of options whose value contains a secret among other text.
_COMPOSITE_NAME = re.compile(r"(?i)jaas|\.auth\b")
_SECRET_PART = re.compile(r'(?i)(pass|pwd|secret|token|credential)\w*\s*=\s*"?[^"\s;,]')
#: User and password in an address.
_SECRET_ADDRESS = re.compile(r"(?<=://)[^/\s@]+(?=@)")


def resolved(text: str, option: str) -> str:
    """Return ``text`` with every reference replaced by the secret that it names.

    The errors are those of :func:`kafkacore.security.references.resolved`.
    """
    return references.resolved(text, option, "Spark's driver and executors")


def referred(text: str, option: str) -> str:
    """Return ``text`` with a plain-text secret replaced by a reference.

    The reference is to an environment variable that is named after the option. In an address, where
    references are not allowed, the user and the password become ``***``.

    Parameters
    ----------
    text:
        An option's value.
    option:
        The option's name, which decides whether the value is a secret.
    """
    rest = references.REFERENCE.sub("", text)
    if _COMPOSITE_NAME.search(option):
        is_secret = rest == text or _SECRET_PART.search(rest) is not None
    else:
        is_secret = rest.strip() != "" and (holds_secret(option) or _SECRET_NAME.search(option) is not None)
    if is_secret:
        return f"${{env:{re.sub(r'[^A-Z0-9]+', '_', option.upper()).strip('_')}}}"
    return without_secret(text)


def without_secret(address: str) -> str:
    """Return a path or URL without its user and password."""
    return _SECRET_ADDRESS.sub("***", address)
