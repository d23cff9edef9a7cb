"""Exactly once, as Apache Kafka's own system tests show it: a topic is copied in transactions, copier and
broker are SIGKILLed; read with read_committed, the copy equals the input, each record once and in order.

What judges the copy is shown to see a copier that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from integration.apache_kafka import RESTARTS_SOON, ApacheKafka
from integration.copied_topic import CopyRun
from integration.java_peer import JavaPeer
from model.history import Kind

PARTITIONS = 2
CLIENTS = ["librdkafka"]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """One that may be killed."""
    with ApacheKafka(tmp_path_factory.mktemp("apache-kafka") / "data", RESTARTS_SOON) as kafka:
        yield kafka


#: Where the copier kills itself, by which planted fault the copy is spoilt, and as what that is seen.
DEATHS = ["begun", "sent", "offsets", "committed"]
PLANTED = {
    "no-offsets": (["--die-in=3", "--die-after=committed"], Kind.DUPLICATE),
    "offsets-first": (["--die-in=3", "--die-after=offsets"], Kind.LOST),
    "abort-ignored": (["--abort-every=2"], Kind.LOST),
}


def copied(
    kafka: ApacheKafka, java_peer: JavaPeer, name: str, client: str, fault: str, life: list[str]
) -> CopyRun:
    """A small copy: a first life of the copier with ``life`` as its options, a second one if that died."""
    run = CopyRun(kafka, name, 2_000, PARTITIONS, client, "--per-transaction=300", f"--fault={fault}")
    run.make_topics(java_peer)
    if run.run_once(*life) != 0:
        assert run.run_once() == 0
    return run


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("step", DEATHS)
def test_copier_that_dies_after_any_step_goes_on_where_the_last_commit_was(
    kafka: ApacheKafka, java_peer: JavaPeer, client: str, step: str
) -> None:
    life = ["--die-in=3", f"--die-after={step}"]
    run = copied(kafka, java_peer, f"dies-{step}-{client}", client, "none", life)
    assert "\n".join(map(str, run.findings(run.copy_by_java(java_peer)))) == ""
    assert "\n".join(map(str, run.findings(run.copy_by_ours()))) == ""


@pytest.mark.parametrize("client", CLIENTS)
def test_aborted_transactions_are_copied_again_and_seen_once(
    kafka: ApacheKafka, java_peer: JavaPeer, client: str
) -> None:
    run = copied(kafka, java_peer, f"aborts-{client}", client, "none", ["--abort-every=2"])
    assert run.figures.aborted >= 2
    assert "\n".join(map(str, run.findings(run.copy_by_java(java_peer)))) == ""
    assert "\n".join(map(str, run.findings(run.copy_by_ours()))) == ""


@pytest.mark.parametrize("fault", PLANTED)
def test_fault_planted_in_the_copier_is_seen(kafka: ApacheKafka, java_peer: JavaPeer, fault: str) -> None:
    life, kind = PLANTED[fault]
    run = copied(kafka, java_peer, f"planted-{fault}", "librdkafka", fault, life)
    assert kind in {finding.kind for finding in run.findings(run.copy_by_ours())}
    assert kind in {finding.kind for finding in run.findings(run.copy_by_java(java_peer))}
