"""Names and messages of peers cannot forge log lines or contain terminal escape sequences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkacore
from kafkacore import errors
from kafkacore.client.addresses import resolve_host
from kafkacore.client.connection_states import ClusterConnectionStates
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.errors import for_code
from kafkacore.structs import TopicPartition, partition_name, printable
from kafkacore.testing import VirtualClock

FORGED = "x\n2026 ERROR forged\x1b[31m\r\u202e\0"
WRITTEN_OUT = r"x\n2026 ERROR forged\x1b[31m\r\u202e\x00"


def test_what_prints_nothing_is_written_out_and_the_rest_stays() -> None:
    assert printable(FORGED) == WRITTEN_OUT
    assert printable("Zürich 東京 😀") == "Zürich 東京 😀"


def test_name_of_a_partition_is_one_line() -> None:
    assert partition_name(TopicPartition(FORGED, 3)) == f"{WRITTEN_OUT}-3"


@pytest.mark.parametrize("code", [-1, 2, 3, 37, 44])
def test_words_of_a_broker_in_an_error_are_one_line(code: int) -> None:
    assert str(for_code(code)(FORGED)).endswith(f": {WRITTEN_OUT}")


def test_host_that_a_broker_has_told_is_one_line_that_is_not_too_long() -> None:
    clock = VirtualClock()
    backoff = ExponentialBackoff(clock, 100, 1000, jitter=0.0)
    states = ClusterConnectionStates(backoff, backoff, resolve_host)
    for host in (FORGED, FORGED + "x" * 65_000):
        states.connecting(7, 0.0, host, 70_000)
        endpoint = states.endpoint(7)
        assert endpoint.isprintable()
        assert endpoint.startswith(WRITTEN_OUT)
        assert endpoint.endswith(":70000")
        assert len(endpoint) < 300


@pytest.mark.parametrize("host", ["x" * 65_000, "a..b", "é" * 300, "\ud800"])
def test_host_that_is_none_is_an_os_error_of_one_line(host: str) -> None:
    with pytest.raises(OSError, match="is not a valid host name") as caught:
        resolve_host(host, 9092)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


# ---- Source files escape names -----------------------------------------------------------------------------

SOURCES = Path(kafkacore.__file__).parent
#: Values chosen by peers. A whole TopicPartition is formatted by its repr, which escapes.
TOPICS = {"topic", "topic_name"}
NAMES = TOPICS | {
    "group_id",
    "client_id",
    "member_id",
    "instance_id",
    "group_instance_id",
    "transactional_id",
}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
#: File → why it may format a topic name without escaping it.
ALLOWED = {
    "broker/log/checkpoints.py": "a file's format; the broker's topics have legal names",
    "broker/log/data_folder.py": "a folder's name; the broker's topics have legal names",
    "broker/status/groups.py": "a value of JSON, which the page shows as text",
    "cli/pipeline.py": "the user's own argument",
    "cli/topics.py": "the user's own argument",
    "consumer/metrics.py": "names of metrics, which users look up by the topic's name",
    "frames/topic_reader.py": "the subject of a schema registry, in a URL that quotes it",
    "producer/sender_metrics.py": "names of metrics, which users look up by the topic's name",
}


def last_name(expression: ast.expr) -> str:
    """Return ``c`` of ``a.b.c``."""
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""


def formatted(node: ast.AST, wanted: set[str]) -> Iterator[ast.expr]:
    """Yield the ``wanted`` names that an f-string below the node formats without escaping."""
    for each in ast.walk(node):
        if isinstance(each, ast.FormattedValue) and each.conversion != ord("r"):
            values = [each.value]
            if isinstance(each.value, ast.Call) and last_name(each.value.func) == "join":
                values = [part for argument in each.value.args for part in ast.walk(argument)]
            yield from (value for value in values if last_name(value) in wanted)


def escapes_by_itself(call: ast.Call) -> bool:
    """Return whether a call creates a broker response error, whose ``str`` escapes its text."""
    kind = getattr(errors, last_name(call.func), None)
    return isinstance(kind, type) and issubclass(kind, errors.BrokerResponseError)


def raw_names(source: str) -> list[str]:
    """Return the names that an error, log message or other text of a module contains unescaped."""
    tree, found, safe = ast.parse(source), [], set()
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    for call in calls:
        if escapes_by_itself(call):
            safe |= set(formatted(call, NAMES))
        elif last_name(call.func).endswith("Error"):
            found += formatted(call, NAMES)
        elif last_name(call.func) in LEVELS and "NameLogger(" not in source:
            texts = [each.value for each in call.args[:1] if isinstance(each, ast.Constant)]
            kinds = re.findall(r"%[-+ #0-9.]*([a-z])", str(texts[0])) if texts else []
            found += [
                each
                for kind, each in zip(kinds, call.args[1:], strict=False)
                if kind == "s" and last_name(each) in NAMES
            ]
            found += formatted(call, NAMES)
    found += (each for each in formatted(tree, TOPICS))
    return sorted({f"line {each.lineno}: {ast.unparse(each)}" for each in found if each not in safe})


def test_no_source_formats_a_name_of_a_peer_as_it_is() -> None:
    found = {
        f"{path.relative_to(SOURCES)}": raw
        for path in sorted(SOURCES.rglob("*.py"))
        if not {"bench", "testing", "protocol"} & set(path.relative_to(SOURCES).parts[:1])
        and (raw := raw_names(path.read_text(encoding="utf-8")))
    }
    assert {name: raw for name, raw in found.items() if name not in ALLOWED} == {}, (
        "use partition_name or printable"
    )
    assert set(found) == set(ALLOWED), "remove files from ALLOWED that no longer need it"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('raise KafkaTimeoutError(f"of {tp.topic}-{tp.partition}")', ["line 1: tp.topic"]),
        ('where = f"{self._tp.topic}"', ["line 1: self._tp.topic"]),
        ('log.info("group %s: %d", group_id, 3)', ["line 1: group_id"]),
        ('log.info("group %r: %d", group_id, 3)', []),
        ('log.info("%s", partition_name(tp))', []),
        ('log.info(f"client {self.client_id}")', ["line 1: self.client_id"]),
        ("raise ValueError(f\"{', '.join(topic for topic in topics)}\")", ["line 1: topic"]),
        ('raise ValueError(f"{topic!r} {printable(topic)} {tp}")', []),
        ('raise UnknownTopicOrPartitionError(f"no {topic}")', []),
        ('logger = NameLogger(__name__)\nlogger.info("%s", member_id)', []),
    ],
)
def test_search_for_names_finds_them(source: str, expected: list[str]) -> None:
    assert raw_names(source) == expected
