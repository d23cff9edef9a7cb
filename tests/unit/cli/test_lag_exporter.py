"""Arguments, output and the loop of ``kafkacore lag-exporter``, without a cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkacore.admin.lag import ClusterLag, GroupLag, LagError, PartitionLag
from kafkacore.admin.lag_collector import LagCollector
from kafkacore.cli import lag_exporter
from kafkacore.cli.main import main
from kafkacore.errors import KafkaConnectionError, KafkaError
from kafkacore.testing import VirtualClock

PARTITIONS = (PartitionLag("t", 0, 3, 5, 2, 61.25), PartitionLag("t", 1, 5, 5, 0, 0.0))
LAG = ClusterLag(
    (GroupLag("g\x1b", "Stable", 1, PARTITIONS), GroupLag("idle", "Empty", None, ())),
    {},
    (LagError("group", "locked\n", KafkaError("denied")),),
    3.0,
)


def test_table_has_a_line_per_partition(capsys: pytest.CaptureFixture[str]) -> None:
    assert lag_exporter._print_table(LAG) == 1
    shown = capsys.readouterr()
    assert [line.split() for line in shown.out.splitlines()] == [
        ["group", "state", "members", "topic", "partition", "offset", "end-offset", "lag", "lag-seconds"],
        ["g\\x1b", "Stable", "1", "t", "0", "3", "5", "2", "61.2"],
        ["g\\x1b", "Stable", "1", "t", "1", "5", "5", "0", "0.0"],
        ["idle", "Empty", "-", "-", "-", "-", "-", "-", "-"],
    ]
    assert shown.err == "kafkacore: group locked\\n: denied\n"


def test_json_has_totals_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert lag_exporter._print_json(LAG) == 1
    shown = json.loads(capsys.readouterr().out)
    assert [(group["sum_lag"], group["max_lag_seconds"]) for group in shown["groups"]] == [
        (2, 61.25),
        (0, None),
    ]
    assert shown["groups"][0]["partitions"][0]["end_offset"] == 5
    assert shown["errors"] == [{"kind": "group", "name": "locked\n", "error": "denied"}]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--groups [", "'[' is not a regular expression"),
        ("--listen 9308", "'9308' is not HOST:PORT"),
        ("--listen localhost:70000", "'localhost:70000' is not HOST:PORT"),
        ("--interval 0", "'0' is not a number of seconds"),
        ("--group x", "unknown option --group; did you mean --groups?"),
    ],
)
def test_wrong_argument_is_explained(
    arguments: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["lag-exporter", *arguments.split()])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "address"), [("h:1", ("h", 1)), ("[::1]:9308", ("::1", 9308)), ("0.0.0.0:0", ("0.0.0.0", 0))]
)
def test_address_is_parsed(text: str, address: tuple[str, int]) -> None:
    assert lag_exporter._address(text) == address


def test_wait_ends_after_the_interval_or_when_asked_to_stop() -> None:
    clock = VirtualClock()
    started_ms = clock.monotonic_ms()
    assert not lag_exporter.wait(30_000, lambda: False, clock)
    assert clock.monotonic_ms() == started_ms + 30_000
    assert lag_exporter.wait(30_000, lambda: clock.monotonic_ms() > started_ms + 31_000, clock)
    assert clock.monotonic_ms() < started_ms + 32_000


def test_failed_look_is_followed_by_the_next() -> None:
    class Reader:
        def __init__(self) -> None:
            self.answers: list[Any] = [KafkaConnectionError("away"), LAG]

        def read(self, timeout_ms: float) -> ClusterLag:
            answer = self.answers.pop(0)
            if isinstance(answer, KafkaError):
                raise answer
            return answer

    def up() -> float:
        families = {family.name: family for family in collector.collect()}
        return families["kafka_consumergroup_up"].samples[0].value

    reader: Any = Reader()
    collector = LagCollector()
    lag_exporter.look(reader, collector, 1000)
    assert up() == 0
    lag_exporter.look(reader, collector, 1000)
    assert up() == 1
