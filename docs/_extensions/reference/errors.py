"""Generate the reference of errors from the classes of ``kafkacore.errors``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from kafkacore import errors as module
from kafkacore.errors import BROKER_ERRORS, BrokerResponseError, KafkaError


def errors(which: str) -> str:
    """Return a section for each error: ``broker`` errors by code, or ``client`` errors by name."""
    if which == "broker":
        found = [error for _, error in sorted(BROKER_ERRORS.items()) if error.errno > 0] + [BROKER_ERRORS[-1]]
    else:
        found = sorted(set(_client_errors()), key=lambda error: error.__name__)
    return "\n".join(map(_section, found))


def _client_errors() -> Iterator[type[KafkaError]]:
    for error in vars(module).values():
        if isinstance(error, type) and issubclass(error, KafkaError) and error not in BROKER_ERRORS.values():
            yield error


def _section(error: type[KafkaError]) -> str:
    facts = {}
    if issubclass(error, BrokerResponseError) and error.message and "errno" in vars(error):
        facts = {"Code": str(error.errno), "Kafka's name": f"`{error.message}`"}
    else:
        bases = [base.__name__ for base in error.__bases__ if base is not Exception]
        facts = {"Kind of": ", ".join(f"`{name}`" for name in bases)}
    facts["Retriable"] = "yes" if error.retriable else "no"
    shown = " · ".join(f"{word}: {fact}" for word, fact in facts.items() if fact)
    return f"### `{error.__name__}`\n\n{_prose(error)}\n\n{{.facts}}\n{shown}\n"


def _prose(error: type[KafkaError]) -> str:
    """Return the docstring of a class without its numpydoc sections, in Markdown."""
    text = inspect.cleandoc(vars(error).get("__doc__") or "")
    assert text, f"{error.__name__} has no docstring"
    return text.split("\n\nParameters\n")[0].replace("``", "`")
