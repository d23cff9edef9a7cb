"""A secret is shown only by the call that asks for it."""

from __future__ import annotations

import copy
import dataclasses
import logging
import pickle

import pytest

from kafkacore.security import Secret

VALUE = "canary-5f1"


@dataclasses.dataclass
class Holder:
    password: Secret


@pytest.mark.parametrize(
    "show",
    [
        repr,
        str,
        "{}".format,
        "{!r:>20}".format,
        lambda secret: f"{secret:^30}",
        lambda secret: "%s %r" % (secret, secret),  # noqa: UP031
        lambda secret: repr({"password": [secret]}),
        lambda secret: repr(Holder(secret)),
        lambda secret: repr(dataclasses.asdict(Holder(secret))),
        lambda secret: logging.LogRecord("", 0, "", 0, "%s", (secret,), None).getMessage(),
        lambda secret: repr(dir(secret)),
    ],
)
@pytest.mark.parametrize("value", [VALUE, VALUE.encode()])
def test_secret_shows_nothing(show, value) -> None:
    shown = show(Secret(value))
    assert VALUE not in shown
    assert "_value" in shown or "[hidden]" in shown


def test_secret_has_no_dictionary_to_dump() -> None:
    assert not hasattr(Secret(VALUE), "__dict__")


def test_secret_reveals_what_it_was_made_of() -> None:
    assert Secret(VALUE).reveal() == VALUE
    assert Secret(b"\x00\xff").reveal() == b"\x00\xff"
    assert Secret(Secret(VALUE)).reveal() == VALUE
    assert Secret("né").octets() == "né".encode()
    assert Secret(b"n").text() == "n"


def test_secret_of_something_else_is_refused_without_showing_it() -> None:
    with pytest.raises(TypeError) as caught:
        Secret([VALUE])
    assert VALUE not in str(caught.value)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_secret_is_not_pickled(protocol: int) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps({"password": Secret(VALUE)}, protocol)


def test_copies_are_the_same_secret() -> None:
    secret = Secret(VALUE)
    assert copy.copy(secret) is secret
    assert copy.deepcopy({"a": [secret]})["a"][0] is secret


def test_equal_secrets_are_one_key() -> None:
    assert Secret("a") == Secret(b"a")
    assert len({Secret("a"), Secret(b"a"), Secret("b")}) == 2
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert not Secret("")
    assert Secret(b"a")
