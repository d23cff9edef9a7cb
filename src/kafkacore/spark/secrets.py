"""Passwords that are nowhere written down: an option's text with references in, the text that they stand for
out.

Spark shows the options of a query: in ``explain``, in its log, to whoever may look at its pages. So an option
may name the place of a secret, ``${env:KAFKA_PASSWORD}`` or ``${file:/run/secrets/kafka}``, and is resolved
where a client is made: in the planner's process and in each worker, which must have the variable or the file
too. Does not know: which options there are, clients.
"""

from __future__ import annotations

import re

from kafkacore.security import references

#: What Spark is to leave out of its plans (``spark.sql.redaction.string.regex``): the value of an option that
#: is, or may hold, a secret. Spark prints options as ``[name=value, name=value]`` and quotes nothing: a value
#: ends where another name begins, or the bracket does.
REDACTION_REGEX = (
    r"(?i)(?<=[\[ ,])(kafka\.(sasl|ssl|security)\.[\w.]+|storage\.[\w.]+"
    r"|[\w.]*(password|secret|token|\.auth|credential)[\w.]*)"
    r'=("[^"\n]*"|(?!, [\w.]+=|\]([\s,)\]]|$))[^\n])*'
)
#: Options whose value is a secret ...
_SECRET_NAME = re.compile(
    r"(?i)pass|pwd|secret|token|credential|keystore\.key$|^storage\..*(key|sas|signature)"
)
#: ... or has one beside other things ...
_COMPOSITE_NAME = re.compile(r"(?i)jaas|\.auth\b")
_SECRET_PART = re.compile(r'(?i)(pass|pwd|secret|token|credential)\w*\s*=\s*"?[^"\s;,]')
#: ... and what any address may have.
_SECRET_ADDRESS = re.compile(r"(?<=://)[^/\s@]+(?=@)")


def resolved(text: str, option: str) -> str:
    """``text`` with every reference in it replaced by what it names
    (:func:`kafkacore.security.references.resolved`).
    """
    return references.resolved(text, option, "set it for Spark's driver and workers")


def referred(text: str, option: str) -> str:
    """``text`` as it may be shown, and given again as the same option: in the place of a secret that is
    written out there is a reference to an environment variable that is called like the option.

    Parameters
    ----------
    text:
        An option's value.
    option:
        The option's name; it says whether the value is a secret.
    """
    rest = references.REFERENCE.sub("", text)
    if _COMPOSITE_NAME.search(option):
        is_secret = rest == text or _SECRET_PART.search(rest) is not None
    else:
        is_secret = _SECRET_NAME.search(option) is not None and rest.strip() != ""
    if is_secret or _SECRET_ADDRESS.search(rest):
        return f"${{env:{re.sub(r'[^A-Z0-9]+', '_', option.upper()).strip('_')}}}"
    return text


def without_secret(address: str) -> str:
    """A path or URL without the user and the password in it."""
    return _SECRET_ADDRESS.sub("***", address)
