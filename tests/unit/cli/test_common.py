"""Records as JSON lines, and arguments that several commands share."""

import argparse
import socket

import pytest

from kafkacore.cli.common import (
    CommandError,
    assignment,
    get_bytes,
    natural,
    natural_up_to,
    require_listener,
)
from kafkacore.errors import KafkaConfigurationError


class Pauses:
    """A clock that sleeps without waiting, and runs an action after a given number of sleeps."""

    def __init__(self, after=None, action=None):
        self.ms = []
        self._after = after
        self._action = action

    def sleep_ms(self, ms):
        self.ms.append(ms)
        if len(self.ms) == self._after:
            self._action()


@pytest.fixture
def port():
    """Return a port on which no server listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_refused_connection_is_tried_for_about_a_second(port):
    clock = Pauses()
    with pytest.raises(CommandError, match=f"^no broker listens on 127.0.0.1:{port}: connection refused"):
        require_listener(f"127.0.0.1:{port}", clock)
    assert sum(clock.ms) == 1_000


def test_broker_that_starts_meanwhile_is_waited_for():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        clock = Pauses(after=2, action=lambda: listener.listen())
        require_listener(f"127.0.0.1:{listener.getsockname()[1]}", clock)
    assert len(clock.ms) == 2


@pytest.mark.parametrize("other", ["no-such-host.invalid:1", "127.0.0.1:LISTENING"])
def test_only_refusals_by_all_servers_fail(port, other):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        other = other.replace("LISTENING", str(listener.getsockname()[1]))
        clock = Pauses()
        require_listener(f"127.0.0.1:{port},{other}", clock)
    assert clock.ms == []


def test_a_nested_value_is_taken_as_json():
    assert get_bytes({"value": {"a": [1, 2]}}, "value") == b'{"a":[1,2]}'


def test_what_is_not_base64_is_refused():
    with pytest.raises(KafkaConfigurationError, match="not base64"):
        get_bytes({"value_base64": "%%%"}, "value")


@pytest.mark.parametrize(("parse", "text"), [(assignment, "novalue"), (assignment, "=x"), (natural, "-1")])
def test_malformed_argument_is_named(parse, text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not"):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "most"), [(natural, 2**63 - 1), (natural_up_to(2**31 - 1), 2**31 - 1), (natural_up_to(7), 7)]
)
def test_number_has_a_maximum(parse, most):
    assert parse(f"000{most}") == most
    for text in (str(most + 1), "9" * 5000):
        with pytest.raises(argparse.ArgumentTypeError, match=f"is too large; the maximum is {most}$"):
            parse(text)
