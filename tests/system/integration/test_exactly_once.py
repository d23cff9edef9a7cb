"""Exactly once, checked as in Apache Kafka's own system tests, while copier and broker are killed.

A topic is copied in transactions. Read with read_committed, the copy equals the input, each record once and
in order. The checker is validated with a faulty copier.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from model.dose import dose, new_seed, note
from model.history import Kind
from peers.apache_kafka import RESTARTS_SOON, ApacheKafka
from peers.copied_topic import CopyRun, KillPlan
from peers.java_peer import JavaPeer
from peers.transactional import KIND_NAMES, KINDS, Broker, started

PARTITIONS = 2
PER_TRANSACTION = 750
RECORDS = dose(6_000, 100_000)
#: Records and kills of a run on our broker, which may be killed at any time.
RECORDS_OF_OURS, PER_TRANSACTION_OF_OURS = dose((2_400, 200), (100_000, PER_TRANSACTION))
PLAN_OF_OURS = KillPlan(most_steps=dose(10, 5))
#: A second copier, with librdkafka, validates the checker itself.
CLIENTS = dose(["kafkacore"], ["kafkacore", "librdkafka"])
#: The kinds of broker and the copiers that are killed; on Apache Kafka only the one of kafkacore.
KILLED = [
    pytest.param(kind, client, id=f"{name}-{client}")
    for kind, name in zip(KINDS, KIND_NAMES, strict=True)
    for client in (CLIENTS[:1] if kind[0] else CLIENTS)
]


@pytest.fixture(scope="module", params=KINDS, ids=KIND_NAMES)
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Start a broker with this transaction version; tests may kill it."""
    is_apache_kafka, _ = request.param
    properties = RESTARTS_SOON if is_apache_kafka else {}
    with started(tmp_path_factory.mktemp("exactly-once") / "data", request.param, properties) as broker:
        yield broker


@pytest.mark.behaviour(
    "Reliability", "a topic is copied exactly once while the copier and the broker are killed"
)
@pytest.mark.timeout(dose(150, 1_800))
@pytest.mark.parametrize(("kafka", "client"), KILLED, indirect=["kafka"])
def test_topic_is_copied_exactly_once_while_copier_and_broker_are_killed(
    kafka: Broker, java_peer: JavaPeer, request: pytest.FixtureRequest, client: str
) -> None:
    if isinstance(kafka, ApacheKafka):
        records, per_transaction = RECORDS, PER_TRANSACTION
        plan = KillPlan(broker_dies_after="offsets")
    else:
        records, per_transaction, plan = RECORDS_OF_OURS, PER_TRANSACTION_OF_OURS, PLAN_OF_OURS
    seed = new_seed()
    options = f"--per-transaction={per_transaction}"
    run = CopyRun(kafka, f"copy-{client}", records, PARTITIONS, client, options, plan=plan)
    run.make_topics(java_peer)
    run.run_through_kills(random.Random(seed))
    by_ours, by_java = run.copy_by_ours(), run.copy_by_java(java_peer)
    note(
        f"copied in transactions of {per_transaction}, {request.node.callspec.id}",
        seed,
        records=records,
        found=len(by_java),
        committed=run.figures.transactions,
        copier_kills=run.figures.copier_kills,
        broker_kills=run.figures.broker_kills,
        aborted=run.figures.aborted,
        copier_failures=run.figures.copier_failures,
    )
    assert "\n".join(map(str, run.findings(by_java))) == ""
    assert sorted(by_ours, key=_place) == sorted(by_java, key=_place)
    # The copier stopped only because it was killed.
    assert run.figures.copier_failures == 0, run.figures.reasons
    assert min(run.figures.copier_kills, run.figures.broker_kills) >= 1


def _place(record: object) -> tuple[int, int]:
    return record.partition, record.offset  # type: ignore[attr-defined]


#: Steps after which the copier kills itself, and faults planted in it with what the checker must find.
DEATHS = ["begun", "sent", "offsets", "committed"]
PLANTED = {
    "no-offsets": (["--die-in=3", "--die-after=committed"], Kind.DUPLICATE),
    "offsets-first": (["--die-in=3", "--die-after=offsets"], Kind.LOST),
    "abort-ignored": (["--abort-every=2"], Kind.LOST),
}


def copied(
    kafka: Broker, java_peer: JavaPeer, name: str, client: str, fault: str, life: list[str]
) -> CopyRun:
    """Make a small copy: run the copier with the options ``life``, and without them if that run died."""
    run = CopyRun(kafka, name, 2_000, PARTITIONS, client, "--per-transaction=300", f"--fault={fault}")
    run.make_topics(java_peer)
    if run.run_once(*life) != 0:
        assert run.run_once() == 0
    return run


@pytest.mark.behaviour(
    "Reliability", "a topic is copied exactly once while the copier and the broker are killed"
)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("step", DEATHS)
def test_copier_that_dies_after_any_step_goes_on_where_the_last_commit_was(
    kafka: Broker, java_peer: JavaPeer, client: str, step: str
) -> None:
    life = ["--die-in=3", f"--die-after={step}"]
    run = copied(kafka, java_peer, f"dies-{step}-{client}", client, "none", life)
    assert "\n".join(map(str, run.findings(run.copy_by_java(java_peer)))) == ""
    assert "\n".join(map(str, run.findings(run.copy_by_ours()))) == ""


@pytest.mark.behaviour(
    "Reliability", "a topic is copied exactly once while the copier and the broker are killed"
)
@pytest.mark.parametrize("client", CLIENTS)
def test_aborted_transactions_are_copied_again_and_seen_once(
    kafka: Broker, java_peer: JavaPeer, client: str
) -> None:
    run = copied(kafka, java_peer, f"aborts-{client}", client, "none", ["--abort-every=2"])
    assert run.figures.aborted >= 2
    assert "\n".join(map(str, run.findings(run.copy_by_java(java_peer)))) == ""
    assert "\n".join(map(str, run.findings(run.copy_by_ours()))) == ""


@pytest.mark.behaviour("Reliability", "the checker of the copy detects faults that are planted in the copier")
# The checker reads only records, so that one transaction version is enough.
@pytest.mark.parametrize("kafka", KINDS[:1], ids=KIND_NAMES[:1], indirect=True)
@pytest.mark.parametrize("fault", PLANTED)
def test_fault_planted_in_the_copier_is_seen(kafka: Broker, java_peer: JavaPeer, fault: str) -> None:
    life, kind = PLANTED[fault]
    run = copied(kafka, java_peer, f"planted-{fault}", "librdkafka", fault, life)
    assert kind in {finding.kind for finding in run.findings(run.copy_by_ours())}
    assert kind in {finding.kind for finding in run.findings(run.copy_by_java(java_peer))}
