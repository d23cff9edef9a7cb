"""Our broker accepts, rejects and describes settings of groups and client metrics as Apache Kafka does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from eventually import eventually
from peers.apache_kafka import ApacheKafka
from peers.config_requests import APPEND, DELETE, SUBTRACT, Change, ConfigRequests, Entry, config_requests

from kafkacore.testing.embedded_broker import EmbeddedBroker

CLIENT_METRICS, GROUP = 16, 32

#: Values of a setting around its limits.
_TIMES = (
    "-1", "0", "1", "4999", "5000", "15000", "15001", "44999", " 45000 ", "60000", "60001", "soon", "",
)  # fmt: skip
VALUES: dict[int, dict[str, tuple[str, ...]]] = {
    GROUP: {
        **{
            f"{protocol}.{name}": _TIMES
            for protocol in ("consumer", "share", "streams")
            for name in ("assignment.interval.ms", "heartbeat.interval.ms", "session.timeout.ms")
        },
        "share.auto.offset.reset": (
            "earliest", "latest", "LATEST", "none", "by_duration:PT1H", "by_duration:P1DT2.5S",
            "by_duration:P1M", "by_duration:PT", "by_duration:P", "by_duration:-PT1H", "by_duration:", "",
        ),
        "share.delivery.count.limit": ("-1", "0", "1", "2", "10", "11"),
        "share.isolation.level": ("read_committed", "read_uncommitted", "READ_COMMITTED", "none"),
        "share.partition.max.record.locks": ("0", "99", "100", "4000", "4001"),
        "share.record.lock.duration.ms": ("999", "1000", "14999", "15000", "60000", "60001"),
        "share.renew.acknowledge.enable": ("true", "FALSE", "maybe"),
        "streams.initial.rebalance.delay.ms": ("-1", "0", "2147483647", "2147483648"),
        "streams.num.standby.replicas": ("-1", "0", "2", "3"),
        "no.such": ("1",),
    },
    CLIENT_METRICS: {
        "interval.ms": ("-1", "99", "100", " 200 ", "3600000", "3600001", "soon", ""),
        "match": (
            "", "client_id=a.*", "client_id=a , client_software_name=b", "client_source_port=9[0-9]+",
            "client_instance_id=x", "client_source_address=x", "client_software_version=1=2", "client_id",
            "client_id=", "client_id=(", "other=x", "client_id=a,", "client_id=a,client_id=a",
        ),
        "metrics": ("", "*", "a,b", "a , b", "a,,b", "a,a"),
        "no.such": ("1",),
    },
}  # fmt: skip


@dataclass
class Both:
    """Requests to Apache Kafka and to our broker."""

    theirs: ConfigRequests
    ours: ConfigRequests


@pytest.fixture(scope="module")
def both(apache_kafka: ApacheKafka, our_broker: EmbeddedBroker) -> Iterator[Both]:
    with (
        config_requests(apache_kafka.bootstrap_servers) as theirs,
        config_requests(our_broker.bootstrap_servers) as ours,
    ):
        yield Both(theirs, ours)


@pytest.mark.parametrize("kind", [GROUP, CLIENT_METRICS])
def test_values_are_accepted_rejected_and_described_alike(both: Both, kind: int) -> None:
    pairs = [(name, text) for name, texts in VALUES[kind].items() for text in texts]
    changes = [Change(kind, f"same-{number}", name, text) for number, (name, text) in enumerate(pairs)]
    for change in (both.theirs.change, both.theirs.replace):
        ours = both.ours.change if change == both.theirs.change else both.ours.replace
        assert _by_pair(pairs, ours(changes)) == _by_pair(pairs, change(changes))
    resources = [(kind, change.resource) for change in changes]
    found: list[list[dict[str, Entry]]] = []

    def are_the_same() -> bool:
        found[:] = [each.describe(resources) for each in (both.theirs, both.ours)]
        return found[0] == found[1]

    eventually(are_the_same, lambda: _differing(pairs, *found))
    everything = [
        Change(kind, f"same-{number}", name, None, DELETE) for number, (name, _) in enumerate(pairs)
    ]
    assert both.ours.change(everything) == both.theirs.change(everything) == [None] * len(pairs)


def _by_pair(pairs: list[tuple[str, str]], errors: list[str | None]) -> dict[tuple[str, str], str | None]:
    return dict(zip(pairs, errors, strict=True))


def _differing(
    pairs: list[tuple[str, str]], theirs: list[dict[str, Entry]], ours: list[dict[str, Entry]]
) -> object:
    return [
        (pair, their.get(pair[0]), our.get(pair[0]))
        for pair, their, our in zip(pairs, theirs, ours, strict=True)
        if their != our
    ]


def test_lists_and_names_are_handled_alike(both: Both) -> None:
    changes = [
        Change(CLIENT_METRICS, "same-list", "metrics", "a", APPEND),
        Change(CLIENT_METRICS, "same-other-list", "metrics", "a", SUBTRACT),
        Change(CLIENT_METRICS, "", "metrics", "a"),
        Change(CLIENT_METRICS, "same name/ä", "metrics", None, DELETE),
        Change(GROUP, "same-group", "share.auto.offset.reset", "latest", APPEND),
        Change(GROUP, "", "share.auto.offset.reset", "latest"),
        Change(GROUP, "same name/ä", "no.such", None, DELETE),
        Change(64, "x", "y", "z"),
        Change(0, "x", "y", "z"),
    ]
    assert both.ours.change(changes) == both.theirs.change(changes)


#: Settings of both brokers, which limit the settings of groups.
_LIMITS = {
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "20000",
    "group.consumer.max.session.timeout.ms": "30000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "2000",
    "group.consumer.max.heartbeat.interval.ms": "25000",
    "group.consumer.min.assignment.interval.ms": "10",
    "group.consumer.max.assignment.interval.ms": "2000",
}
_OF_GROUPS = {
    "consumer.session.timeout.ms": ("499", "500", "2000", "2001", "30000", "30001"),
    "consumer.heartbeat.interval.ms": ("99", "100", "19999", "20000", "25000", "25001"),
    "consumer.assignment.interval.ms": ("9", "10", "2000", "2001"),
}


def test_limits_of_the_broker_apply_to_groups_alike(tmp_path: Path) -> None:
    pairs = [(name, text) for name, texts in _OF_GROUPS.items() for text in texts]
    changes = [Change(GROUP, f"limited-{number}", *pair) for number, pair in enumerate(pairs)]
    resources = [(GROUP, change.resource) for change in changes]
    with (
        ApacheKafka(tmp_path, _LIMITS) as kafka,
        EmbeddedBroker(**{name.replace(".", "_"): text for name, text in _LIMITS.items()}) as broker,
        config_requests(kafka.bootstrap_servers) as theirs,
        config_requests(broker.bootstrap_servers) as ours,
    ):
        outcomes = theirs.change(changes)
        assert None in outcomes
        assert "InvalidConfigurationError" in outcomes
        assert _by_pair(pairs, ours.change(changes)) == _by_pair(pairs, outcomes)
        found: list[list[dict[str, Entry]]] = []

        def are_the_same() -> bool:
            found[:] = [each.describe(resources) for each in (theirs, ours)]
            return found[0] == found[1]

        eventually(are_the_same, lambda: _differing(pairs, *found))
